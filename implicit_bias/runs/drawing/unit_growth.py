"""Shares of units against log(1/loss), and their growth as predicted by dual norms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...measures.growth.growth_law import UnitChange, UnitGrowth
from ...quantities.table import TABLE
from ...training.trajectory import Trajectory
from .figures import UNIT_SHARE, Panel, entry, legend_above
from .palette import SERIES
from .runs import ON_THE_RIGHT, tick_on_the_right
from .trainers import label_trainer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How far the axis goes on beyond the run, in factors of log(1/loss): as far as the arrivals, within
# these; and how far below the least share of a unit that moves.
LEAST, MOST = 30.0, 1e6
BELOW = 3.0
# Until the loss is 1 / e shares follow the start and not the law.
START = 1.0
POINTS = 100
# Between names of units beside the panel, in shares of its height: a line of small letters.
LINE = 0.075


def growth_panels(trajectory: Trajectory, growth: UnitGrowth, trainer: str) -> list[Panel]:
    """Return the panel of units that will change, with the name of its trainer if there is one."""
    panel = partial(plot_unit_growth, trajectory, growth)
    return [label_trainer(trainer, panel) if trainer else panel]


def plot_unit_growth(trajectory: Trajectory, growth: UnitGrowth, ax: Axes) -> Axes:
    """Draw each unit's share of the norm over log(1/loss), and the powers that dual norms predict.

    Both axes are logarithmic: a power is a straight line. Units that will change have colours, and
    from the end of the run dashed lines with dots where they come to 1 %, 10 % and the share in the
    limit, which is a tick on the right. The others are grey.
    """
    x, norms = -trajectory.log_loss, trajectory.unit_norms
    shown = (x > START) & (norms.sum(axis=1) > 0)
    x, shares = x[shown], norms[shown] / norms[shown].sum(axis=1, keepdims=True)
    changes = {change.unit: change for change in growth.changes}
    colors = {h: SERIES[i % len(SERIES)] for i, h in enumerate(changes)}
    for h in range(shares.shape[1]):
        style: dict[str, Any] = {"color": colors.get(h, "0.8"), "linewidth": 1.5}
        ax.plot(x, shares[:, h], zorder=2 if h in changes else 1, **style)
    end = _end(growth)
    ends = {h: _continue(ax, growth, change, end, colors[h]) for h, change in changes.items()}
    moving = shares[:, list(changes)]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(START, end)
    ax.set_ylim(float(moving[moving > 0].min()) / BELOW, 1.2)
    ax.set_xlabel(TABLE["log_inverse_loss"].label)
    ax.set_ylabel(UNIT_SHARE)
    _name_units(ax, ends, colors)
    _legend(ax, growth)
    return ax


def _end(growth: UnitGrowth) -> float:
    """Return the end of the axis: twice the last arrival that is near enough to be shown."""
    now = growth.log_inverse_loss
    times = [one.log_inverse_loss for change in growth.changes for one in change.arrivals]
    near = [time for time in times if time < MOST * now]
    return max([LEAST * now, *(2 * time for time in near)])


def _continue(ax: Axes, growth: UnitGrowth, change: UnitChange, end: float, color: str) -> float:
    """Draw the predicted power from the end of training to the limit's share, and its marks.

    Returns the share at its end.
    """
    target = change.predicted_share
    # As arrivals are computed: its share over that of the others goes like the power.
    last = change.arrivals[-1].log_inverse_loss if change.arrivals else end
    x = np.geomspace(growth.log_inverse_loss, min(last, end) if target > 0 else end, POINTS)
    further = (x - growth.offset) / growth.mean_margin
    odds = change.share / (1 - change.share) * further**change.exponent
    y = odds / (1 + odds)
    ax.plot(x, y, "--", color=color, linewidth=1.2, zorder=2)
    for one in change.arrivals:
        ax.plot(one.log_inverse_loss, one.share, "o", color=color, markersize=4, zorder=3)
    if target > 0:
        tick_on_the_right(ax, target, color)
    return float(y[-1])


def _name_units(ax: Axes, ends: Mapping[int, float], colors: Mapping[int, str]) -> None:
    """Write the names of units to the right of the panel, as near to their ends as there is room.

    Each has a line of its own, in the order of the ends.
    """
    low, high = np.log(ax.get_ylim())
    order = sorted(ends, key=lambda h: ends[h])
    line = min(LINE, 1 / max(len(order) - 1, 1))
    place = -line
    places: list[float] = []
    for h in order:
        place = max(place + line, (np.log(max(ends[h], np.exp(low))) - low) / (high - low))
        places.append(place)
    top = 1.0
    for index in reversed(range(len(places))):
        places[index] = min(places[index], top)
        top = places[index] - line
    for h, height in zip(order, places, strict=True):
        ax.text(
            1.015, height, f"unit {h}", color=colors[h], fontsize="small", ha="left", va="center",
            transform=ax.transAxes,
        )  # fmt: skip


def _legend(ax: Axes, growth: UnitGrowth) -> None:
    entries = [
        entry("trained", color="0.2"),
        entry("descent from here", color="0.2", linestyle="--"),
    ]
    if not np.isnan(growth.limit_shares).any():
        entries.append(entry("limit", color="0.2", **ON_THE_RIGHT))
    legend_above(ax, entries)
