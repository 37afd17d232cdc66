"""Panels of a training run: each function draws one on axes, and returns them.

Step 0 has a place on the axis of steps, which is logarithmic from 1 on and linear below.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.solve import to_numpy
from ...limits.limit import HasNorm
from ...measures.scalars import dead_units
from ...quantities.table import TABLE
from ...training.trajectory import Trajectory
from .figures import PREDICTED, STEPS, UNIT_SHARE, Panel, entry, legend_above
from .palette import BLUE, GREEN, PURPLE, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from ...limits.exact.multiclass import MarginLimit

Array = NDArray[np.float64]

SHORT = 50.0  # An axis of steps whose ends have a smaller ratio has labels at 1, 2 and 5.
FAR = 100.0  # Margins beyond this are drawn on a logarithmic axis.
TICK = 0  # matplotlib's marker "a tick to the left"
# Of an entry for such ticks.
ON_THE_RIGHT: dict[str, Any] = {"linestyle": "none", "marker": TICK, "markersize": 8}
DIFFERENCE = "difference on held-out data"
KKT_DISTANCE = "KKT distance (ideal 0)"
KKT = {
    "kkt_residual": ("relative residual", BLUE),
    "kkt_cosine": ("1 - cosine", GREEN),
    "kkt_complementarity": ("complementarity", PURPLE),
}


def plot_margins(trajectory: Trajectory, ax: Axes) -> Axes:
    """Draw the smallest margin over training, at the network's own scale."""
    if np.nanmax(np.abs(trajectory.smallest_margin), initial=0) > FAR:
        # As a margin grows by powers, a linear axis would show its last steps alone.
        ax.set_yscale("symlog", linthresh=1)
    ax.plot(trajectory.step, trajectory.smallest_margin, color=BLUE, marker=".")
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set_ylabel(TABLE["smallest_margin"].label)
    return step_axis(ax, float(trajectory.step[-1]))


def plot_margin_ratio(trajectory: Trajectory, limit: MarginLimit, ax: Axes) -> Axes:
    """Draw by how much the exact and the smoothed margin fall short of the predicted optimum.

    On a log axis: at the limit nothing is lacking. What an observer measured (`margin_ratio`,
    `smooth_margin_ratio`) comes first. Otherwise it is computed from the trajectory, for limits
    whose norm is the sum of unit norms. Points where the network does not separate yet are not
    drawn.
    """
    colors = {"exact": BLUE, "smoothed": GREEN}
    curves = {
        # A ratio below 0 is no distance from the limit.
        name: (np.where(ratio > 0, 1 - ratio, np.nan), colors[name])
        for name, ratio in margin_ratios(trajectory, limit).items()
    }
    return log_curves(ax, trajectory, curves, TABLE["margin_ratio"].distance_label)


def plot_agreement(trajectory: Trajectory, scores: Array, ax: Axes) -> Axes:
    """Draw the share of held-out labels unlike the limit's, and 1 - cosine with its scores.

    `scores` (m,) or (m, K) are the limit's on the inputs that the trajectory has scores of.
    1 - cosine of the coefficients is drawn too if an observer measured `zeta_cosine`. All on a log
    axis, where they are positive.
    """
    predicted, trained = to_numpy(scores), trajectory.scores
    differ = labels_differ(trained, predicted)
    if trained.ndim == 3:  # of classes, whose labels do not depend on what their scores share
        predicted = (predicted - predicted.mean(axis=1, keepdims=True)).ravel()
        trained = (trained - trained.mean(axis=2, keepdims=True)).reshape(len(trained), -1)
    curves = {
        "labels that differ": (differ.mean(axis=1), BLUE),
        "1 - cosine of scores": (1 - _cosines(trained, predicted), GREEN),
    }
    if "zeta_cosine" in trajectory.observed:
        lacking = 1 - trajectory.observed["zeta_cosine"]
        curves[TABLE["zeta_cosine"].distance_label] = (lacking, PURPLE)
    return log_curves(ax, trajectory, curves, DIFFERENCE)


def labels_differ(trained: Array, predicted: Array) -> NDArray[np.bool_]:
    """Return where labels (T, m) of scores (T, m), or (T, m, K) of classes, are not a limit's."""
    if trained.ndim == 3:
        return np.asarray(trained.argmax(axis=2) != predicted.argmax(axis=1))
    return np.asarray(np.sign(trained) != np.sign(predicted))


def plot_kkt(trajectory: Trajectory, ax: Axes) -> Axes:
    """Draw the distance of the weights from a KKT point, as an observer measured it.

    These are `kkt_residual`, `1 - kkt_cosine` and `kkt_complementarity`, as far as measured, on a
    log axis where they are positive: all are 0 at a KKT point.
    """
    found = trajectory.observed
    curves = {
        label: (1 - found[name] if name == "kkt_cosine" else found[name], color)
        for name, (label, color) in KKT.items()
        if name in found
    }
    return log_curves(ax, trajectory, curves, KKT_DISTANCE)


def plot_unit_norms(
    trajectory: Trajectory, ax: Axes, limit: MarginLimit | None = None, *, name: str = PREDICTED
) -> Axes:
    """Draw each unit's share of the sum of norms, the limit's shares as asymptotes.

    A unit of the network is dead with a norm of at most a thousandth of the largest; its line ends
    in a cross. Units that are dead in the limit have dotted grey lines. With many units the
    limit's shares are ticks at the right edge instead of lines across, in the colours of the units.
    """
    norms = trajectory.unit_norms
    total = norms.sum(axis=1, keepdims=True)
    shares = np.divide(norms, total, out=np.full_like(norms, np.nan), where=total > 0)
    n_units = norms.shape[1]
    live, targets = _predicted_shares(limit, n_units)
    few = n_units <= len(SERIES)
    order = np.argsort(np.argsort(np.where(np.isnan(targets), shares[-1], targets)))
    for h in range(n_units):
        color = SERIES[h] if few else _ramp(order[h] / (n_units - 1))
        style: dict[str, Any] = {"color": color} if live[h] else {"color": "0.6", "linestyle": ":"}
        ax.plot(trajectory.step, shares[:, h], linewidth=1.5 if few else 0.8, **style)
        if not np.isnan(targets[h]) and few:
            ax.axhline(targets[h], linestyle="--", linewidth=1, color=style["color"])
        elif not np.isnan(targets[h]):
            tick_on_the_right(ax, targets[h], style["color"])
    dead = np.zeros(n_units, dtype=bool)
    dead[dead_units(norms[-1])] = True
    if dead.any():
        last = np.full(int(dead.sum()), trajectory.step[-1])
        ax.plot(last, shares[-1, dead], "kx", clip_on=False, zorder=4)
    predicted = not np.isnan(targets).any()
    legend_above(ax, _unit_entries(live, dead, name=name if predicted else "", few=few))
    ax.set_ylim(bottom=0)
    ax.set_ylabel(UNIT_SHARE)
    return step_axis(ax, float(trajectory.step[-1]))


def plot_growth(trajectory: Trajectory, ax: Axes) -> Axes:
    """Draw weight norm and log(1/loss), which grow without bound on separable data."""
    curves = {
        "weight norm": (trajectory.weight_norm, BLUE),
        TABLE["log_inverse_loss"].label: (-trajectory.log_loss, GREEN),
    }
    return log_curves(ax, trajectory, curves, "growth")


def plot_gate_changes(step: ArrayLike, changed: ArrayLike, ax: Axes) -> Axes:
    """Draw the share of gates of a ReLU network that differ from their start; (T,) arrays."""
    ax.plot(step, changed, color=BLUE, marker=".")
    ax.set_ylim(bottom=0)
    ax.set_ylabel(TABLE["gate_changes"].label)
    return step_axis(ax, float(np.max(step)))


def run_panels(
    trajectory: Trajectory,
    limit: MarginLimit | None = None,
    scores: Array | None = None,
    name: str = PREDICTED,
) -> list[Panel]:
    """Return the panels for which there are data, each a function that draws on axes.

    The legend calls the limit `name`. Without a limit, or with one whose norm the trajectory does
    not contain, margins are drawn instead of the margin ratio.
    """
    observed = trajectory.observed
    ratios = {} if limit is None else margin_ratios(trajectory, limit)
    panels: list[Panel] = []
    if limit is not None and any(np.any(ratio > 0) for ratio in ratios.values()):
        panels.append(partial(plot_margin_ratio, trajectory, limit))
    else:
        panels.append(partial(plot_margins, trajectory))
    if scores is not None and trajectory.scores.shape[1] > 0:
        panels.append(partial(plot_agreement, trajectory, scores))
    # NaN before the network separates, and for good if it never does.
    if any(name in observed and np.isfinite(observed[name]).any() for name in KKT):
        panels.append(partial(plot_kkt, trajectory))
    if trajectory.unit_norms.shape[1] > 1:
        panels.append(partial(plot_unit_norms, trajectory, limit=limit, name=name))
    panels.append(partial(plot_growth, trajectory))
    if "gate_changes" in observed:
        panels.append(partial(plot_gate_changes, trajectory.step, observed["gate_changes"]))
    return panels


def margin_ratios(trajectory: Trajectory, limit: MarginLimit) -> dict[str, Array]:
    """Return the exact and the smoothed margin ratio, (T,) arrays, as far as they are known."""
    optimum = float(limit.dual_objective)
    measured = {
        "exact": ("margin_ratio", trajectory.normalised_margin),
        "smoothed": ("smooth_margin_ratio", trajectory.smooth_margin),
    }
    found: dict[str, Array] = {}
    for label, (name, margin) in measured.items():
        if name in trajectory.observed:
            found[label] = trajectory.observed[name]
        # A limit in a norm of its own (`norm_of`) cannot be set against the sum of unit norms.
        elif not isinstance(limit, HasNorm):
            found[label] = margin * optimum
    return found


def _cosines(rows: Array, vector: Array) -> Array:
    """Return cosines (T,) of rows (T, m) with a vector; NaN for a row of zeros."""
    # Networks that were trained far have scores whose squares overflow.
    size = np.abs(rows).max(axis=1, keepdims=True)
    rows = np.divide(rows, size, out=np.zeros_like(rows), where=size > 0)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(vector)
    cosines: Array = np.full(len(rows), np.nan)
    np.divide(rows @ vector, lengths, out=cosines, where=lengths > 0)
    return cosines


def _ramp(share: float) -> tuple[float, float, float, float]:
    from matplotlib import colormaps

    # Without the yellow end, which is lost on white.
    red, green, blue, alpha = colormaps["viridis"](0.9 * (1 - share))
    return red, green, blue, alpha


def _predicted_shares(limit: MarginLimit | None, n_units: int) -> tuple[NDArray[np.bool_], Array]:
    """Return a mask of units live in the limit and their shares; all and NaN if not comparable."""
    predicted = None if limit is None else to_numpy(limit.unit_norms)
    if limit is None or predicted is None or predicted.shape != (n_units,):
        return np.ones(n_units, dtype=bool), np.full(n_units, np.nan)
    return to_numpy(limit.live), predicted / predicted.sum()


def tick_on_the_right(ax: Axes, height: float, color: Any) -> None:
    """Mark a height at the right edge of a panel."""
    ax.plot(
        1, height, marker=TICK, markersize=8, markeredgewidth=1.5, color=color,
        transform=ax.get_yaxis_transform(), clip_on=False,
    )  # fmt: skip


def _unit_entries(
    live: NDArray[np.bool_], dead: NDArray[np.bool_], *, name: str, few: bool
) -> list[Line2D]:
    entries = [entry(f"{len(live)} units of the network", color="0.2")]
    if name and few:
        entries.append(entry(name, color="0.2", linestyle="--"))
    elif name:
        entries.append(entry(f"{name} (on the right)", color="0.2", **ON_THE_RIGHT))
    if not live.all():
        entries.append(entry(f"dead in the limit ({(~live).sum()})", color="0.6", linestyle=":"))
    if dead.any():
        label = f"dead in the network ({dead.sum()})"
        entries.append(entry(label, color="black", marker="x", linestyle="none"))
    return entries


def log_curves(
    ax: Axes, trajectory: Trajectory, curves: Mapping[str, tuple[Array, str]], ylabel: str
) -> Axes:
    """Draw curves on a log axis where they are positive; leave out those that never are.

    Parameters
    ----------
    ax : Axes
    trajectory : Trajectory
    curves : mapping of label to (T,) array and colour
    ylabel : str
    """
    first = float(trajectory.step[-1])
    for label, (values, color) in curves.items():
        shown = values > 0
        if not shown.any():
            continue
        first = min(first, float(trajectory.step[shown][0]))
        # Not left out: a line across what is not known would say that it is.
        values = np.where(shown, values, np.nan)
        ax.plot(trajectory.step, values, color=color, marker=".", label=label)
    legend_above(ax)
    return log_step_axes(ax, ylabel, float(trajectory.step[-1]), first=first)


def log_step_axes(ax: Axes, ylabel: str, last: float, *, first: float) -> Axes:
    """Set the axes of a panel to powers of ten over steps."""
    ax.set_yscale("log")
    power_ticks(ax)
    ax.set_ylabel(ylabel)
    return step_axis(ax, last, first=first)


def power_ticks(ax: Axes) -> None:
    """Label a logarithmic y axis by powers of ten as every other, at 1, 2 and 5 if it is short."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = ax.get_ylim()
    if high < 1e3 * low:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        # Thresholds of infinity: 2 and 5 have labels however many decades there are.
        ax.yaxis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))
        ax.yaxis.set_minor_formatter(NullFormatter())


def step_axis(ax: Axes, last: float, *, first: float = 0.0) -> Axes:
    """Set the x axis of a panel to steps up to the last, from 0 or the first that has a point.

    What is known only once data are separated would else leave half of its panel empty.
    """
    from matplotlib.ticker import NullLocator, ScalarFormatter, SymmetricalLogLocator

    ax.set_xscale("symlog", linthresh=1)
    if first > 1 and last < SHORT * first:
        # Powers of ten alone would leave an axis with one label or none.
        ax.xaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1, subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(ScalarFormatter())
        ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(first / 1.5 if first > 1 else -0.15, 1.5 * max(last, 1.0))
    ax.set_xlabel(STEPS)
    return ax
