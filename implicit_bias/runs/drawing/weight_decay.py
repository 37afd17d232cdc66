"""Training with weight decay beside its finite limit: certified distances, sizes of units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...training.trajectory import Trajectory
from .palette import BLUE, GREEN
from .runs import log_curves, step_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_value_gap(trajectory: Trajectory, ax: Axes) -> Axes:
    """Draw by how much the network's value is above the optimum, certified at every checkpoint.

    Once by the network's own loss slopes, which bound the optimum without a solver, and once by the
    limit's.
    """
    curves = {
        "by its own loss slopes": (trajectory.observed["value_gap"], BLUE),
        "beside the limit": (trajectory.observed["over_optimum"], GREEN),
    }
    return log_curves(ax, trajectory, curves, "value above the optimum, relative")


def plot_decayed_units(trajectory: Trajectory, unit_norms: NDArray[np.float64], ax: Axes) -> Axes:
    """Draw the norm of every unit over training, and those of the limit `unit_norms` as ticks."""
    for h in range(trajectory.unit_norms.shape[1]):
        dead = unit_norms[h] == 0
        ax.plot(trajectory.step, trajectory.unit_norms[:, h], color="0.7" if dead else BLUE)
    last = float(trajectory.step[-1])
    ax.plot(np.full(len(unit_norms), last), unit_norms, "_", color="black", ms=12, label="limit")
    ax.set_ylabel("norms of units (grey: dead in the limit)")
    ax.legend(fontsize="small")
    return step_axis(ax, last)
