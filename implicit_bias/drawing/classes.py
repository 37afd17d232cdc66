"""Pictures of a comparison class by class. Functions of axes take and return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..measures.comparison import Comparison
from ..measures.labels import MulticlassComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_class_ratios", "plot_label_confusion", "plot_multiclass"]

# Colours of the Okabe-Ito palette, which stay apart for colour-blind readers.
_BARS = (
    ("margin ratio", "margin_ratio", "#0072B2"),
    ("cosine of zeta", "zeta_cosine", "#E69F00"),
    ("agreement on held-out labels", "agreement", "#009E73"),
)


def plot_class_ratios(comparisons: Mapping[int, Comparison], ax: Axes) -> Axes:
    """Draw, class by class, how near each network has come to its limit: 1 is there.

    A network that does not separate its training data yet has no bar of its (negative) ratio.
    """
    places, width = np.arange(len(comparisons)), 0.8 / len(_BARS)
    for index, (name, key, colour) in enumerate(_BARS):
        values = [getattr(comparison, key) for comparison in comparisons.values()]
        offset = (index - (len(_BARS) - 1) / 2) * width
        ax.bar(places + offset, np.clip(values, 0, None), width, color=colour, label=name)
    ax.axhline(1, color="0.4", linestyle="--", linewidth=1)
    ax.set_xticks(places, [str(k) for k in comparisons])
    ax.set(xlabel="class, against the rest", ylim=(0, 1.05), title="Each network and its limit")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=len(_BARS), frameon=False)
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
