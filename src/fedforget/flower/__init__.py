"""FedForget for Flower: the ready app, and what a Flower app of your own needs to be able to forget.

>>> from fedforget.flower import enable_unlearning            # client_app.py
>>> app = enable_unlearning(app)
>>> from fedforget.flower import Unlearning                   # server_app.py
>>> strategy = Unlearning(lambda: FedAdam(), context, workspace="/srv/W", clients=8, shards=2)
>>> result = strategy.start(grid, initial_arrays, num_rounds=3)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra

if TYPE_CHECKING:
    from .node import client_app, enable_unlearning
    from .strategy import Unlearning
    from .verbs import run

__all__ = ["Unlearning", "client_app", "enable_unlearning", "run"]
_WHERE = {"client_app": ".node", "enable_unlearning": ".node", "run": ".verbs", "Unlearning": ".strategy"}


def __getattr__(name: str) -> Any:
    """On first use: a node loads nothing of the server, a server nothing of the nodes."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("flwr") is None:
        raise MissingExtra("a federation on Flower", "flower")
    # Kept here: importing `.run` put the module where its function is looked for.
    found = globals()[name] = getattr(import_module(_WHERE[name], __name__), name)
    return found
