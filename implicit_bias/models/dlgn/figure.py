"""Pictures of a DLGN: half-planes, open paths, overlaps, and scores on the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import to_numpy
from ...data.arrays import Floats, is_planar
from ...data.sample import Sample
from ...gates.layered import LinearGates
from ...limits.kernels.overlap import path_overlap
from ...runs.drawing.decision_maps import DecisionMap, plot_decision_maps
from ...runs.drawing.figures import Row, legend_above
from ...runs.drawing.map_rows import plane_lines
from ...runs.drawing.palette import BLUE, GREEN, NEGATIVE, POSITIVE, SERIES
from .regions import active_paths
from .training import GateTraining

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scorer = Callable[[Floats], Floats]


def plot_half_planes(gating: LinearGates, X: Floats, y: Floats, ax: Axes) -> Axes:
    """The lines of a gating's half-spaces over points of the plane, a colour a layer.

    Raises
    ------
    ValueError
        If inputs are not of the plane.
    """
    if not is_planar(X):
        raise ValueError(f"`X` must be points of the plane, got shape {X.shape}")
    lines = plane_lines(gating.normals(), np.zeros(sum(gating.widths_)), X)
    for layer, part in enumerate(np.split(lines, np.cumsum(gating.widths_)[:-1])):
        for index, (a, b, c) in enumerate(part):
            if a or b:
                foot = np.array([a, b]) * c / (a * a + b * b)
                name = f"layer {layer + 1}" if index == 0 else None
                ax.axline(
                    tuple(foot), tuple(foot + np.array([-b, a])), color=SERIES[layer % len(SERIES)],
                    linewidth=0.7, alpha=0.7, label=name, zorder=1,
                )  # fmt: skip
    for label, color in ((1, POSITIVE), (-1, NEGATIVE)):
        points = X[y == label]
        ax.scatter(points[:, 0], points[:, 1], s=8, color=color, zorder=2)
    reach = 1.1 * float(np.abs(X[:, :2]).max()) or 1.0
    bounds = (-reach, reach)
    ax.set(xlim=bounds, ylim=bounds, aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    legend_above(ax)
    return ax


def plot_overlap_map(
    gates: Floats,
    widths: Sequence[int],
    order: Floats,
    ax: Axes,
    *,
    title: str = "",
    ordered: str = "samples",
) -> Axes:
    """Paths that are open on both of two samples, over the mean of those open on one.

    Samples stand in the order of `order` (n,), which `ordered` says on both axes.
    """
    index = np.argsort(order, kind="stable")
    overlap = path_overlap(gates, widths=widths)[np.ix_(index, index)]
    mean = float(np.trace(overlap)) / len(overlap)
    image = ax.imshow(overlap / (mean or 1.0), cmap="viridis", interpolation="nearest", vmin=0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.046, pad=0.02)
    bar.set_label("paths open on both / mean open")
    ax.set_title(title or "overlap of open paths", fontsize="medium")
    ax.set(xlabel=ordered, ylabel=ordered)
    return ax


def plot_path_density(X: Floats, y: Floats, gates: Floats, widths: Sequence[int], ax: Axes) -> Axes:
    """Logarithm of the number of open paths: by angle on the plane, by class elsewhere."""
    density = active_paths(gates, widths=widths) / np.log(10)
    shown = np.isfinite(density)
    kinds = ((1, POSITIVE, "y = +1"), (-1, NEGATIVE, "y = -1"))
    if is_planar(X):
        angle = np.degrees(np.arctan2(X[:, 1], X[:, 0])) % 360
        for label, color, name in kinds:
            chosen = shown & (y == label)
            ax.plot(angle[chosen], density[chosen], ".", color=color, label=name)
        ax.set(xlabel="angle, degrees", ylabel="log10 of open paths")
    else:
        parts = [density[shown & (y == label)] for label, _, _ in kinds]
        names, colors = [name for *_, name in kinds], [color for _, color, _ in kinds]
        ax.hist(parts, bins=20, color=colors, label=names)
        ax.set(xlabel="log10 of open paths", ylabel="samples")
    legend_above(ax)
    return ax


def plot_gate_losses(training: GateTraining, ax: Axes) -> Axes:
    """The loss with the soft gates that are trained, and with the hard ones they stand for."""
    for name, label, color in (
        ("log_loss", "soft gates", BLUE),
        ("hard_log_loss", "the same gates, hard", GREEN),
    ):
        steps, values = training.along(name)
        ax.plot(steps, values / np.log(10), color=color, marker=".", label=label)
    ax.set_xscale("symlog", linthresh=1)
    ax.set(xlabel="gradient steps of the gates", ylabel="log10 of the loss")
    legend_above(ax)
    return ax


def gates_row(
    training: GateTraining, gating: LinearGates, sample: Sample, widths: Sequence[int]
) -> Row:
    """Losses in the gates' training, half-planes of the plane, open paths, overlaps."""
    gates, X, y = np.asarray(sample.gates, dtype=float), sample.X, sample.y
    order = np.arctan2(X[:, 1], X[:, 0]) % (2 * np.pi) if is_planar(X) else y
    ordered = "samples, by angle" if is_planar(X) else "samples, by class"
    panels = [] if not training.trajectories else [partial(plot_gate_losses, training)]
    if is_planar(X):
        panels.append(partial(plot_half_planes, gating, X, y))
    panels += [
        partial(plot_path_density, X, y, gates, widths),
        partial(plot_overlap_map, gates, widths, order, ordered=ordered),
    ]
    return Row(len(panels), partial(_each, panels))


def decision_row(
    sample: Sample, gating: LinearGates, scorers: Sequence[tuple[str, Scorer, float]]
) -> Row:
    """Decision maps of (title, scores of inputs, norm): the first one separates the samples."""
    lines = plane_lines(gating.normals(), np.zeros(sum(gating.widths_)), sample.X)
    maps = [DecisionMap(title, scorer, norm, lines) for title, scorer, norm in scorers]
    return Row(len(maps), partial(_maps, maps, sample), height=3.6)


def _maps(maps: list[DecisionMap], sample: Sample, axes: list[Axes]) -> None:
    plot_decision_maps(axes, maps, to_numpy(sample.X), to_numpy(sample.y))


def _each(panels: Sequence[Callable[[Axes], Axes]], axes: list[Axes]) -> None:
    for panel, ax in zip(panels, axes, strict=True):
        panel(ax)
