"""Report: one HTML page of a workspace or of an experiment's results. Values in, text out; it needs no network."""

from .experiment import experiment_page
from .workspace import workspace_page

__all__ = ["experiment_page", "workspace_page"]
