"""Pictures of a comparison class by class. Functions of axes take and return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..measures.comparison import Comparison
from ..measures.labels import MulticlassComparison
from .figures import legend_above
from .palette import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_class_ratios", "plot_label_confusion", "plot_multiclass"]

_MARKS = (
    ("1 - margin ratio", "margin_ratio", BLUE, "o"),
    ("1 - cosine of zeta", "zeta_cosine", ORANGE, "s"),
    ("held-out labels that differ", "agreement", GREEN, "^"),
)


def plot_class_ratios(comparisons: Mapping[int, Comparison], ax: Axes) -> Axes:
    """Draw, class by class, how far each network is from its limit, on a log axis.

    A distance of 0, no label that differs for instance, has no mark. A network that does not
    separate its training data yet is farther than 1 in its margin.
    """
    for index, (name, key, color, marker) in enumerate(_MARKS):
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
    places, names = range(len(comparison.classes)), [str(k) for k in comparison.classes]
    ax.set_xticks(places, names)
    ax.set_yticks(places, names)
    ax.set(
        xlabel="label by the networks, as trained",
        ylabel="label by the limits",
        title=f"Held-out labels: {comparison.agreement:.1%} agree",
    )
    return ax


def plot_multiclass(
    comparisons: Mapping[int, Comparison],
    comparison: MulticlassComparison | None,
    *,
    title: str,
) -> Figure:
    """Ratios of every class, and the confusion of labels where all classes have a network.

    Parameters
    ----------
    comparisons : mapping of class to Comparison
        At least one.
    comparison : MulticlassComparison or None
    title : str

    Returns
    -------
    Figure
        Not attached to pyplot: save it, or show it in a notebook.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11 if comparison else 6.5, 4.6), layout="constrained")
    if comparison is None:
        plot_class_ratios(comparisons, figure.subplots())
    else:
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        plot_class_ratios(comparisons, left)
        plot_label_confusion(comparison, right)
    figure.suptitle(title)
    return figure
