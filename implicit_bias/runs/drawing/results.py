"""Pictures of single results, drawn by their method `plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import to_numpy
from ...limits.limit import Limit
from ...measures.comparison import Comparison
from ...quantities.table import TABLE
from ...training.trajectory import Trajectory
from .palette import BLUE, GREEN
from .runs import step_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More curves than these are drawn thin.
FEW = 8
# What the axis of dual norms shows at least on both sides of 1: less is rounding.
AROUND = 0.01


def plot_quantity(trajectory: Trajectory, name: str | None, ax: Axes) -> Axes:
    """Draw a quantity of a trajectory over its steps.

    Parameters
    ----------
    trajectory : Trajectory
        Training to draw.
    name : str or None
        Name of one of its arrays or observed quantities, a number or a vector per checkpoint; None
        for the normalised margin, or log(1/loss) if there is none.
    ax : matplotlib axes

    Raises
    ------
    ValueError
        If there is no such quantity.
    """
    if name is None and np.isnan(trajectory.normalised_margin).all():
        values, label = -trajectory.log_loss, "log(1/loss)"
    else:
        label = name or "normalised_margin"
        values = trajectory.quantity(label)
    width = 1.5 if values.ndim == 1 or values.shape[1] <= FEW else 0.8
    ax.plot(trajectory.step, values, linewidth=width)
    ax.set_ylabel(label.replace("_", " "))
    if label in TABLE and TABLE[label].ideal == 1:
        ax.axhline(1, color="0.6", linewidth=0.8)
        if np.nanmax(values, initial=0) > 0:
            # Far below 0 before data are separated: nothing of interest beside the way to 1.
            ax.set_ylim(0, 1.05 * max(1.0, float(np.nanmax(values))))
    return step_axis(ax, trajectory.step[-1])


def plot_ordered_margins(limit: Limit, ax: Axes) -> Axes:
    """Draw the margins of a limit from small to large: support vectors have margin 1."""
    margins, support = to_numpy(limit.margins), to_numpy(limit.support).astype(bool)
    order = np.argsort(margins, kind="stable")
    place = np.arange(1, len(margins) + 1)
    for shown, color, label in (
        (~support[order], BLUE, "other samples"),
        (support[order], GREEN, TABLE["n_support"].label),
    ):
        ax.plot(place[shown], margins[order][shown], ".", color=color, label=label)
    ax.axhline(1, color="0.6", linewidth=0.8)
    ax.set_xlabel("samples, by their margins")
    ax.set_ylabel("margin of the limit")
    ax.set_title(f"{type(limit).__name__}: {limit.status.name}, gap {limit.gap:.1e}")
    ax.legend(frameon=False)
    return ax


def plot_dual_norms(comparison: Comparison, ax: Axes) -> Axes:
    """Draw the dual norms of a network's units, at most 1 in the limit.

    Raises
    ------
    ValueError
        If they are not known.
    """
    if not comparison.dual_norms:
        raise ValueError(
            "this comparison has no dual norms to draw: the network has no units, or does not "
            "separate its data yet"
        )
    from matplotlib.ticker import MaxNLocator

    norms, small = np.array(comparison.dual_norms), list(comparison.small_units)
    ax.plot(norms, ".", color=BLUE)
    ax.plot(small, norms[small], "kx", label="wrongly small")
    ax.axhline(1, color="0.6", linewidth=0.8)
    ax.set_ylim(min(ax.get_ylim()[0], 1 - AROUND), max(ax.get_ylim()[1], 1 + AROUND))
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_xlim(-0.5, len(norms) - 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.set_xlabel("unit")
    ax.set_ylabel("dual norm (at most 1 in the limit)")
    ax.set_title(f"{TABLE['margin_ratio'].label} {comparison.text('margin_ratio')}")
    if small:
        ax.legend(frameon=False)
    return ax
