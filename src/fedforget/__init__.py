"""FedForget: federated learning that can forget a client, at a fraction of the cost of training again, and show it.

>>> from fedforget import FederationSettings, Workspace
>>> space = Workspace.init("W", FederationSettings())
>>> space.train(); space.forget(["client-007"]); space.verify()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .workspace import FederationSettings, Workspace

__version__ = "0.1.0"
__all__ = ["FederationSettings", "Workspace", "__version__"]


def __getattr__(name: str) -> Any:
    """The workspace on first use: `import fedforget` stays quick, and the core needs no database."""
    if name in ("FederationSettings", "Workspace"):
        return getattr(import_module(".workspace", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
