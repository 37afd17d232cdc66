"""Figures 3.1 and 3.2: singular values and rows of a two-layer and of a residual network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

import implicit_bias as ib
from implicit_bias.data import orthosep_dataset
from implicit_bias.runs.drawing import Row, compose, legend_above
from implicit_bias.runs.drawing.palette import BLUE, ORANGE

from ..interrupts import finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SEEDS = (0, 1, 2, 3, 4)
# As printed: 500 epochs in batches of 50 at a rate of 0.1, all weights of the start times 0.05.
SETTINGS = ib.TrainingSettings(batch_size=50, schedule=((5000, 0.1),))
NAMES = {"two layers": 2, "residual": 4}
WIDTH = 100
COLORS = {1.0: ORANGE, -1.0: BLUE}  # of the signs of a, as printed


def rows(*, full: bool) -> Iterator[dict[str, Any]]:
    """Train as printed; a row a neuron (a row of W_1, W_2 or W_3), and one a singular value.

    `start` is the singular value before training. `full` trains five seeds instead of one.
    """
    for seed in SEEDS if full else SEEDS[:1]:
        data = orthosep_dataset(random_state=seed)
        limit = ib.solve_orthosep(data.X_train, data.y_train)
        units = {1.0: limit.w_plus, -1.0: limit.w_minus}
        pair = np.array([units[s] / np.linalg.norm(units[s]) for s in (1.0, -1.0)])
        for name, depth in NAMES.items():
            network = ib.networks.ResidualReLU(
                data.X_train.shape[1], WIDTH, n_layers=depth,
                random_state=np.random.default_rng((seed, 1)),
            )  # fmt: skip
            starts = [_values(layer) for layer in network.layers]
            finished(ib.train(network, data.X_train, data.y_train, None, settings=SETTINGS))
            about = {"network": name, "seed": seed, "gap": limit.gap}
            signs = np.sign(network.layers[-1].detach().numpy()[0])
            for number, layer in enumerate(network.layers[:-1], start=1):
                both = zip(_values(layer), starts[number - 1], strict=True)
                for k, (value, before) in enumerate(both, start=1):
                    yield about | {"layer": number, "kind": "singular", "number": k,
                                   "x": value, "start": before}  # fmt: skip
                W = layer.detach().numpy()
                right = np.linalg.svd(W, full_matrices=False)[2]
                for k, (x, y) in enumerate(W @ right[:2].T):
                    row = {"layer": number, "kind": "neuron", "number": k, "x": x, "y": y}
                    if number == 1:  # its own direction, and of a deeper network the closer one
                        along = pair @ W[k] / np.linalg.norm(W[k])
                        row["cosine"] = along[int(signs[k] < 0)] if depth == 2 else along.max()
                    yield about | row | ({"sign": signs[k]} if depth == 2 else {})


def _values(layer: torch.Tensor) -> list[float]:
    """The ten largest singular values."""
    found: list[float] = torch.linalg.svdvals(layer.detach())[:10].tolist()
    return found


def draw(table: pd.DataFrame) -> Figure:
    """Figure 3.1, a to c, and 3.2, a to g: values, rows in their own plane, cosines."""
    two, deep = (table[table.network == name] for name in NAMES)

    def shallow(axes: list[Axes]) -> None:
        _singular(axes[0], two, "3.1 (a) singular values of W")
        _neurons(axes[1], two, "3.1 (b) rows of W, second direction")
        _cosines(axes[2], two, "3.1 (c) cosine of a row, its max-margin direction")

    def singular(axes: list[Axes]) -> None:
        for letter, number, ax in zip("abc", (1, 2, 3), axes, strict=True):
            _singular(ax, deep[deep.layer == number],
                      f"3.2 ({letter}) singular values of $W_{number}$")  # fmt: skip

    def neurons(axes: list[Axes]) -> None:
        for letter, number, ax in zip("def", (1, 2, 3), axes, strict=True):
            _neurons(ax, deep[deep.layer == number],
                     f"3.2 ({letter}) rows of $W_{number}$, second direction")  # fmt: skip

    def cosines(axes: list[Axes]) -> None:
        _cosines(axes[0], deep, "3.2 (g) cosine of a row of $W_1$ and the closer "
                 "max-margin direction")  # fmt: skip

    return compose(
        [Row(3, shallow, height=3.5), Row(3, singular), Row(3, neurons), Row(1, cosines, height=3)],
        title="Figures 3.1 and 3.2 of the thesis: two layers, and a residual network of four, of "
        "width 100,\non synthetic orthogonally separable data (20 dimensions, 500 samples)",
    )


def _singular(ax: Axes, table: pd.DataFrame, title: str) -> None:
    one = table[table.kind == "singular"]
    ax.plot(
        one.number,
        one.x,
        "o",
        color="C0",
        markersize=5,
        alpha=0.6,
        label="after training, all seeds",
    )
    ax.plot(one.number, one.start, "_", color="0.5", markersize=8, label="before training")
    ax.set(xlabel="index", xticks=range(1, 11), ylim=(0, None), ylabel=title)
    ax.legend(frameon=False, fontsize=8)


def _neurons(ax: Axes, table: pd.DataFrame, title: str) -> None:
    one = table[(table.kind == "neuron") & (table.seed == table.seed.min())]
    kinds = [(one, "C0", "")] if one.sign.isna().any() else [
        (one[one.sign == sign], color, f"a {'>' if sign > 0 else '<'} 0")
        for sign, color in COLORS.items()
    ]  # fmt: skip
    for part, color, label in kinds:
        ax.plot(part.x, part.y, "o", color=color, markersize=4, alpha=0.6, label=label)
    ax.axhline(0, color="0.85", zorder=0)
    ax.axvline(0, color="0.85", zorder=0)
    ax.set(xlabel=f"first singular direction (seed {one.seed.iloc[0]})", ylabel=title)
    if len(kinds) > 1:
        legend_above(ax)


def _cosines(ax: Axes, table: pd.DataFrame, title: str) -> None:
    seeds = [one.cosine.dropna() for _, one in table.groupby("seed")]
    low = np.floor(10 * min(one.min() for one in seeds)) / 10
    ax.hist(seeds, bins=list(np.linspace(low, 1, 31)), stacked=True,
            label=[f"seed {seed}" for seed in sorted(set(table.seed))])  # fmt: skip
    ax.legend(frameon=False)
    ax.set(xlabel=title, ylabel="neurons")
