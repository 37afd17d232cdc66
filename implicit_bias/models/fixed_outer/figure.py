"""The rank of an inner layer over training, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...limits.relu.fixed_outer import FixedOuterLimit
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLACK, BLUE, GREY, VERMILLION
from ...runs.drawing.runs import step_axis
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 8


def plot_ranks(trajectory: Trajectory, zeta: np.ndarray, ax: Axes) -> Axes:
    """Draw the singular values of W over training, as shares of the first.

    Parameters
    ----------
    trajectory : Trajectory
        With "singular_values" at its steps.
    zeta : (H, D) array
        Weights of the limit, whose values stand at the end.
    ax : Axes
    """
    values = trajectory.observed["singular_values"]
    shares = values / np.where(values[:, :1] > 0, values[:, :1], 1.0)
    for k in range(min(SHOWN, shares.shape[1])):
        color, label = (BLUE, "first and second") if k < 2 else (GREY, "others")
        ax.plot(trajectory.step, np.maximum(shares[:, k], 1e-12), color=color,
                label=label if k in (0, 2) else None)  # fmt: skip
    limit = np.linalg.svd(zeta, compute_uv=False)[:2]
    last = np.full(len(limit), trajectory.step[-1])
    ax.plot(last, limit / limit[0], "o", color=BLACK, label="limit", clip_on=False)
    ax.set_yscale("log")
    ax.set_ylabel("singular values of W, over the first")
    legend_above(ax)
    return step_axis(ax, float(trajectory.step[-1]))


def plot_neurons(limit: FixedOuterLimit, W: np.ndarray, ax: Axes) -> Axes:
    """Draw the neurons in the plane of the limit's two directions, and these as rays.

    Parameters
    ----------
    limit : FixedOuterLimit
    W : (H, D) array
        Of the network, drawn at the length of the limit's largest.
    ax : Axes
    """
    _, _, right = np.linalg.svd(limit.zeta, full_matrices=False)
    both = [part @ right[:2].T for part in (limit.zeta, W)]
    rays, points = (part / float(np.abs(part).max() or 1.0) for part in both)
    for sign, color, name in ((1, VERMILLION, "a > 0"), (-1, BLUE, "a < 0")):
        own = np.sign(limit.outer) == sign
        if own.any():
            x, y = (np.r_[0, rays[own][0, axis]] for axis in (0, 1))
            ax.plot(x, y, color=color, label=f"limit, {name}")
            ax.plot(*points[own].T, "o", color=color, mec=BLACK, label=f"network, {name}")
    ax.set(xlabel="first direction of the limit", ylabel="second")
    legend_above(ax)
    return ax
