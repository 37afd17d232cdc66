"""Pictures of decoders of next tokens: the way to both parts, and what tokens look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...data.arrays import Floats
from ...runs.drawing.figures import legend_above
from ...runs.drawing.palette import SERIES
from ...runs.drawing.runs import power_ticks, step_axis
from ...training.trajectory import Trajectory
from .comparison import DecoderComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_course(name: str, paths: Mapping[str, Trajectory], ax: Axes) -> Axes:
    """Draw over steps how far decoders are from the ideal value of a quantity, on a log axis."""
    one = DecoderComparison.declared[name].quantity
    for color, (label, path) in zip(SERIES, paths.items(), strict=False):
        far = np.abs(path.observed[name] - (one.ideal or 0.0))
        ax.plot(path.step, np.where(far > 0, far, np.nan), ".-", color=color, label=label)
    ax.set_yscale("log")
    power_ticks(ax)
    ax.set_ylabel(one.distance_label)
    legend_above(ax)
    return step_axis(ax, max(float(path.step[-1]) for path in paths.values()))


def plot_words(words: Mapping[str, Floats], names: Sequence[str], axes: list[Axes]) -> None:
    """Draw cosines (V, V) of the tokens' weights, tokens of like ones beside each other."""
    order = _by_likeness(next(iter(words.values())))
    for ax, (label, cosine) in zip(axes, words.items(), strict=True):
        image = ax.imshow(cosine[np.ix_(order, order)], cmap="RdBu_r", vmin=-1, vmax=1)
        if len(order) <= 40:
            shown = [names[k] for k in order]
            ax.set_xticks(range(len(order)), shown, rotation=90, fontsize="xx-small")
            ax.set_yticks(range(len(order)), shown, fontsize="xx-small")
        ax.set_title(f"cosines of tokens: {label}", fontsize="medium")
    axes[-1].figure.colorbar(image, ax=axes[-1], shrink=0.8)


def _by_likeness(cosine: Floats) -> list[int]:
    """Return an order in which like rows are neighbours, by average linkage."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = np.clip(1 - (cosine + cosine.T) / 2, 0, None)
    np.fill_diagonal(apart, 0)
    return [int(k) for k in leaves_list(linkage(squareform(apart), "average"))]
