"""How a result draws itself: by a function that knows it, and that it knows by name alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._extras import naming_extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]


@naming_extras()
def draw(drawer: str, *things: Any, ax: Axes | None) -> Axes:
    """Draw by "module:function" of this package, on axes of their own where none are given.

    Returns
    -------
    Axes
        Which a notebook shows, if they are their own.
    """
    module, _, name = drawer.partition(":")
    if ax is None:
        ax = import_module(f"{__package__}.drawing.canvas").own_axes()
    getattr(import_module(f"{__package__}.{module}"), name)(*things, ax)
    return ax
