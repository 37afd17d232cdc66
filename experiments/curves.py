"""Curves over repetitions of a run: their mean, and their range as a band."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def mean_and_range(
    ax: Axes, table: pd.DataFrame, x: str, y: str, style: str = "-", *, color: str, alpha: float,
    factor: float = 1.0, **look: Any,
) -> None:  # fmt: skip
    """Draw `factor` times the mean of `y` over the rows of each `x`, and a band of its range.

    `look` goes to the curve.
    """
    by_x = (factor * table.set_index(x)[y]).groupby(level=0)
    mean = by_x.mean()
    ax.plot(mean.index, mean, style, color=color, **look)
    ax.fill_between(mean.index, by_x.min(), by_x.max(), color=color, alpha=alpha, linewidth=0)
