"""Experiments: every table and figure of the paper, one command each.

An experiment is a list of cells. A cell is a pure function of what is written in its JSON, is stored when it is done,
and is made once; tables and pictures are drawn from stored cells and from nothing else.
"""

from .reproduce import TARGETS, Checked, Outcome, Outcomes, Place, check, reproduce

__all__ = ["TARGETS", "Checked", "Outcome", "Outcomes", "Place", "check", "reproduce"]
