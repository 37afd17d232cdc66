"""Pictures of heads by exit; every function draws on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats
from ...quantities.table import TABLE
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLUE, SERIES, VERMILLION
from .comparison import ExitComparison, HeadsComparison, HeadState

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_accuracy(ax: Axes, found: HeadsComparison) -> Axes:
    """Draw held-out accuracy over exits, of heads and of the averages of the first of them."""
    from matplotlib.ticker import PercentFormatter

    layers = [one.exit for one in found.exits]
    for name, color in (("limit", BLUE), ("network", VERMILLION)):
        states = [getattr(one, name) for one in found.exits]
        known = "limit" if name == "limit" else "trained"
        ax.plot(layers, [s.accuracy for s in states], "o-", color=color, label=known)
        ax.plot(
            layers, [s.anytime_accuracy for s in states], "^--", color=color,
            markerfacecolor="none", label=f"{known}, averaged",
        )  # fmt: skip
    ax.set_ylabel(TABLE["val_accuracy"].label)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    return _by_exit(ax, layers)


def plot_margins(ax: Axes, found: HeadsComparison) -> Axes:
    """Draw the least margin of a labelled sample over the norm of the weights, over exits."""
    layers = [one.exit for one in found.exits]
    for name, style in (("limit", "o-"), ("network", "s--")):
        margins = [getattr(one, name).margin for one in found.exits]
        color = BLUE if name == "limit" else VERMILLION
        ax.plot(layers, margins, style, color=color, markerfacecolor="none",
                label="limit" if name == "limit" else "trained")  # fmt: skip
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set_ylabel(HeadState.declared["margin"].quantity.label)
    return _by_exit(ax, layers)


def plot_angles(
    ax: Axes, layers: Sequence[int], steps: Sequence[Floats], angles: Sequence[Floats]
) -> Axes:
    """Draw the angle of every trained head with its limit, in degrees, over steps."""
    for i, (layer, step, angle) in enumerate(zip(layers, steps, angles, strict=True)):
        known = step > 0  # at 0 the weights have no direction
        ax.plot(step[known], np.degrees(angle[known]), color=SERIES[i % len(SERIES)],
                label=f"exit {layer}")  # fmt: skip
    ax.set_xscale("log")
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("steps")
    ax.set_ylabel(ExitComparison.declared["angle"].quantity.label)
    legend_above(ax)
    return ax


def _by_exit(ax: Axes, layers: Sequence[int]) -> Axes:
    ax.set_xticks(list(layers))
    ax.set_xlabel("layer of the exit")
    legend_above(ax)
    return ax
