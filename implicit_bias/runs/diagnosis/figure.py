"""Pictures of a diagnosis: margins beside the limit's, units, the course of the margin ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...quantities.table import TABLE
from ..drawing.figures import UNIT_SHARE
from ..drawing.palette import BLUE, GREEN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def plot_margins_beside(own: Array, limit: Array | None, ax: Axes) -> Axes:
    """Draw margins from small to large, at smallest margin 1, beside those of the limit."""
    place = np.arange(1, len(own) + 1)
    ax.plot(place, own, color=BLUE, marker=".", linestyle="none", label="network")
    if limit is not None:
        ax.plot(place, limit, color=GREEN, linewidth=1, label="limit")
        ax.legend(frameon=False)
    ax.axhline(1, color="0.6", linewidth=0.8)
    ax.set_yscale("log")
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("training samples, from the smallest margin on")
    ax.set_ylabel("margin over the smallest")
    return ax


def plot_unit_shares(share: Array, limit: Array | None, dual_norms: Array, ax: Axes) -> Axes:
    """Draw each unit's share of the norm over its dual norm, with the limit's share."""
    ax.plot(dual_norms, share, color=BLUE, marker="o", linestyle="none", label="network")
    if limit is not None:
        ax.plot(dual_norms, limit, color=GREEN, marker="_", linestyle="none", label="limit")
        ax.legend(frameon=False)
    ax.axvline(1, color="0.6", linewidth=0.8)
    ax.set_xlabel(TABLE["largest_dual_norm"].label.replace("largest ", ""))
    ax.set_ylabel(UNIT_SHARE)
    return ax


def plot_ratio(log_inverse_loss: Array, ratio: Array, ax: Axes) -> Axes:
    """Draw the margin ratio over log(1/loss), where the network separates its data."""
    seen = (log_inverse_loss > 0) & (ratio > 0)
    ax.plot(log_inverse_loss[seen], ratio[seen], color=BLUE, marker=".")
    ax.axhline(1, color="0.6", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlabel(TABLE["log_inverse_loss"].label)
    ax.set_ylabel(TABLE["margin_ratio"].label)
    return ax
