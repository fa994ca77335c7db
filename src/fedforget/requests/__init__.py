"""Requests as values: what is asked for, by whom, and what may become of it. No files, no clock, no database."""

from .scope import Scope

__all__ = ["Scope"]
