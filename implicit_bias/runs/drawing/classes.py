"""Panels that compare networks with their limits class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats as Array
from ...measures.comparison import Comparison
from ...measures.labels import MulticlassComparison
from ...quantities.table import TABLE
from .figures import Row, legend_above
from .palette import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = (
    ("margin_ratio", BLUE, "o"),
    ("zeta_cosine", ORANGE, "s"),
    ("agreement", GREEN, "^"),
)


def plot_class_ratios(comparisons: Mapping[int, Comparison], ax: Axes) -> Axes:
    """Draw, class by class, how far each network is from its limit, on a log axis.

    A distance of 0, no label that differs for instance, has no mark. A network that does not
    separate its training data yet is farther than 1 in its margin.
    """
    for index, (key, color, marker) in enumerate(_MARKS):
        name = TABLE[key].distance_label
        values = 1 - np.array([getattr(comparison, key) for comparison in comparisons.values()])
        places = np.arange(len(values)) + 0.15 * (index - 1)
        shown = values > 0
        ax.plot(
            places[shown], values[shown], marker=marker, color=color, linestyle="none", label=name
        )
    ax.set_yscale("log")
    ax.set_xticks(np.arange(len(comparisons)), [str(k) for k in comparisons])
    ax.set(xlabel="class, against the rest", ylabel="distance from the limit (0: no mark)")
    ax.set_xlim(-0.6, len(comparisons) - 0.4)
    ax.grid(axis="y", linewidth=0.5, color="0.9")
    legend_above(ax)
    return ax


def plot_label_confusion(comparison: MulticlassComparison, ax: Axes) -> Axes:
    """Draw how often the limits give one label (row) and the networks another (column).

    Each row is a share of the samples that the limits label so; numbers are samples.
    """
    counts = comparison.confusion
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # A power below 1 shows the few samples off the diagonal, which are what there is to see.
    ax.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        if count:
            dark = shares[row, column] > 0.4
            ax.text(
                column, row, str(count), ha="center", va="center", fontsize="x-small",
                color="white" if dark else "black",
            )  # fmt: skip
    _name_classes(ax, comparison.classes)
    ax.set(
        xlabel="label by the networks, as trained",
        ylabel="label by the limits",
        title=f"Held-out labels: {comparison.agreement:.1%} agree",
    )
    return ax


def plot_pair_margins(margins: Array, classes: Sequence[int], title: str, ax: Axes) -> Axes:
    """Draw the least margins (K, K) of samples of one class (row) over another (column).

    At smallest margin 1; pairs on the margin have 1, the diagonal none.
    """
    image = ax.imshow(margins, cmap="viridis_r", vmin=1.0)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    _name_classes(ax, classes)
    ax.set(xlabel="other class", ylabel="class of the samples", title=title)
    return ax


def joint_row(labels: MulticlassComparison, margins: Sequence[Array]) -> Row:
    """Return a row of panels: least margins of pairs of classes, and the confusion of labels.

    Parameters
    ----------
    labels : MulticlassComparison
    margins : sequence of (K, K) arrays
        Of the limit, and of the network if it separates its samples.
    """

    return Row(len(margins) + 1, partial(_draw_joint, labels, tuple(margins)), height=4.2)


def class_row(comparisons: Mapping[int, Comparison], labels: MulticlassComparison | None) -> Row:
    """Return a row of panels: distances of every class, and the confusion of labels if known."""

    return Row(1 if labels is None else 2, partial(_draw, comparisons, labels), height=4.6)


def _name_classes(ax: Axes, classes: Sequence[int]) -> None:
    places, names = range(len(classes)), [str(k) for k in classes]
    ax.set_xticks(places, names)
    ax.set_yticks(places, names)


def _draw(
    comparisons: Mapping[int, Comparison], labels: MulticlassComparison | None, axes: list[Axes]
) -> None:
    plot_class_ratios(comparisons, axes[0])
    if labels is not None:
        plot_label_confusion(labels, axes[1])


def _draw_joint(labels: MulticlassComparison, margins: Sequence[Array], axes: list[Axes]) -> None:
    names = ("Least margins of pairs: limit", "network, at smallest margin 1")
    for pair, title, ax in zip(margins, names, axes, strict=False):
        plot_pair_margins(pair, labels.classes, title, ax)
    plot_label_confusion(labels, axes[-1])
