"""Panels of a deep gated network's run; every function draws on the axes that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats
from ...limits.kernels.regression import KernelRegression
from ...limits.local.limit import LocalLimit
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLACK, SERIES
from ...runs.drawing.runs import step_axis
from ...training.trajectory import Trajectory
from .lazy_comparison import Departure, ScaleComparison
from .rich_comparison import distances_along

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_errors(
    runs: Sequence[tuple[float, Trajectory]], regression: KernelRegression, rate: float, ax: Axes
) -> Axes:
    """Training errors over the time of the flow, beside ``exp(-K t) e_0``."""
    first = float(np.linalg.norm(regression.start))
    for index, (scale, one) in enumerate(runs):
        errors = np.linalg.norm(one.observed["errors"], axis=1) / first
        ax.plot(
            rate * one.step, errors, color=SERIES[index % len(SERIES)], marker=".",
            linestyle="none", label=f"alpha {scale:g}",
        )  # fmt: skip
    longest = max(float(one.step[-1]) for _, one in runs)
    times = rate * np.concatenate([[0.0], np.geomspace(0.1, max(longest, 1.0), 200)])
    flow = np.linalg.norm(regression.error(times), axis=1) / first
    ax.plot(times, flow, color=BLACK, linewidth=1, label="exp(-K t) e0 (theorem)")
    ax.set_xscale("symlog", linthresh=rate)
    ax.set_yscale("log")
    ax.set_xlabel("time of the flow")
    ax.set_ylabel(ScaleComparison.declared["remaining"].quantity.label)
    legend_above(ax)
    return ax


def plot_law(
    runs: Sequence[tuple[float, Trajectory]], regression: KernelRegression, rate: float, ax: Axes
) -> Axes:
    """Distance of the errors from those of descent on the constant kernel, at every scale."""
    first = float(np.linalg.norm(regression.start))
    away = [one.observed["errors"] - regression.after(one.step, rate) for _, one in runs]
    # Both begin with the same errors: what is left of them there is rounding, a log axis's 0.
    values = [np.where(one.step > 0, np.linalg.norm(off, axis=1) / first, 0.0)
              for off, (_, one) in zip(away, runs, strict=True)]  # fmt: skip
    return _curves(ax, _by_scale(runs), values, "errors off (I - eta K)^N e0")


def plot_drifts(runs: Sequence[tuple[float, Trajectory]], name: str, label: str, ax: Axes) -> Axes:
    """One observed drift over steps, at every scale."""
    return _curves(ax, _by_scale(runs), [one.observed[name] for _, one in runs], label)


def plot_departure(trajectory: Trajectory, ax: Axes) -> Axes:
    """Weight drift, kernel alignment, and the margin per weight moved over the linear optimum."""
    names = ("weight_drift", "kernel_alignment", "kernel_ratio")
    paths = [(Departure.declared[name].quantity.label, trajectory) for name in names]
    values = [trajectory.observed[name] for name in names]
    ax.axhline(1, color="0.6", linewidth=0.8)
    return _curves(ax, paths, values, "exponential-like loss")


def plot_values(
    trajectories: Sequence[Trajectory],
    limits: Sequence[LocalLimit | None],
    bound: float,
    ax: Axes,
) -> Axes:
    """Value of every network over training, its local limit, and the bound of all of them."""
    starts = zip(_by_start(trajectories), limits, strict=True)
    for index, ((start, one), limit) in enumerate(starts):
        color = SERIES[index % len(SERIES)]
        ax.plot(one.step, one.observed["value"], color=color, marker=".", label=start)
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
    legend_above(ax)
    return step_axis(ax, float(trajectories[0].step[-1]))


def plot_distances(
    trajectories: Sequence[Trajectory], limits: Sequence[LocalLimit | None], ax: Axes
) -> Axes:
    """Share of the value of every network that its own local limit does not have."""
    values = [
        None if limit is None else 1 - limit.value / one.observed["value"]
        for one, limit in zip(trajectories, limits, strict=True)
    ]
    return _curves(ax, _by_start(trajectories), values, "1 - local limit / network")


def plot_weights(
    trajectories: Sequence[Trajectory], limits: Sequence[LocalLimit | None], ax: Axes
) -> Axes:
    """Distance of the weights from the local limit that the end of the run is next to."""
    values = [
        None if limit is None else distances_along(one, limit)
        for one, limit in zip(trajectories, limits, strict=True)
    ]
    return _curves(ax, _by_start(trajectories), values, "distance of weights from it")


def plot_residuals(trajectories: Sequence[Trajectory], ax: Axes) -> Axes:
    """Relative residual of the KKT conditions over training."""
    values = [one.observed["kkt_residual"] for one in trajectories]
    return _curves(ax, _by_start(trajectories), values, "KKT residual")


def _by_scale(runs: Sequence[tuple[float, Trajectory]]) -> list[tuple[str, Trajectory]]:
    return [(f"alpha {scale:g}", one) for scale, one in runs]


def _by_start(trajectories: Sequence[Trajectory]) -> list[tuple[str, Trajectory]]:
    return [(f"start {number}", one) for number, one in enumerate(trajectories, start=1)]


def _curves(
    ax: Axes,
    paths: Sequence[tuple[str, Trajectory]],
    values: Sequence[Floats | None],
    label: str,
) -> Axes:
    """Draw values over the steps of named paths where they are positive, in colours by number."""
    first = last = max(float(one.step[-1]) for _, one in paths)
    for index, ((name, one), own) in enumerate(zip(paths, values, strict=True)):
        if own is not None:
            shown = own > 0
            first = min([first, *one.step[shown][:1]])
            color, own = SERIES[index % len(SERIES)], np.where(shown, own, np.nan)
            ax.plot(one.step, own, color=color, marker=".", label=name)
    ax.set_yscale("log")
    ax.set_ylabel(label)
    legend_above(ax)
    return step_axis(ax, last, first=first)
