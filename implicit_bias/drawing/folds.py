"""Where a ReLU network bends in a plane, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..equivalence.folds import FoldSet
from .figures import legend_above
from .palette import GREY, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_folds"]


def plot_folds(folds: FoldSet, ax: Axes) -> Axes:
    """Dots where lines cross zero sets, in the layer's colour; grey rings where nothing bends."""
    from matplotlib.lines import Line2D

    entries = []
    for layer in range(len(folds.widths)):
        here = (folds.layer == layer) & folds.bends
        color = SERIES[layer % len(SERIES)]
        ax.plot(*folds.coordinates[here].T, ".", color=color, markersize=4)
        label = f"zero set of layer {layer + 1}"
        entries.append(Line2D([], [], color=color, linestyle="none", marker=".", label=label))
    if not folds.bends.all():
        style: dict[str, Any] = {
            "linestyle": "none",
            "marker": "o",
            "color": GREY,
            "fillstyle": "none",
        }
        ax.plot(*folds.coordinates[~folds.bends].T, markersize=3, zorder=1, **style)
        entries.append(Line2D([], [], label="no bend: hidden by a layer above", **style))
    ax.set_aspect("equal")
    legend_above(ax, entries)
    return ax
