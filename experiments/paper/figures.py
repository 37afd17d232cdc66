"""The panels of the figures: ours filled, the published points hollow, axes as the captions say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from implicit_bias.runs.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, Row, compose

from .points import MEASURED
from .settings import AT_MOST, FULL, PUBLISHED, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

NETWORK: Final = "network"
SHALLOW: Final = "shallow"  # in the panel of the best alone
# Programs of the panels, in the order of their legends.
COLORS: Mapping[str, str] = {
    "svm-gln": BLUE, "svm-l2": VERMILLION, SHALLOW: GREEN,
    "svm-hl": BLUE, "svm-lc": GREEN, "svm-rc": VERMILLION, "gates-only": ORANGE,
}  # fmt: skip
# Of programs with the errors of the published ones.
AS_PRINTED = "-printed"
PERCENT = 100.0
# A network of this error was thrown off by its steps: it would hide the others. Shallow networks
# of many contexts have a sample or two in each, and such errors at their limits too.
AT_CHANCE = 0.4
SIZES = ["n_train", "hidden_units", "contexts"]
SETTING = ["program", *SIZES, "cutoffs", "momentum", "trainer"]


def draw(figure: Figure, ours: pd.DataFrame, published: pd.DataFrame, *, data: str) -> Picture:
    """Draw a figure: errors, labels that differ and the best of all sizes; then errors by size.

    Points are means over seeds with their deviations.

    Parameters
    ----------
    figure : Figure
    ours, published : DataFrame
        Points, as `points` makes them.
    data : str
        Of our points; those of the paper are of MNIST's training images.
    """
    published = published[~(published["hidden_units"] > AT_MOST)]
    thrown_off = (ours["error_network"] > AT_CHANCE) & (ours["program"] != SHALLOW)
    n_off = len(ours[thrown_off].drop_duplicates([*SIZES, "seed", "cutoffs", "momentum"]))
    rows, by_size = [], []
    with_errors = bool(ours["program"].str.endswith(AS_PRINTED).any())
    for choice in figure.choices:
        mine, theirs = (_chosen(one, figure.by, choice) for one in (ours[~thrown_off], published))
        head = f"{choice} cutoffs" if figure.by == "cutoffs" else f"momentum {choice}"
        for errata in (False, True) if with_errors else (False,):
            shown, title, beside = mine, head, theirs
            if errata:
                shown, title = _with_errors(mine), f"{head}: programs as published, errors included"
                beside = theirs[theirs["program"] != SHALLOW]
            rows.append(Row(3, partial(_panels, figure, shown, beside, title), 3.4))
        for contexts in figure.contexts:
            title = head if contexts is None else f"{head}, {contexts} contexts"
            same = [
                one[one["contexts"].isna() if contexts is None else one["contexts"] == contexts]
                for one in (mine, theirs)
            ]
            by_size.append(
                Row(len(FULL["n_train"]), partial(_by_size, same[0], same[1], title), 2.8)
            )
    head = (
        f"{figure.title}. Filled: {data}; hollow, dotted: as published; crosses: networks brought "
        "to the limit.\nMeans over seeds with their deviations"
    )
    if n_off:
        head += (
            "; 1 network that was thrown off and stays at chance is left out" if n_off == 1 else
            f"; {n_off} networks that were thrown off and stay at chance are left out"
        )  # fmt: skip
    return compose([*rows, *by_size], title=head)


def _chosen(points: pd.DataFrame, by: str, choice: object) -> pd.DataFrame:
    """Return the points of one row of panels: what has no such choice is in every row."""
    own = points[by].to_numpy(dtype=object)
    free = (points["trainer"] != PUBLISHED) | points["contexts"].notna()
    return points[(own == choice) | (free if by == "momentum" else points[by].isna())]


def _with_errors(points: pd.DataFrame) -> pd.DataFrame:
    """Return the programs with the errors of the published ones, under the names of the others."""
    found = points[points["program"].str.endswith(AS_PRINTED)]
    return found.assign(program=found["program"].str.removesuffix(AS_PRINTED))


def _means(points: pd.DataFrame) -> pd.DataFrame:
    """Return a row a setting: means over seeds, and deviations of the same names with "_std"."""
    known = points.dropna(subset=["error_program"])
    groups = known.groupby(SETTING, dropna=False)[list(MEASURED)]
    return groups.mean().join(groups.std().fillna(0.0).add_suffix("_std")).reset_index()


def _networks(points: pd.DataFrame) -> pd.DataFrame:
    """Return the means of networks alone, whether or not a program beside them has a solution."""
    once = points.drop_duplicates([*SETTING[1:], "seed"])
    return _means(once.assign(program=NETWORK, error_program=once["error_network"]))


def _panels(
    figure: Figure, ours: pd.DataFrame, published: pd.DataFrame, title: str, axes: list[Axes]
) -> None:
    errors, labels, best = axes
    mine, theirs = _means(ours), _means(published)
    recipe = (mine["trainer"] == PUBLISHED) | mine["trainer"].isna()
    for name in _programs(figure, mine, theirs):
        if name == SHALLOW:
            continue
        for points, style in (
            (theirs, {"marker": "o", "markerfacecolor": "none", "alpha": 0.45}),
            (mine[recipe], {"marker": "o"}),
            (mine[~recipe], {"marker": "x"}),
        ):
            own = points[points["program"] == name]
            _scatter(errors, own, "error_program", "error_network", name, style)
            _scatter(labels, own, "error_network", "inconsistency", name, style)
        errors.plot([], [], "o", color=COLORS[name], markersize=4, label=_said(name))
    program, network = "error of the program, %", "error of the network, %"
    for ax, x, y, label in (
        (errors, program, network, "equal"),
        (labels, network, "labels that differ, %", "2 p (1 - p)"),
    ):
        p = np.linspace(0.0, ax.get_xlim()[1] / PERCENT, 50)
        low, high = ax.get_ylim()
        grey = p if ax is errors else 2 * p * (1 - p)
        ax.plot(PERCENT * p, PERCENT * grey, color=GREY, linewidth=0.8, zorder=0, label=label)
        high = high if ax is errors else max(high, PERCENT * grey[-1])
        ax.set(xlabel=x, ylabel=y, xlim=(0.0, PERCENT * p[-1]), ylim=(min(0.0, low), high))
        ax.legend(fontsize="x-small", frameon=False)
    for points, dash in ((published, ":"), (ours, "-")):
        for label, color, shown in _best(figure, points):
            _line(best, shown, color, dash, label)
    _finish(best, "training samples", "least error, %")
    errors.set_title(title, loc="left", fontsize="medium")


def _programs(figure: Figure, *tables: pd.DataFrame) -> list[str]:
    """Return the programs of a figure that a table has points of."""
    known = set().union(*(one["program"] for one in tables))
    return [name for name in COLORS if name in known and name not in figure.beside]


def _said(name: str) -> str:
    if name == SHALLOW:
        return "shallow GLN, SVM"
    return name.upper() if name.startswith("svm") else name


def _scatter(
    ax: Axes, points: pd.DataFrame, across: str, up: str, name: str, style: Mapping[str, Any]
) -> None:
    known = points.dropna(subset=[across, up])
    if known.empty:
        return
    x, y = (PERCENT * known[one] for one in (across, up))
    bars = (PERCENT * known[f"{one}_std"] for one in (across, up))
    ax.errorbar(
        x, y, *reversed(list(bars)), color=COLORS[name], linestyle="none", markersize=4,
        elinewidth=0.5, **style,
    )  # fmt: skip


def _best(figure: Figure, points: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield label, colour and least mean errors by the number of samples, with deviations."""
    points = points[(points["trainer"] == PUBLISHED) | points["trainer"].isna()]
    means = _means(points)
    for name in _programs(figure, means):
        yield _said(name), COLORS[name], _least(means[means["program"] == name])
    for name in figure.beside:
        yield f"deep GLN, {_said(name)}", GREY, _least(means[means["program"] == name])
    own = points[~points["program"].isin(figure.beside)]
    shallow = own["program"] == SHALLOW
    yield NETWORK, BLACK, _least(_networks(own[~shallow]))
    if shallow.any():
        yield "shallow network", GREY, _least(_networks(own[shallow]))


def _least(means: pd.DataFrame) -> pd.DataFrame:
    known = means.dropna(subset=["error_program"])
    least = known.loc[known.groupby("n_train")["error_program"].idxmin()]
    return least.set_index("n_train")[["error_program", "error_program_std"]]


def _by_size(ours: pd.DataFrame, published: pd.DataFrame, title: str, axes: list[Axes]) -> None:
    """Draw errors of programs and networks over hidden units, a panel a number of samples."""
    mine, theirs = (one[one["program"] != SHALLOW] for one in (ours, published))
    for ax, n in zip(axes, FULL["n_train"], strict=True):
        for points, style in ((theirs, ":"), (mine, "-")):
            here = points[points["n_train"] == n]
            limit = here["trainer"] != PUBLISHED
            means = _means(here[~limit])
            for name, color in COLORS.items():
                for printed, dash in (("", style), (AS_PRINTED, "--")):
                    own = means[means["program"] == name + printed]
                    label = f"{_said(name)}, as published" if printed else _said(name)
                    _line(ax, own.set_index("hidden_units"), color, dash, label)
            networks = _networks(here[~limit]).set_index("hidden_units")
            _line(ax, networks, BLACK, style, NETWORK)
            near = _networks(here[limit]).set_index("hidden_units")
            _line(ax, near, GREY, "-", "network, to the limit", marker="x")
        _finish(ax, "hidden units", "error, %")
        ax.set_title(f"{title}, {n} samples", loc="left", fontsize="medium")


def _line(
    ax: Axes, shown: pd.DataFrame, color: str, style: str, label: str, *, marker: str = "o"
) -> None:
    """Draw the errors of means over the index, with their deviations as bars."""
    shown = shown[["error_program", "error_program_std"]].dropna()
    if shown.empty:
        return
    values, bars = (PERCENT * shown[name] for name in shown)
    ax.errorbar(
        shown.index, values, bars, color=color, linestyle=style, marker=marker, markersize=4,
        markerfacecolor="none" if style == ":" else color, elinewidth=0.7,
        label="_" if style == ":" else label,
    )  # fmt: skip


def _finish(ax: Axes, x: str, y: str) -> None:
    ax.set(xlabel=x, ylabel=y, xscale="log")
    ticks = np.unique([one for line in ax.lines for one in np.asarray(line.get_xdata(), float)])
    ax.set_xticks(ticks, [f"{one:.0f}" for one in ticks])
    ax.set_xticks([], minor=True)
    if named := ax.get_legend_handles_labels()[0]:
        low, high = ax.get_ylim()
        ax.set_ylim(top=high + 0.04 * len(named) * (high - low))  # the legend hides no line
        ax.legend(fontsize="x-small", frameon=False, handlelength=3)
