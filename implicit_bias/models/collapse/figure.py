"""Pictures of neural collapse: angles and norms over training, beside those of the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats
from ...runs.drawing.figures import PREDICTED, entry, legend_above
from ...runs.drawing.palette import BLACK, BLUE, SERIES, VERMILLION
from ...runs.drawing.runs import step_axis
from ...training.trajectory import Trajectory
from .limit import CollapseLimit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_geometry(
    axes: Sequence[Axes], trajectory: Trajectory, limit: CollapseLimit, which: str = ""
) -> Sequence[Axes]:
    """Draw angles between features, between classifiers, and norms of both over training."""
    about = f"{which} " if which else ""
    for ax, name in zip(axes[:2], ("feature", "classifier"), strict=True):
        plot_angles(trajectory, limit, name, ax)
        ax.set_title(f"{about}{name}s", fontsize="medium")
    plot_norms(trajectory, limit, axes[2])
    return axes


def plot_angles(trajectory: Trajectory, limit: CollapseLimit, name: str, ax: Axes) -> Axes:
    """Draw the angle of every pair of classes, of "feature" or "classifier", and of the limit.

    Pairs with one angle in the limit have one colour.
    """
    pairs = np.triu_indices(len(limit.class_sizes), 1)
    found = _degrees(trajectory.observed[f"{name}_cosines"])[(slice(None), *pairs)]
    ends = _degrees(getattr(limit, f"{name}_cosines"))[pairs]
    known = np.unique(np.round(ends[~np.isnan(ends)], 3)).tolist()
    for pair, end in zip(found.T, ends, strict=True):
        several = len(known) > len(SERIES) or np.isnan(end)
        color = BLUE if several else SERIES[known.index(round(float(end), 3))]
        ax.plot(trajectory.step, pair, color=color, linewidth=0.8, alpha=0.6)
    for end in known:
        ax.axhline(end, color=BLACK, linestyle=":", linewidth=1)
    ax.set_ylabel("angle of two classes, degrees")
    ax.set_ylim(0, 185)
    return step_axis(ax, float(trajectory.step[-1]))


def plot_norms(trajectory: Trajectory, limit: CollapseLimit, ax: Axes) -> Axes:
    """Draw norms of features and classifiers over their longest, and those of the limit."""
    handles = []
    for name, color in (("feature", BLUE), ("classifier", VERMILLION)):
        norms, ends = trajectory.observed[f"{name}_norms"], getattr(limit, f"{name}_norms")
        longest = np.maximum(norms.max(axis=1, keepdims=True), 1e-300)
        ax.plot(trajectory.step, norms / longest, color=color, linewidth=0.8, alpha=0.6)
        for end in np.unique(np.round(ends / max(ends.max(), 1e-300), 4)):
            ax.axhline(end, color=color, linestyle=":", linewidth=1)
        handles.append(entry(f"{name}s", color=color))
    handles.append(entry(PREDICTED, color=BLACK, linestyle=":"))
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("norm over the longest")
    legend_above(ax, handles)
    return step_axis(ax, float(trajectory.step[-1]))


def _degrees(cosines: Floats) -> Floats:
    return np.asarray(np.degrees(np.arccos(np.clip(cosines, -1, 1))))
