"""The workspace: one directory, one federation, every verb."""

from .settings import FederationSettings
from .tasks import Task
from .workspace import Workspace

__all__ = ["FederationSettings", "Task", "Workspace"]
