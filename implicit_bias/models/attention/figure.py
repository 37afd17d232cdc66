"""Pictures of attention: its maps over training, and how near it comes to its limit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ...data.tokens import TokenData
from ...limits.exact.tokens import TokenLimit, logits
from ...quantities.table import TABLE
from ...runs.drawing.figures import Row
from ...runs.drawing.palette import BLUE, GREEN, VERMILLION
from ...runs.drawing.runs import step_axis
from .comparison import ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Maps of a row, and sequences of a map.
TIMES, SEQUENCES = 4, 30
Floats = NDArray[np.float64]


def map_row(data: TokenData, limit: TokenLimit, steps: Floats, W: Floats) -> Row:
    """Return a row of attention maps at times of training.

    Parameters
    ----------
    data : TokenData
    limit : TokenLimit
        Of the tokens that are selected in the end.
    steps : (C,) array
    W : (C, d, q) array
        The matrices at these steps.
    """
    times = np.unique(np.linspace(1, len(steps) - 1, TIMES).round().astype(int))
    maps = np.stack([softmax(logits(data, W[one]), axis=1)[:SEQUENCES] for one in times])
    tokens = np.stack([limit.tokens, data.best])[:, :SEQUENCES]
    return Row(len(times), partial(_draw, maps, steps[times], tokens), height=4.0)


def _draw(maps: Floats, steps: Floats, tokens: NDArray[np.int64], axes: list[Axes]) -> None:
    for each, step, ax in zip(maps, steps, axes, strict=True):
        drawn = ax.imshow(each, vmin=0, vmax=1, cmap="Blues", aspect="auto", interpolation="none")
        rows = np.arange(each.shape[0])
        ax.plot(tokens[1], rows, "x", color=VERMILLION, ms=4, label="best token")
        ax.plot(tokens[0], rows, "o", mfc="none", mec=GREEN, ms=6, label="selected in the end")
        ax.set_title(f"attention after {step:g} step{'' if step == 1 else 's'}", fontsize="medium")
        ax.set_xlabel("token")
    axes[0].set_ylabel("sequence")
    axes[0].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2)
    axes[-1].figure.colorbar(drawn, ax=axes[-1], label="share of attention")


def ratio_panels(
    data: TokenData, limits: tuple[TokenLimit, TokenLimit], steps: Floats, W: Floats
) -> tuple[partial[Axes], partial[Axes]]:
    """Return panels of margin ratios and of what is not attended, over training.

    Parameters
    ----------
    data : TokenData
    limits : pair of TokenLimit
        Of the tokens selected in the end, and of the best.
    steps, W : arrays
        As of `map_row`.
    """
    own, best = (np.array([ratio(limit, data, one) for one in W]) for limit in limits)
    found = np.stack([logits(data, one) for one in W])
    places = limits[0].tokens[None, :, None]
    ahead = np.take_along_axis(found, places, axis=2)
    np.put_along_axis(found, places, -np.inf, axis=2)
    missed = logsumexp(found - ahead, axis=2).max(axis=1) / np.log(10)
    return partial(plot_ratios, steps, own, best), partial(plot_missed, steps, missed)


def plot_ratios(steps: Floats, own: Floats, best: Floats, ax: Axes) -> Axes:
    """Draw margin ratios over steps (C,), beside the selected and beside the best tokens."""
    ax.plot(steps, own, color=BLUE, label="of the tokens selected in the end")
    ax.plot(steps, best, color=VERMILLION, label="of the best tokens (0 if others are selected)")
    ax.axhline(1, color="0.7", lw=1)
    ax.set_ylim(-0.02, 1.05)
    ax.set_ylabel(TABLE["margin_ratio"].label)
    ax.legend(fontsize="small")
    return step_axis(ax, float(steps[-1]))


def plot_missed(steps: Floats, missed: Floats, ax: Axes) -> Axes:
    """Draw over steps (C,) how little attention other tokens get: log10 of its odds."""
    ax.plot(steps, missed, color=BLUE)
    ax.axhline(-16, color="0.7", lw=1)
    ax.annotate("softmax is 1 in floats below", (0, -16), va="top", fontsize="small")
    ax.set_ylabel("log10 of odds of other tokens")
    return step_axis(ax, float(steps[-1]))
