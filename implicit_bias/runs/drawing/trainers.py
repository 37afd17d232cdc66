"""Panels that compare several trainers from the same weights, one colour per trainer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import to_numpy
from ...quantities.table import TABLE
from ...training.trajectory import Trajectory
from .figures import PREDICTED, Panel, entry, legend_above
from .palette import SERIES
from .runs import (
    DIFFERENCE,
    KKT_DISTANCE,
    labels_differ,
    log_step_axes,
    margin_ratios,
    plot_unit_norms,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...limits.exact.multiclass import MarginLimit

Array = NDArray[np.float64]
Curves = Mapping[str, Array]  # (T,) values by what they are, the first drawn solid
STYLES = ("-", "--", ":")


def trainer_panels(
    trajectories: Mapping[str, Trajectory],
    limit: MarginLimit,
    scores: Array,
    name: str = PREDICTED,
) -> list[Panel]:
    """Return panels with one curve per trainer, and a panel of unit norms for each trainer.

    Parameters
    ----------
    trajectories : mapping of trainer to Trajectory
        At least one.
    limit : Limit
        The limit that all are compared with.
    scores : (m,) array
        The limit's scores on the inputs that the trajectories have scores of.
    name : str
        Name of the limit in legends.
    """
    runs = dict(trajectories)
    measured: dict[str, Mapping[str, Curves]] = {
        TABLE["margin_ratio"].distance_label: {
            key: _lacking(run, limit) for key, run in runs.items()
        },
        DIFFERENCE: {key: _differing(run, scores) for key, run in runs.items()},
        KKT_DISTANCE: {key: _kkt(run) for key, run in runs.items()},
        TABLE["log_inverse_loss"].label: {key: {"": -run.log_loss} for key, run in runs.items()},
    }
    panels: list[Panel] = [
        partial(plot_trainer_curves, runs, curves, ylabel)
        for ylabel, curves in measured.items()
        if any(np.any(values > 0) for of_run in curves.values() for values in of_run.values())
    ]
    several = {key: run for key, run in runs.items() if run.unit_norms.shape[1] > 1}
    return panels + [
        label_trainer(trainer, partial(plot_unit_norms, run, limit=limit, name=name))
        for trainer, run in several.items()
    ]


def label_trainer(trainer: str, panel: Panel) -> Panel:
    """Return a panel whose y label ends in the name of its trainer."""
    return partial(_named, trainer, panel)


def plot_trainer_curves(
    trajectories: Mapping[str, Trajectory],
    curves: Mapping[str, Curves],
    ylabel: str,
    ax: Axes,
) -> Axes:
    """Draw the curves of every trainer where they are positive, on logarithmic axes.

    Parameters
    ----------
    trajectories : mapping of trainer to Trajectory
    curves : mapping of trainer to mapping of name to (T,) array
        By the same names for all: a name is a line style, and the first needs no word in the
        legend if it is empty.
    ylabel : str
    ax : Axes
    """
    styles: dict[str, str] = {}
    last = max(float(run.step[-1]) for run in trajectories.values())
    first = last
    for color, (trainer, of_run) in zip(_colors(len(curves)), curves.items(), strict=True):
        for style, (name, values) in zip(STYLES, of_run.items(), strict=False):
            shown = values > 0
            if shown.any():
                steps = trajectories[trainer].step[shown]
                first = min(first, float(steps[0]))
                ax.plot(steps, values[shown], style, color=color, marker=".", markersize=4)
                styles[name] = style
    _legend(ax, list(curves), styles)
    return log_step_axes(ax, ylabel, last, first=first)


def _legend(ax: Axes, trainers: list[str], styles: Mapping[str, str]) -> None:
    colors = zip(trainers, _colors(len(trainers)), strict=True)
    entries = [entry(trainer, color=color) for trainer, color in colors]
    words = {name: style for name, style in styles.items() if name}
    entries += [entry(name, color="0.2", linestyle=style) for name, style in words.items()]
    legend_above(ax, entries)


def _colors(n: int) -> list[str]:
    return [SERIES[i % len(SERIES)] for i in range(n)]


def _lacking(run: Trajectory, limit: MarginLimit) -> Curves:
    """Return 1 - exact margin ratio; NaN for a ratio below 0, which is no distance."""
    ratio = margin_ratios(run, limit).get("exact")
    return {} if ratio is None else {"": np.where(ratio > 0, 1 - ratio, np.nan)}


def _differing(run: Trajectory, scores: Array) -> Curves:
    differ = labels_differ(run.scores, to_numpy(scores))
    found: dict[str, Any] = {"labels": differ.mean(axis=1)}
    if "zeta_cosine" in run.observed:
        found[TABLE["zeta_cosine"].distance_label] = 1 - run.observed["zeta_cosine"]
    return found


def _kkt(run: Trajectory) -> Curves:
    names = {"kkt_residual": "residual", "kkt_complementarity": "complementarity"}
    return {label: run.observed[key] for key, label in names.items() if key in run.observed}


def _named(trainer: str, panel: Panel, ax: Axes) -> Axes:
    panel(ax)
    ax.set_ylabel(f"{ax.get_ylabel()}: {trainer}")
    return ax
