"""The panels of the figures: ours filled, the published points hollow, axes as printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from implicit_bias.drawing import BLUE, GREEN, ORANGE, VERMILLION, Row, compose

from .settings import PUBLISHED, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

__all__ = ["AS_PRINTED", "draw"]

COLORS: Mapping[str, str] = {
    "svm-gln": BLUE, "svm-l2": VERMILLION, "shallow": GREEN,
    "svm-hl": BLUE, "svm-lc": GREEN, "svm-rc": VERMILLION, "gates-only": ORANGE,
}  # fmt: skip
# Of programs with the errors of the published ones.
AS_PRINTED = "-printed"
PERCENT = 100.0


def draw(figure: Figure, ours: pd.DataFrame, published: pd.DataFrame, *, data: str) -> Picture:
    """Draw a figure.

    Parameters
    ----------
    figure : Figure
    ours, published : DataFrame
        Points, as `points` makes them.
    data : str
        Of our points; those of the paper are of MNIST's training images.
    """
    rows = []
    for choice in figure.choices:
        mine, theirs = (_chosen(one, figure.by, choice) for one in (ours, published))
        rows.append(Row(4, lambda axes, a=mine, b=theirs, c=choice: _panels(axes, a, b, c), 3.6))  # type: ignore[misc]
    head = f"{figure.title}. Filled: {data}; hollow: as published; crosses: brought to the limit"
    if ours["program"].str.endswith(AS_PRINTED).any():
        head += ";\nsquares, dashed: programs and comparison with the errors of the published ones"
    return compose(rows, title=head)


def _chosen(points: pd.DataFrame, by: str, choice: object) -> pd.DataFrame:
    """Return the points of one row of panels: what has no such choice is in every row."""
    own = points[by].to_numpy(dtype=object)
    free = points[by].isna() | (points["trainer"] != PUBLISHED) if by == "momentum" else False
    return points[(own == choice) | free]


def _panels(axes: list[Axes], ours: pd.DataFrame, published: pd.DataFrame, choice: object) -> None:
    errors, labels, best, sizes = axes
    for name, color in COLORS.items():
        mine, theirs = (one[one["program"] == name] for one in (ours, published))
        same = ours[ours["program"] == name + AS_PRINTED]
        for points, style in _styles(mine, theirs, same, color):
            x = PERCENT * points["error_network"]
            errors.plot(x, PERCENT * points["error_program"], **style)
            labels.plot(x, PERCENT * points["inconsistency"], **style)
        if len(mine) or len(theirs):
            errors.plot([], [], "o", color=color, markersize=4, label=name)
        lines = {":": theirs, "--": same, "-": mine}
        _by(best, lines, color, "n_train", best=True)
        if name != "shallow":
            two = {style: one[one["contexts"].isna() | (one["contexts"] == 2)]
                   for style, one in lines.items()}  # fmt: skip
            _by(sizes, two, color, "hidden_units")
    span = np.array(errors.get_xlim())
    errors.plot(span, span, color="0.6", linewidth=0.8, zorder=0)
    p = span / PERCENT
    labels.plot(span, PERCENT * 2 * p * (1 - p), color="0.6", linewidth=0.8, label="2 p (1 - p)")
    errors.set(xlabel="error of the network, %", ylabel="error of the program, %")
    labels.set(xlabel="error of the network, %", ylabel="labels that differ, %")
    best.set(xlabel="training samples", ylabel="least error of the program, %", xscale="log")
    sizes.set(xlabel="hidden units (2 contexts)", ylabel="error of the program, %", xscale="log")
    errors.set_title(str(choice) if isinstance(choice, str) else f"momentum {choice}")
    errors.legend(fontsize="x-small", frameon=False)
    labels.legend(fontsize="x-small", frameon=False)


def _styles(
    mine: pd.DataFrame, theirs: pd.DataFrame, same: pd.DataFrame, color: str
) -> list[tuple[pd.DataFrame, dict]]:  # type: ignore[type-arg]
    recipe = mine["trainer"] == PUBLISHED
    shared = {"linestyle": "none", "color": color, "markersize": 4}
    return [
        (theirs, shared | {"marker": "o", "markerfacecolor": "none", "alpha": 0.5}),
        (same, shared | {"marker": "s", "alpha": 0.7}),
        (mine[recipe], shared | {"marker": "o"}),
        (mine[~recipe], shared | {"marker": "x"}),
    ]


def _by(
    ax: Axes, lines: Mapping[str, pd.DataFrame], color: str, column: str, *, best: bool = False
) -> None:
    """Draw mean errors, or least ones over sizes, with their spread over seeds."""
    for style, points in lines.items():
        known = points.dropna(subset=["error_program"])
        if known.empty:
            continue
        if best:
            settings = ["n_train", "hidden_units", "contexts"]
            means = known.groupby(settings, dropna=False)["error_program"].mean()
            shown = means.groupby("n_train").min()
            spread = 0.0 * shown
        else:
            groups = known.groupby(["n_train", column])["error_program"]
            # The least number of samples, which small and full sweeps share.
            least = known["n_train"].min()
            shown, spread = groups.mean().loc[least], groups.std().fillna(0.0).loc[least]
        ax.errorbar(
            shown.index, PERCENT * shown, PERCENT * spread, color=color, linestyle=style,
            marker="s" if style == "--" else "o", markersize=4,
            markerfacecolor="none" if style == ":" else color,
        )  # fmt: skip
