"""Pictures of results: drawn by functions that are known by name alone, and written to files."""

from __future__ import annotations

import io
import os
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from .extras import naming_extras
from .files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PACKAGE = __package__.rpartition(".")[0]
RESOLUTION = 150  # dots per inch of a picture in a file of its own


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
    if ax is None:
        ax = resolve_name(f"{PACKAGE}.runs.drawing.canvas:own_axes")()
    resolve_name(f"{PACKAGE}.{drawer}")(*things, ax)
    return ax


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture in place of an earlier file, in the format of the name's ending.

    Raises
    ------
    OSError
        If it cannot be written; an earlier file stays as it was.
    """
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix.removeprefix("."), dpi=RESOLUTION)
    write_atomically(path, content.getvalue())
