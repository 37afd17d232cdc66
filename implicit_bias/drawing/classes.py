"""Pictures of a comparison class by class. Functions of axes take and return them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..measures.comparison import Comparison
from ..measures.labels import MulticlassComparison
from .figures import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["class_row", "plot_class_ratios", "plot_label_confusion"]

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


def class_row(comparisons: Mapping[int, Comparison], labels: MulticlassComparison | None) -> Row:
    """Ratios of every class, at least one, and the confusion of labels where all have a network."""

    def draw(axes: list[Axes]) -> None:
        plot_class_ratios(comparisons, axes[0])
        if labels is not None:
            plot_label_confusion(labels, axes[1])

    return Row(1 if labels is None else 2, draw, height=4.6)
