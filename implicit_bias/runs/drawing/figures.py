"""Figures composed of rows of panels, without pyplot and its global state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ..._support.extras import naming_extras

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Panel = Callable[["Axes"], object]

# Labels of axes that several panels have.
STEPS, UNIT_SHARE = "gradient steps", "unit's share of the norm"

# What the legends call a limit, where it has no name of its own.
PREDICTED = "predicted limit"

# Inches: a page's width on a screen, and panels about as high as wide where three share it.
_WIDTH, _HEIGHT, _TITLE = 12.0, 3.1, 0.4
_ABREAST = 3
# Letters of all labels that fit side by side above a panel of a row of three; points of a line.
_LETTERS, _LINE = 36, 13


@dataclass(frozen=True)
class Row:
    """A row of panels in a figure.

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


@dataclass(frozen=True)
class Panels:
    """Panels that a function of another module makes, loaded when they are drawn or saved.

    Attributes
    ----------
    made_by : str
        "module:function", the module by its name in this package.
    arguments : tuple
    """

    made_by: str
    arguments: tuple[Any, ...]

    def __iter__(self) -> Iterator[Panel | Row]:
        """Make them."""
        made: Iterable[Panel | Row] = resolve_name(f"{__package__}.{self.made_by}")(*self.arguments)
        return iter(made)


def each_panel(panels: Iterable[Panel | Row | Panels]) -> Iterator[Panel | Row]:
    """Yield panels and rows one by one."""
    for panel in panels:
        if isinstance(panel, Panels):
            yield from panel
        else:
            yield panel


def panel_rows(panels: Sequence[Panel]) -> list[Row]:
    """Arrange panels in even rows of at most three: four become 2 + 2 and five 3 + 2.

    Each panel is a function that draws on axes.
    """
    n_rows = -(-len(panels) // _ABREAST)
    rows: list[Row] = []
    taken = 0
    for index in range(n_rows):
        share = panels[taken : taken + -(-(len(panels) - taken) // (n_rows - index))]
        rows.append(Row(len(share), lambda axes, share=share: _draw(share, axes)))  # type: ignore[misc]
        taken += len(share)
    return rows


@naming_extras()
def compose(rows: Sequence[Row], *, title: str) -> Figure:
    """Draw rows one below the other under a title.

    Returns
    -------
    Figure
        Not attached to pyplot: save it, or make it the last line of a cell in a notebook.

    Raises
    ------
    ValueError
        If there is no row.
    """
    from .canvas import ShownFigure
    from .palette import SERIES

    if not rows:
        raise ValueError("`rows` must not be empty: there is nothing to draw")
    heights = [row.height for row in rows]
    figure = ShownFigure(figsize=(_WIDTH, sum(heights) + _TITLE), layout="constrained")
    figure.suptitle(title)
    parts = figure.subfigures(len(rows), 1, squeeze=False, height_ratios=heights)[:, 0]
    for row, part in zip(rows, parts, strict=True):
        axes = list(part.subplots(1, row.n, squeeze=False)[0])
        for ax in axes:
            ax.set_prop_cycle(color=SERIES)
        row.draw(axes)
    return figure


def legend_above(ax: Axes, handles: Sequence[Artist] | None = None) -> None:
    """Give a panel its legend between frame and title, where it covers no curve."""
    if handles is None:
        handles = ax.get_legend_handles_labels()[0]
    if not handles:
        return
    names = [str(handle.get_label()) for handle in handles]
    columns = len(names) if sum(map(len, names)) <= _LETTERS else 2
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.1, ncols=columns,
        frameon=False, fontsize="small", columnspacing=1.2, handlelength=1.6,
    )  # fmt: skip
    ax.set_title(ax.get_title(), pad=6 + _LINE * -(-len(names) // columns), fontsize="medium")


def entry(label: str, **style: Any) -> Line2D:
    """Return an entry of a legend that no single curve stands for."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **style)


def _draw(panels: Sequence[Panel], axes: list[Axes]) -> None:
    for panel, ax in zip(panels, axes, strict=True):
        panel(ax)


def legend_below(ax: Axes, *, columns: int) -> None:
    """Put the legend of one panel below the whole figure, entries side by side."""
    handles, labels = ax.get_legend_handles_labels()
    ax.figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize="small")
