"""Folds of a ReLU network in a plane: the lines on which it is not differentiable, by layer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.sample import Sample
from ...measures.equivalence.folds import FoldSet, Plane, fold_set, plane_of
from .decision_maps import plot_samples
from .figures import Row, entry, legend_above
from .palette import GREEN, GREY, ORANGE, PURPLE, SERIES, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...measures.equivalence.surfaces import FoldSurface
    from ...measures.equivalence.weights import ReLUWeights

# Of the square that the samples span, left free around them.
_MARGIN = 1.1
# Zero sets, by layer: none of the blues and reds of the samples.
_LAYERS = (ORANGE, GREEN, PURPLE, SKY)


def fold_row(networks: Mapping[str, ReLUWeights], train: Sample) -> Row | None:
    """Return a row with the folds of networks, in the plane of the samples' principal components.

    None where the samples span no plane: a network of one input bends at points.
    """
    plane = plane_of(train.X)
    if plane is None:
        return None
    return Row(len(networks), partial(_draw, dict(networks), plane, train), height=4.0)


def _draw(
    networks: Mapping[str, ReLUWeights], plane: Plane, train: Sample, axes: list[Axes]
) -> None:
    points = plane.coordinates(train.X)
    extent = _MARGIN * float(np.abs(points).max())
    for ax, (name, weights) in zip(axes, networks.items(), strict=True):
        plot_samples(ax, points, np.asarray(train.y), size=20.0)
        ax.set(title=f"{name}: where it bends", xlabel=plane.axes[0])
        ax.set(xlim=(-extent, extent), ylim=(-extent, extent))
        plot_folds(fold_set(weights, extent=extent, plane=(plane.origin, plane.basis)), ax)
    axes[0].set_ylabel(plane.axes[1])


def plot_folds(folds: FoldSet, ax: Axes) -> Axes:
    """Draw folds as dots in the layer's colour, and zero sets without a fold as grey rings.

    They lie below what the axes hold already, samples for instance, whose labels come first in the
    legend.
    """
    from matplotlib.artist import Artist

    entries: list[Artist] = list(ax.get_legend_handles_labels()[0])
    for layer in range(len(folds.widths)):
        here = (folds.layer == layer) & folds.bends
        color = _LAYERS[layer % len(_LAYERS)]
        ax.plot(*folds.coordinates[here].T, ".", color=color, markersize=1.5, zorder=2)
        dots = {"color": color, "linestyle": "none", "marker": "."}
        entries.append(entry(f"zero set of layer {layer + 1}", **dots))
    if not folds.bends.all():
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": GREY,
                                 "fillstyle": "none"}  # fmt: skip
        ax.plot(*folds.coordinates[~folds.bends].T, markersize=3, zorder=1, **style)
        entries.append(entry("no bend: hidden by a layer above", **style))
    ax.set_aspect("equal")
    legend_above(ax, entries)
    return ax


def plot_surface(surface: FoldSurface, ax: Axes) -> Axes:
    """Draw the pieces of a fold surface coloured by index, and its dependency graph as arrows.

    An arrow leads from the middle of a piece to that of one that bends at it.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", figure 2.4.
    """
    for ends, index in zip(surface.segments, surface.index, strict=True):
        ax.plot(*ends.T, color=SERIES[(index - 1) % len(SERIES)], linewidth=1.6)
    middles = surface.segments.mean(axis=1)
    style = {"arrowstyle": "->", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
    for a, b in surface.edges:
        ax.annotate("", xytext=tuple(middles[a]), xy=tuple(middles[b]), arrowprops=style)
    indices = range(surface.order)
    legend_above(ax, [entry(f"index {k + 1}", color=SERIES[k % len(SERIES)]) for k in indices])
    ax.set_aspect("equal")
    return ax
