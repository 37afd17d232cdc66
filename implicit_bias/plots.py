"""Pictures of a run. Functions of axes take and return them; figures are made by the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ._solve import to_numpy
from .limit import Limit
from .trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_agreement", "plot_margin_ratio", "plot_margins", "plot_run"]

NETWORK, LIMIT = "tab:blue", "tab:orange"


def plot_margins(trajectory: Trajectory, ax: Axes) -> Axes:
    """Smallest margin over training, at the network's own scale."""
    ax.plot(trajectory.step, trajectory.smallest_margin, color=NETWORK, marker=".")
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.set_ylabel("smallest margin")
    return _steps(ax, trajectory)


def plot_margin_ratio(trajectory: Trajectory, limit: Limit, ax: Axes) -> Axes:
    """Normalised margin over training, as a share of the predicted optimum."""
    ratio = trajectory.normalised_margin * limit.dual_objective
    separating = trajectory.smallest_margin > 0
    ax.plot(
        trajectory.step[separating],
        ratio[separating],
        color=NETWORK,
        marker=".",
        label="trained network",
    )
    ax.axhline(1, color=LIMIT, linestyle="--", label="predicted limit")
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("margin ratio")
    ax.legend(loc="center left")
    return _steps(ax, trajectory)


def plot_agreement(trajectory: Trajectory, scores: NDArray[np.float64], ax: Axes) -> Axes:
    """Share of held-out labels on which network and limit agree; `scores` (m,) are the limit's."""
    same = np.sign(trajectory.scores) == np.sign(to_numpy(scores))
    ax.plot(trajectory.step, same.mean(axis=1), color=NETWORK, marker=".")
    ax.axhline(1, color=LIMIT, linestyle="--")
    ax.set_ylabel("agreement on held-out labels")
    return _steps(ax, trajectory)


def plot_run(
    trajectory: Trajectory, limit: Limit, scores: NDArray[np.float64], *, title: str
) -> Figure:
    """Margins, margin ratio and agreement of a run side by side.

    A limit in a norm of its own (`norm_of`) gets no margin ratio: the trajectory knows the sum of
    unit norms only.

    Parameters
    ----------
    trajectory : Trajectory
        With the network's scores on m held-out inputs.
    limit : Limit
    scores : (m,) array
        The limit's scores on the same inputs.
    title : str

    Returns
    -------
    Figure
        Not attached to pyplot: save it, or show it in a notebook.
    """
    from matplotlib.figure import Figure

    comparable = not hasattr(limit, "norm_of")
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3 if comparable else 2)
    plot_margins(trajectory, axes[0])
    if comparable:
        plot_margin_ratio(trajectory, limit, axes[1])
    plot_agreement(trajectory, scores, axes[-1])
    figure.suptitle(title)
    return figure


def _steps(ax: Axes, trajectory: Trajectory) -> Axes:
    # Step 0 has a place on a symmetric logarithmic axis, which is linear below 1.
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.15, 1.3 * max(float(trajectory.step[-1]), 1.0))
    ax.set_xlabel("gradient steps")
    return ax
