"""Pictures of diagonal networks: the limit from kernel to rich, and the way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...quantities.table import TABLE
from ...runs.drawing.palette import BLACK, BLUE, VERMILLION
from ...runs.drawing.runs import power_ticks, step_axis
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_kernel_to_rich(
    scales: NDArray[np.float64],
    norms: NDArray[np.float64],
    scale: float,
    point: NDArray[np.float64],
    ax: Axes,
) -> Axes:
    """Draw l1 and l2 norm of the limit over the scale of the start, and the run's network.

    Parameters
    ----------
    scales : (S,) array
    norms : (S, 2) array
        l1 and l2 norms of the limits.
    scale : float
        The run's own.
    point : (2,) array
        l1 and l2 norm of the run's network.
    ax : Axes
    """
    least = np.nanmin(norms, axis=0)
    for column, (name, color) in enumerate((("l1_norm", BLUE), ("l2_norm", VERMILLION))):
        label = f"{TABLE[name].label}, limit"
        ax.plot(scales, norms[:, column] / least[column], color=color, label=label)
        ax.plot([scale], [point[column] / least[column]], "o", color=color, mec=BLACK)
    ax.plot([], [], "o", color="white", mec=BLACK, label="trained network")
    ax.set_xscale("log")
    ax.set_xlabel("scale of the start (rich to kernel)")
    ax.set_ylabel("norm over the least of all scales")
    ax.legend(fontsize="small")
    return ax


def plot_limit_error(trajectory: Trajectory, ax: Axes) -> Axes:
    """Draw the distance from the limit and the loss over training."""
    shown = {TABLE["limit_error"].label: (trajectory.observed["limit_error"], BLUE),
             "loss": (trajectory.loss, "0.5")}  # fmt: skip
    for label, (values, color) in shown.items():
        ax.plot(trajectory.step, np.where(values > 0, values, np.nan), color=color, label=label)
    ax.set_yscale("log")
    power_ticks(ax)
    ax.set_ylabel("distance and loss")
    ax.legend(fontsize="small")
    return step_axis(ax, float(trajectory.step[-1]))
