"""The spectra of a convolution on its way to its limit, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import Array, to_numpy
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLACK
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 3


def plot_spectra(trajectory: Trajectory, limit: Array, ax: Axes) -> Axes:
    """Draw the share of each frequency in the sum of all, at steps of training and in the limit.

    Parameters
    ----------
    trajectory : Trajectory
        Of a network whose units are frequencies.
    limit : (H,) array
        Their sizes in the limit, those of a conjugate pair as one.
    ax : Axes
    """
    from matplotlib import colormaps

    norms, predicted = trajectory.unit_norms, np.asarray(to_numpy(limit))
    rows = np.unique(np.linspace(0, len(norms) - 1, SHOWN).astype(int))
    order = np.argsort(-predicted)
    for row, shade in zip(rows, np.linspace(0.15, 0.9, len(rows)), strict=True):
        label = f"step {int(trajectory.step[row])}"
        share = norms[row, order] / norms[row].sum()
        ax.plot(share, color=colormaps["Blues"](shade), label=label)
    shown = predicted[order] / predicted.sum()
    ax.plot(shown, ".", color=BLACK, label="limit", zorder=3)
    ax.set(xlabel="frequencies, those of the limit first", ylabel="share of |F b|")
    legend_above(ax)
    return ax
