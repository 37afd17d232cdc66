"""Columns of a sweep against one of its options."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..runs.drawing.figures import compose, legend_above, panel_rows
from .table import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More lines in one panel cannot be distinguished.
LINES = 8


def sweep_figure(groups: Sequence[Group], by: Sequence[str], columns: Sequence[str]) -> Figure:
    """Draw columns, a panel each: mean and spread against the first choice of `by`.

    Raises
    ------
    ValueError
        If the further choices make more lines than a picture can show.
    """
    lines = {group.choices[1:] for group in groups}
    if len(lines) > LINES:
        raise ValueError(
            f"{len(lines)} lines in a panel cannot be distinguished: pick one value of "
            f"{', '.join(by[1:])} by --where NAME=VALUE, or name fewer by --by"
        )
    panels = [partial(plot_groups, groups, by, name) for name in columns]
    return compose(panel_rows(panels), title=f"{', '.join(columns)} against {by[0]}")


def plot_groups(groups: Sequence[Group], by: Sequence[str], column: str, ax: Axes) -> None:
    """Draw one column of groups against their first choice, a line for each of the others."""
    order = list(dict.fromkeys(group.choices[0] for group in groups))
    numeric = all(isinstance(value, int | float) for value in order)
    for line in dict.fromkeys(group.choices[1:] for group in groups):
        own = [group for group in groups if group.choices[1:] == line]
        x = [group.choices[0] if numeric else order.index(group.choices[0]) for group in own]
        means = [group.mean[column] for group in own]
        bars = np.nan_to_num([group.spread[column] for group in own])
        label = ", ".join(f"{name} {value}" for name, value in zip(by[1:], line, strict=True))
        ax.errorbar(x, means, yerr=bars, marker="o", markersize=4, capsize=2, label=label or None)
    if not numeric:
        ax.set_xticks(range(len(order)), [str(value) for value in order])
    ax.set_xlabel(by[0])
    ax.set_ylabel(column)
    legend_above(ax)
