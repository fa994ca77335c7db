"""Pictures. The only place that imports matplotlib."""

from importlib.util import find_spec

from ..errors import MissingExtra

if find_spec("matplotlib") is None:
    raise MissingExtra("drawing pictures", "plots")

from .figure import Figure, Line, Panel, draw, stamp_of

__all__ = ["Figure", "Line", "Panel", "draw", "stamp_of"]
