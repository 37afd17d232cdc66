"""Decision maps: functions of the plane drawn as colours, several of them on one scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.solve import require_positive, require_shape, to_numpy
from ...data.arrays import ONE_LABEL, is_planar
from .figures import legend_below
from .palette import NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
Extent = tuple[float, float, float, float]

# Of the square that the samples span, left free around them.
_MARGIN = 0.08


@dataclass(frozen=True)
class DecisionMap:
    """A function of the plane to draw as a decision map, and its scale.

    Attributes
    ----------
    title : str
    scorer : callable
        `scorer(X)` gives the scores (m,) of inputs (m, D) in the form of the data.
    norm : float
        Divides the scores: functions of different size are compared per unit of norm.
    hyperplanes : (K, 3) array, optional
        Rows (a, b, c) of the lines `a x_1 + b x_2 = c` where gates change.
    """

    title: str
    scorer: Callable[[Array], ArrayLike]
    norm: float = 1.0
    hyperplanes: Array | None = None

    def __post_init__(self) -> None:
        require_positive("norm", self.norm)


def plot_decision_map(
    ax: Axes,
    shown: DecisionMap,
    X: ArrayLike,
    y: ArrayLike,
    *,
    largest: float | None = None,
    levels: Sequence[float] = (),
    resolution: int = 201,
) -> Axes:
    """Draw the scores of a function of the plane as colours, its zero level, and samples on top.

    Parameters
    ----------
    ax : Axes
    shown : DecisionMap
    X : (n, D) array
        Samples: points of the plane, with or without a constant last column. The map is a square
        around them.
    y : (n,) array
        Labels in {-1, +1}.
    largest : float, optional
        Where the colours end on both sides; by default at the largest absolute value.
    levels : sequence of float
        Further level lines, dashed, in units of the map's norm.
    resolution : int
        Pixels along each side; the function is evaluated at their centres.

    Returns
    -------
    Axes
        Its first image holds the values, row by row from the bottom.

    Raises
    ------
    ValueError
        If `X` is not planar, or shapes or numbers do not fit.
    """
    X, y = np.asarray(to_numpy(X), dtype=np.float64), np.asarray(to_numpy(y), dtype=np.float64)
    _check_plane(X, y, resolution)
    extent = _square_around(X)
    x1, x2 = _centres(extent, resolution)
    values = _values(shown.scorer, X, x1, x2) / shown.norm
    largest = float(np.abs(values).max()) or 1.0 if largest is None else largest
    ax.imshow(
        values, extent=extent, origin="lower", cmap="RdBu", vmin=-largest, vmax=largest,
        interpolation="nearest", zorder=0,
    )  # fmt: skip
    _hyperplanes(ax, shown.hyperplanes)
    _level_lines(ax, x1, x2, values, levels)
    plot_samples(ax, X, y)
    ax.set(xlim=extent[:2], ylim=extent[2:], aspect="equal")
    return ax


def plot_decision_maps(
    axes: Sequence[Axes], maps: Sequence[DecisionMap], X: ArrayLike, y: ArrayLike, **options: Any
) -> list[Axes]:
    """Draw several functions of the plane on one colour scale, that of the first one.

    Scores are divided by each map's norm and then by the smallest margin of the first map on the
    samples: in these units, whose lines +-1 are drawn dashed, the first map has margin 1. If it
    is a max-margin solution, every other one has a margin of at most 1.

    Parameters
    ----------
    axes : sequence of Axes
        One a map.
    maps : sequence of DecisionMap
        The first one, the limit, has to separate the samples.
    X : (n, D) array
    y : (n,) array
    **options
        `resolution` of `plot_decision_map`.

    Returns
    -------
    list of Axes
        The same axes; a colour bar is added to their figure.

    Raises
    ------
    ValueError
        If there is not one of `axes` for each of the `maps`, or the first one does not separate.
    """
    if len(axes) != len(maps) or not maps:
        raise ValueError(f"`axes` must be one a map, got {len(axes)} for {len(maps)} maps")
    X, y = np.asarray(to_numpy(X), dtype=np.float64), np.asarray(to_numpy(y), dtype=np.float64)
    first = maps[0]
    unit = float(np.min(y * to_numpy(first.scorer(X)))) / first.norm
    if not unit > 0:
        raise ValueError(
            f"the first map, {first.title!r}, must classify every sample correctly: its smallest "
            f"margin sets the scale, and is {unit:g}"
        )
    largest: float | None = None
    for ax, entry in zip(axes, maps, strict=True):
        scaled = replace(entry, norm=entry.norm * unit)
        plot_decision_map(ax, scaled, X, y, largest=largest, levels=(-1, 1), **options)
        largest = ax.images[0].get_clim()[1]
        ax.set_title(entry.title, fontsize="medium")
        ax.set_xlabel("$x_1$")
    axes[0].set_ylabel("$x_2$")
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)
    legend_below(axes[0], columns=2)
    bar = axes[0].figure.colorbar(axes[0].images[0], ax=list(axes), fraction=0.04, pad=0.01)
    bar.set_label("score per norm, in margins")
    return list(axes)


def plot_samples(ax: Axes, points: Array, y: Array, *, size: float = 14.0) -> None:
    """Draw points of the plane as markers of their classes."""
    for label, marker, color in ((1.0, "o", POSITIVE), (-1.0, "^", NEGATIVE)):
        here = points[y == label]
        ax.scatter(
            here[:, 0], here[:, 1], marker=marker, s=size, color=color, edgecolors="white",
            linewidths=0.5, zorder=3, label=f"y = {label:+.0f}",
        )  # fmt: skip


def _check_plane(X: Array, y: Array, resolution: int) -> None:
    if not is_planar(X):
        raise ValueError(
            f"`X` must be points of the plane, (n, 2) or (n, 3) with a constant last column, got "
            f"shape {X.shape}"
        )
    require_shape("y", y, (len(X),), ONE_LABEL)
    if resolution < 2:
        raise ValueError(f"`resolution` must be at least 2, got {resolution}")


def _hyperplanes(ax: Axes, lines: Array | None) -> None:
    lines = np.empty((0, 3)) if lines is None else np.asarray(lines)
    alpha = 0.8 if len(lines) < 10 else 0.4  # those of many units would hide the map
    for a, b, c in lines:
        length = float(np.hypot(a, b))
        if length > 0:
            foot = np.array([a, b]) * c / length**2
            end = foot + np.array([-b, a]) / length
            ax.axline(tuple(foot), tuple(end), color="0.3", linewidth=0.6, alpha=alpha, zorder=1)


def _square_around(X: Array) -> Extent:
    low, high = X[:, :2].min(axis=0), X[:, :2].max(axis=0)
    middle = (low + high) / 2
    half = (0.5 + _MARGIN) * float((high - low).max()) or 1.0
    left, bottom = map(float, middle - half)
    right, top = map(float, middle + half)
    return left, right, bottom, top


def _centres(extent: Extent, resolution: int) -> tuple[Array, Array]:
    share = (np.arange(resolution) + 0.5) / resolution
    left, right, bottom, top = extent
    return left + (right - left) * share, bottom + (top - bottom) * share


def _values(scorer: Callable[[Array], ArrayLike], X: Array, x1: Array, x2: Array) -> Array:
    """Return scores (len(x2), len(x1)) on a grid, with the constant column of `X` if it has one."""
    grid = np.stack(np.meshgrid(x1, x2), axis=-1).reshape(-1, 2)
    inputs = np.tile(X[0], (len(grid), 1))
    inputs[:, :2] = grid
    scores = np.asarray(to_numpy(scorer(inputs)), dtype=np.float64)
    if scores.shape != (len(grid),):
        raise ValueError(
            f"`scorer` must return one score for each of {len(grid)} inputs, got shape "
            f"{scores.shape}"
        )
    return scores.reshape(len(x2), len(x1))


def _level_lines(ax: Axes, x1: Array, x2: Array, values: Array, levels: Sequence[float]) -> None:
    # Matplotlib warns about levels that are nowhere reached.
    low, high = float(values.min()), float(values.max())
    if low < 0 < high:
        ax.contour(x1, x2, values, levels=[0.0], colors="black", linewidths=1.6, zorder=2)
    reached = sorted(level for level in levels if low < level < high)
    if reached:
        ax.contour(
            x1, x2, values, levels=reached, colors="black", linewidths=0.7, linestyles="dashed",
            zorder=2,
        )  # fmt: skip
