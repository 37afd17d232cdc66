"""Pictures of a ReLU network on orthogonally separable data; each takes and returns axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._support.extras import naming_extras
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import BLUE, GREY, VERMILLION
from .diagnosis import OrthosepDiagnosis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Style(NamedTuple):
    group: int
    name: str
    color: str
    marker: str


_GROUPS = (
    _Style(1, "positive", VERMILLION, "o"),
    _Style(-1, "negative", BLUE, "s"),
    _Style(0, "dead", GREY, "x"),
)


@naming_extras()
def plot_orthosep(
    diagnosis: OrthosepDiagnosis,
    axes: Sequence[Axes] | None = None,
    *,
    layers: Sequence[NDArray[np.float64]] = (),
) -> list[Axes]:
    """Draw singular values, neurons in their top plane, and the histogram of cosines.

    Parameters
    ----------
    diagnosis : OrthosepDiagnosis
    axes : three matplotlib Axes, optional
        By default those of a new figure, which is `axes[0].figure`.
    layers : sequence of descending arrays
        Singular values of every layer of a deeper network, for the first panel; by default those
        of the first layer alone stand there.

    Returns
    -------
    list of three Axes

    Raises
    ------
    ValueError
        If `axes` are not three.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", figure 3.1.
    """
    if axes is None:
        import matplotlib.pyplot as plt

        _, row = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
        axes = list(row)
    if len(axes) != 3:
        raise ValueError(f"`axes` must be three Axes, one a panel, got {len(axes)}")
    first = plot_layers(layers, axes[0]) if layers else plot_singular_values(diagnosis, axes[0])
    return [first, plot_neurons(diagnosis, axes[1]), plot_cosines(diagnosis, axes[2])]


def plot_singular_values(diagnosis: OrthosepDiagnosis, ax: Axes, *, largest: int = 10) -> Axes:
    """Draw the `largest` singular values of the first layer, relative to the first."""
    values = diagnosis.singular_values[:largest]
    shares = values / (values[0] or 1.0) if len(values) else values
    ax.plot(np.arange(1, len(shares) + 1), shares, "o", color="black", clip_on=False)
    ax.set(title="Singular values of W", xlabel="index (the limit has rank 2)")
    ax.set_ylabel("share of the largest")
    return _by_index(ax, max(len(shares), 2))


def plot_layers(layers: Sequence[NDArray[np.float64]], ax: Axes, *, largest: int = 10) -> Axes:
    """Draw the `largest` singular values of every layer, relative to its first.

    Parameters
    ----------
    layers : sequence of descending arrays
        Those with one value, output layers, are left out.
    ax : Axes
    """
    for number, (values, marker) in enumerate(zip(layers, "os^vDP<>", strict=False), start=1):
        if len(values) > 1:
            shares = values[:largest] / (values[0] or 1.0)
            ax.plot(
                np.arange(1, len(shares) + 1), shares, marker=marker, alpha=0.8, linewidth=0.8,
                label=f"W_{number}", clip_on=False,
            )  # fmt: skip
    ax.set(title="Singular values of every layer", xlabel="index (rank 2 is conjectured)")
    ax.set_ylabel("share of the layer's largest")
    legend_above(_by_index(ax, largest))
    return ax


def _by_index(ax: Axes, last: int) -> Axes:
    """Let shares stand over indices from 1, with a line after the second."""
    ax.axvline(2.5, color=GREY, linestyle=":", linewidth=1)
    ax.set(xlim=(0.5, last + 0.5), ylim=(0, 1.05), xticks=np.arange(1, last + 1))
    return ax


def plot_neurons(diagnosis: OrthosepDiagnosis, ax: Axes) -> Axes:
    """Draw the neurons in the plane of the top two singular directions, and the two limit rays.

    Lengths are shares of the longest neuron's; the two axes have scales of their own, since the
    rays are often nearly opposite.
    """
    plane = diagnosis.plane / (float(diagnosis.norms.max(initial=0.0)) or 1.0)
    rays = zip(diagnosis.directions, (r"$w_+$", r"$w_-$"), _GROUPS[:2], strict=True)
    for direction, name, style in rays:
        length = float(np.linalg.norm(direction))
        if length == 0:
            continue
        end = 1.1 * direction / length
        ax.plot(
            [0, end[0]], [0, end[1]], "--", color=style.color, linewidth=1, zorder=1,
            label=f"direction of {name}",
        )  # fmt: skip
    for style in _GROUPS:
        points = plane[diagnosis.group == style.group]
        if len(points):
            ax.plot(
                *points.T, style.marker, color=style.color, markersize=5, alpha=0.7,
                linestyle="none", label=f"{style.name} neurons ({len(points)})",
            )  # fmt: skip
    ax.set(
        title="Neurons, top two singular directions",
        xlabel="first direction",
        ylabel="second direction",
    )
    legend_above(ax)
    return ax


def plot_cosines(diagnosis: OrthosepDiagnosis, ax: Axes, *, n_bins: int = 40) -> Axes:
    """Draw the histogram of each live neuron's cosine with its max-margin direction."""
    live = diagnosis.cosines[diagnosis.group != 0]
    low = min(float(live.min(initial=1.0)), 0.9)
    # A shared lower edge on a round tenth keeps the right edge, where neurons should be, at 1.
    edges = np.linspace(np.floor(10 * low) / 10, 1.0, n_bins + 1)
    shown = [style for style in _GROUPS[:2] if np.any(diagnosis.group == style.group)]
    if shown:
        ax.hist(
            [np.minimum(diagnosis.cosines[diagnosis.group == s.group], 1.0) for s in shown],
            bins=list(edges),
            stacked=True,
            color=[style.color for style in shown],
            label=[style.name for style in shown],
        )
    ax.set(
        title="Cosine with own max-margin direction",
        xlabel="cosine",
        ylabel="neurons",
        xlim=(edges[0], 1.0),
    )
    legend_above(ax)
    return ax
