"""Pictures of results, by functions that are known by name alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._extras import naming_extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]


@naming_extras()
def draw(drawer: str, *things: Any, ax: Axes | None) -> Axes:
    """Draw things by a function of this package, and return the axes.

    Parameters
    ----------
    drawer : str
        "module:function"; the function takes the things and the axes.
    *things : object
    ax : Axes or None
        None for axes of a new figure, which a notebook shows.
    """
    module, _, name = drawer.partition(":")
    if ax is None:
        ax = import_module(f"{__package__}.drawing.canvas").own_axes()
    getattr(import_module(f"{__package__}.{module}"), name)(*things, ax)
    return ax
