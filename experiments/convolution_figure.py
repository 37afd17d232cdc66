"""Pictures of `experiments.convolution`: figures 3.3 and 3.4 of the thesis on our rows."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from implicit_bias.runs.drawing import Row, compose, legend_above

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {True: "-", False: "--"}
KINDS = {"mean_cosine": "two vectors", "cone_cosine": "silent pair"}


def draw(tables: dict[str, pd.DataFrame], images: str) -> Figure:
    """Cosines by layer, figure 3.4, and the prediction along training."""
    rows = [
        Row(3, lambda axes: _draw_layers(tables["layers"], axes), height=3.8),
        Row(3, lambda axes: _draw_heads(tables["heads"], tables["neurons"], axes), height=3.8),
    ]
    title = (
        f"Cosines of features, and figure 3.4 of the thesis: {images}, 0 against 1 "
        "(layer 0: images; bars of cosines: 5 to 95 % and 25 to 75 %,\n"
        "first seed with biases, as are the neurons)"
    )
    return compose(rows, title=title)


def draw_products(table: pd.DataFrame, images: str) -> Figure:
    """Figure 3.3: inner products of features, layer by layer; first seed, biases and none."""
    first = table[(table["seed"] == table["seed"].min()) & (table["layer"] < 8)]
    rows = []
    for biases, own in first.groupby("biases", sort=False):
        for layers in (range(4), range(4, 8)):
            panels = [(own[own["layer"] == layer], bool(biases)) for layer in layers]
            rows.append(Row(4, partial(_draw_densities, panels), height=2.6))
    title = (
        f"Figure 3.3 of the thesis: {images}, 0 against 1, inner products of the features "
        f"of two images\nafter {table['epoch'].max()} epochs (layer 0: images; areas are 1)"
    )
    return compose(rows, title=title)


def _draw_densities(panels: list[tuple[pd.DataFrame, bool]], axes: list[Axes]) -> None:
    for ax, (table, biases) in zip(axes, panels, strict=True):
        bins = [column for column in table.columns if column[0] == "b" and column[1:].isdigit()]
        for color, (kind, row) in zip(
            ("C0", "C1", "C2"), table.set_index("kind").iterrows(), strict=True
        ):
            edges = np.linspace(row["least"], row["largest"], len(bins) + 1)
            density = row[bins].to_numpy(float) / (edges[1] - edges[0])
            ax.stairs(density, edges, color=color, fill=True, alpha=0.35)
            ax.stairs(density, edges, color=color, label=kind)
        ax.axvline(0, color="0.5", linewidth=0.8)
        ax.locator_params(axis="x", nbins=5)
        ax.ticklabel_format(axis="x", scilimits=(-3, 4))
        layer = int(table["layer"].iloc[0])
        ax.set(xlabel=f"layer {layer}, {'biases' if biases else 'no biases'}", yticks=[])
    legend_above(axes[0])


def _draw_layers(table: pd.DataFrame, axes: list[Axes]) -> None:
    one = table[table["biases"] & (table["seed"] == table["seed"].min())]
    last = int(table["epoch"].max())
    for ax, epoch in zip(axes, (1, last), strict=False):
        for shift, kind in enumerate(("across", "zeros", "ones")):
            own = one[(one["epoch"] == epoch) & (one["layer"] < 8)]
            at, colour = own["layer"] + 0.25 * (shift - 1), f"C{shift}"
            ax.vlines(at, own[f"{kind}_5"], own[f"{kind}_95"], colour, linewidth=1)
            ax.vlines(at, own[f"{kind}_25"], own[f"{kind}_75"], colour, linewidth=4)
            ax.plot(at, own[f"{kind}_50"], "_", color=colour, ms=8, label=kind)
        ax.axhline(0, color="0.5", linewidth=0.8)
        ax.set(xlabel="layer", ylabel="cosine of two samples", ylim=(-1.05, 1.05))
        ax.set_title("after 1 epoch" if epoch == 1 else f"after {epoch} epochs")
        legend_above(ax)
    ax, means = axes[2], table.groupby(["biases", "epoch", "layer"])["cross_positive"].mean()
    for (biases, epoch), share in means.groupby(level=["biases", "epoch"]):
        if epoch in (1, 5, last):
            colour, style = f"C{[1, 5, last].index(epoch)}", STYLES[biases]
            label = f"epoch {epoch}" if biases else None
            ax.plot(share.index.get_level_values("layer"), share, colour + style, label=label)
    ax.set(xlabel="layer", ylabel="pairs across with a positive product", ylim=(-0.03, 1.03))
    ax.set_title("mean over seeds (dashed: no biases)")
    legend_above(ax)


def _draw_heads(heads: pd.DataFrame, neurons: pd.DataFrame, axes: list[Axes]) -> None:
    values, plane, along = axes
    trained = heads[heads["head"] == "trained"]
    for _, one in trained[trained["epoch"] == heads["epoch"].max()].iterrows():
        colour = "C0" if one["biases"] else "C1"
        values.plot(range(1, 11), [one.get(f"s{k}", math.nan) for k in range(1, 11)],
                    colour + STYLES[one["biases"]], marker=".", linewidth=0.7)  # fmt: skip
    values.set(xlabel="index", ylabel="singular value of W_7", ylim=(0, None))
    values.set_title("every seed (dashed: no biases)")
    _draw_neurons(neurons, plane)
    for colour, column in (("C0", "mean_cosine"), ("C1", "cone_cosine")):
        for biases, own in heads.groupby("biases"):
            label = KINDS[column] if biases else None
            mean = own[own["head"] == "trained"].groupby("epoch")[column].mean()
            along.plot(mean.index + 1, mean, colour + STYLES[biases], label=label)
            anew = own[own["head"] == "refitted"]
            marker = "o" if biases else "s"
            along.plot(anew["epoch"] * 1.3 + 1, anew[column], colour + marker, ms=4)
    along.set(xscale="log", xlabel="epochs + 1", ylabel="mean cosine of neurons", ylim=(None, 1.02))
    along.set_title("layer 7; dots: fitted anew")
    legend_above(along)


def _draw_neurons(neurons: pd.DataFrame, ax: Axes) -> None:
    own = neurons[neurons["biases"] & (neurons["seed"] == neurons["seed"].min())]
    for group, label in ((1, "a > 0"), (-1, "a < 0"), (0, "dead neurons")):
        part = own[own["group"] == group]
        ax.plot(part["x"], part["y"], ".", label=label)
    length = float(np.hypot(own["x"], own["y"]).max())
    for kind, style in zip(KINDS.values(), ("k:", "k-"), strict=True):
        for name in ("plus", "minus"):
            x, y = (float(own[f"{name} {kind} {axis}"].iloc[0]) for axis in "xy")
            shown = kind if name == "plus" else None
            ax.plot([0, length * x], [0, length * y], style, linewidth=1, label=shown)
    ax.set(xlabel="first singular direction", ylabel="second singular direction", aspect="equal")
    legend_above(ax)
