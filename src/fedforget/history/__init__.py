"""History: the rounds of a federation as sealed, coded slices on holders, and back from any k good ones."""

from .fetch import Archive, Finding
from .keep import Keeper
from .past import HistoryPast

__all__ = ["Archive", "Finding", "HistoryPast", "Keeper"]
