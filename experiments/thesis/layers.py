"""Figure 3.2: singular values and rows of every layer of a residual network near rank two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import implicit_bias as ib
from implicit_bias.drawing import Row, compose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEEDS = (0, 1, 2)


def rows(*, full: bool) -> Iterator[dict[str, Any]]:
    """Train as printed; a row a neuron (a row of W_1, W_2 or W_3), and one a singular value.

    `full` trains three seeds instead of one.
    """
    for seed in SEEDS if full else SEEDS[:1]:
        report = ib.run("orthosep", network="residual", seed=seed)
        limit = report.limit
        units = [w / np.linalg.norm(w) for w in (limit.w_plus, limit.w_minus)]
        about = {"seed": seed, "gap": limit.gap}
        layers = [one.detach().numpy() for one in report.network.layers]
        for number, W in enumerate(layers[:3], start=1):
            _, values, right = np.linalg.svd(W, full_matrices=False)
            for k, value in enumerate(values[:10], start=1):
                yield about | {"layer": number, "kind": "singular", "number": k, "x": float(value)}
            nearest = np.max([W @ one for one in units], axis=0) if number == 1 else None
            for k, (x, y) in enumerate(W @ right[:2].T):
                row = {"layer": number, "kind": "neuron", "number": k, "x": float(x), "y": float(y)}
                if nearest is not None:
                    row["cosine"] = float(nearest[k] / np.linalg.norm(W[k]))
                yield about | row


def draw(table: pd.DataFrame) -> Figure:
    """The seven panels: values, rows in their own plane, cosines with the max-margin pair."""
    first = table[table.seed == table.seed.min()]

    def singular(axes: list[Axes]) -> None:
        for letter, number, ax in zip("abc", (1, 2, 3), axes, strict=True):
            for _, one in table[(table.layer == number) & (table.kind == "singular")].groupby(
                "seed"
            ):
                ax.plot(one.number, one.x, "o", color="C0", markersize=5, alpha=0.6)
            ax.set(xlabel="index", xticks=range(1, 11), ylim=(0, None),
                   ylabel=f"({letter}) singular values of $W_{number}$")  # fmt: skip

    def neurons(axes: list[Axes]) -> None:
        for letter, number, ax in zip("def", (1, 2, 3), axes, strict=True):
            one = first[(first.layer == number) & (first.kind == "neuron")]
            ax.plot(one.x, one.y, "o", color="C0", markersize=4, alpha=0.6)
            ax.axhline(0, color="0.85", zorder=0)
            ax.axvline(0, color="0.85", zorder=0)
            ax.set(xlabel="first singular direction",
                   ylabel=f"({letter}) rows of $W_{number}$, second direction")  # fmt: skip

    def cosines(axes: list[Axes]) -> None:
        seeds = [one.cosine.dropna() for _, one in table.groupby("seed")]
        low = np.floor(10 * min(one.min() for one in seeds)) / 10
        axes[0].hist(seeds, bins=list(np.linspace(low, 1, 31)), stacked=True,
                     label=[f"seed {seed}" for seed in sorted(set(table.seed))])  # fmt: skip
        axes[0].legend(frameon=False)
        axes[0].set(xlabel="(g) cosine of a row of $W_1$ and the closer max-margin direction",
                    ylabel="neurons")  # fmt: skip

    return compose(
        [Row(3, singular), Row(3, neurons), Row(1, cosines, height=2.8)],
        title="Figure 3.2 of the thesis: residual network of four layers, width 100, "
        "synthetic orthogonally separable data (20 dimensions, 500 samples)",
    )
