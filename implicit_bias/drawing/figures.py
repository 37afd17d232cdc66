"""Figures put together from rows of panels, without pyplot and its global state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Panel", "Row", "compose", "panel_rows"]

Panel = Callable[["Axes"], object]

# Inches: a page's width on a screen, and panels about as high as wide where three share it.
_WIDTH, _HEIGHT, _TITLE = 12.0, 3.1, 0.4
_ABREAST = 3


@dataclass(frozen=True)
class Row:
    """One row of a figure.

    Attributes
    ----------
    n : int
        Number of axes, side by side and equally wide.
    draw : callable
        `draw(axes)` draws on the list of them.
    height : float
        In inches, for a figure 12 inches wide.
    """

    n: int
    draw: Callable[[list[Axes]], object]
    height: float = _HEIGHT


def panel_rows(panels: Sequence[Panel]) -> list[Row]:
    """Rows of at most three panels, as even as can be: four become 2 + 2 and five 3 + 2.

    Each panel is a function that draws on the axes it is given.
    """
    n_rows = -(-len(panels) // _ABREAST)
    rows: list[Row] = []
    taken = 0
    for index in range(n_rows):
        share = panels[taken : taken + -(-(len(panels) - taken) // (n_rows - index))]
        rows.append(Row(len(share), lambda axes, share=share: _draw(share, axes)))  # type: ignore[misc]
        taken += len(share)
    return rows


def compose(rows: Sequence[Row], *, title: str) -> Figure:
    """Draw rows one below the other under a title.

    Returns
    -------
    Figure
        Not attached to pyplot: save it, or show it in a notebook.

    Raises
    ------
    ValueError
        If there is no row.
    """
    from matplotlib.figure import Figure

    if not rows:
        raise ValueError("`rows` must not be empty: there is nothing to draw")
    heights = [row.height for row in rows]
    figure = Figure(figsize=(_WIDTH, sum(heights) + _TITLE), layout="constrained")
    figure.suptitle(title)
    parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0]
    for row, part in zip(rows, parts, strict=True):
        row.draw(list(part.subplots(1, row.n, squeeze=False)[0]))
    return figure


def _draw(panels: Sequence[Panel], axes: list[Axes]) -> None:
    for panel, ax in zip(panels, axes, strict=True):
        panel(ax)
