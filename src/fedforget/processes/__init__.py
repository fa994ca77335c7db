"""Processes: a whole federation on this machine, for trying out and for tests. Does not import Flower."""

from .children import Child
from .federation import FederationReport, LocalFederation, Node, up
from .runs import Run

__all__ = ["Child", "FederationReport", "LocalFederation", "Node", "Run", "up"]
