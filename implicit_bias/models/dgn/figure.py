"""Panels of a deep gated network's run; every function draws on the axes that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING


from ...drawing.figures import Panel, legend_above
from ...drawing.palette import BLACK, SERIES
from ...drawing.runs import plot_growth
from ...local_limits.limit import LocalLimit
from ...training.trajectory import Trajectory
from .path_limit import PathLimit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["rich_panels"]


def rich_panels(
    trajectories: Sequence[Trajectory], limits: Sequence[LocalLimit | None], bound: PathLimit
) -> list[Panel]:
    """Values on the way to their limits, and the growth of the first network."""
    panels: list[Panel] = [
        partial(plot_values, trajectories, limits, float(bound.dual_objective)),
        partial(plot_distances, trajectories, limits),
        partial(plot_residuals, trajectories),
        partial(plot_growth, trajectories[0]),
    ]
    return panels


def plot_values(
    trajectories: Sequence[Trajectory],
    limits: Sequence[LocalLimit | None],
    bound: float,
    ax: Axes,
) -> Axes:
    """Value of every network over training, its local limit, and the bound of all of them."""
    for index, (one, limit) in enumerate(zip(trajectories, limits, strict=True)):
        color = SERIES[index % len(SERIES)]
        ax.plot(one.step, one.observed["value"], color=color, marker=".", label=_start(index))
        if limit is not None:
            ax.plot(
                1, limit.value, marker=0, markersize=8, markeredgewidth=1.5, color=color,
                transform=ax.get_yaxis_transform(), clip_on=False,
            )  # fmt: skip
    ax.axhline(bound, color=BLACK, linestyle="--", linewidth=1, label="bound (certified)")
    ends = [limit.value for limit in limits if limit is not None]
    if ends:
        ax.set_ylim(0.9 * bound, max(4 * max(ends), 2 * bound))
    ax.set_ylabel("value (local limits on the right)")
    return _over_steps(ax, trajectories[0])


def plot_distances(
    trajectories: Sequence[Trajectory], limits: Sequence[LocalLimit | None], ax: Axes
) -> Axes:
    """What the value of every network lacks of its own local limit, as a share."""
    for index, (one, limit) in enumerate(zip(trajectories, limits, strict=True)):
        if limit is None:
            continue
        left = 1 - limit.value / one.observed["value"]
        shown = left > 0
        ax.plot(
            one.step[shown], left[shown], color=SERIES[index % len(SERIES)], marker=".",
            label=_start(index),
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylabel("1 - local limit / network")
    return _over_steps(ax, trajectories[0])


def plot_residuals(trajectories: Sequence[Trajectory], ax: Axes) -> Axes:
    """Relative residual of the KKT conditions over training."""
    for index, one in enumerate(trajectories):
        residual = one.observed["kkt_residual"]
        shown = residual > 0
        ax.plot(
            one.step[shown], residual[shown], color=SERIES[index % len(SERIES)], marker=".",
            label=_start(index),
        )  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylabel("KKT residual")
    return _over_steps(ax, trajectories[0])


def _start(index: int) -> str:
    return f"start {index + 1}"


def _over_steps(ax: Axes, trajectory: Trajectory) -> Axes:
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.15, 1.5 * max(float(trajectory.step[-1]), 1.0))
    ax.set_xlabel("gradient steps")
    legend_above(ax)
    return ax
