"""Columns of a sweep against one of its options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runs.drawing.figures import compose, legend_above, panel_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More lines in one panel cannot be distinguished.
LINES = 8


def sweep_figure(averages: pd.DataFrame, columns: Sequence[str]) -> Figure:
    """Draw columns, a panel each: mean and spread against the first choice of the averages.

    Raises
    ------
    ValueError
        If the further choices make more lines than a picture can show.
    """
    first, *further = averages.index.names
    n_lines = len(_lines(averages))
    if n_lines > LINES:
        raise ValueError(
            f"{n_lines} lines in a panel cannot be distinguished: pick one value of "
            f"{', '.join(further)} by --where NAME=VALUE, or name fewer by --by"
        )
    panels = [partial(plot_averages, averages, name) for name in columns]
    return compose(panel_rows(panels), title=f"{', '.join(columns)} against {first}")


def plot_averages(averages: pd.DataFrame, column: str, ax: Axes) -> None:
    """Draw one column of averages against their first choice, a line for each of the others."""
    first, *further = averages.index.names
    order = averages.index.unique(first).tolist()
    numeric = all(isinstance(value, int | float) for value in order)
    for line, own in _lines(averages):
        x = own.index.get_level_values(first).tolist()
        label = ", ".join(f"{name} {value}" for name, value in zip(further, line, strict=True))
        ax.errorbar(
            x if numeric else [order.index(value) for value in x],
            own[column],
            yerr=np.nan_to_num(own[f"{column}_spread"]),
            marker="o", markersize=4, capsize=2, label=label or None,
        )  # fmt: skip
    if not numeric:
        ax.set_xticks(range(len(order)), [str(value) for value in order])
    ax.set_xlabel(first)
    ax.set_ylabel(column)
    legend_above(ax)


def _lines(averages: pd.DataFrame) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return the averages that share all choices but the first, behind these choices."""
    further = averages.index.names[1:]
    if not further:
        return [((), averages)]
    return list(averages.groupby(level=list(further), dropna=False, sort=False))
