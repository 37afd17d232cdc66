"""Gates of another network (GaLU) beside a ReLU network's own: tangent kernels and training.

    python -m experiments.galu --full --out experiments/results

The published setting: n = 100 inputs uniform in [-1, 1]^2, targets uniform in [-1, 1], width 100,
rate 0.1 over the largest eigenvalue of K_0. Weights are Gaussian of variance 2 / w; both networks
have the same ones, and the gates of `galu` are those of a further draw. One row a depth, draw and
kind has the spectrum of K_0 over its mean, its spread (tr K)^2 / tr K^2, the overlap ratio of the
gates, and the share of the error that is left after --steps steps, by the law of a constant kernel
and of the trained network. `galu.csv` is written as rows come, `galu.png` of all of them in the
end; draws that are there are not run again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib

from .interrupts import finished
from .spectra import Array, machine, scores
from .tables import Kept, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("galu", "relu")
KEY = ["depth", "seed"]


def relu_of(weights: Any) -> Any:
    """A ReLU network of these layers."""
    import torch

    from implicit_bias.networks.relu import DeepReLU

    layers = list(weights)
    widths = [len(layer) for layer in layers[:-1]]
    network = DeepReLU(layers[0].shape[1], widths, dtype=torch.float64)
    with torch.no_grad():
        for own, given in zip(network.layers, layers, strict=True):
            own.copy_(given)
    return network


def networks(depth: int, width: int, seed: int, X: Array) -> dict[str, tuple[Any, Any, Array]]:
    """Of each kind the network, the gates it is given, and the gates it has."""
    widths = (width,) * (depth - 1)
    galu, other = (
        ib.DGN(X.shape[1], widths=widths, init="gaussian", random_state=s)
        for s in (seed, 1000 + seed)
    )
    relu = relu_of(galu.layers)
    gates = ib.gates.NetworkGates(relu_of(other.layers)).fit(X).transform(X)
    own = relu.gates(X).numpy().astype(np.float64)
    return {"galu": (galu, gates, gates), "relu": (relu, None, own)}


def spectrum(K: Array) -> dict[str, float]:
    """What a spectrum says of descent, whatever the size of K."""
    values = np.maximum(np.linalg.eigvalsh(K), 0) / (np.trace(K) / len(K))
    return {
        "largest": float(values[-1]),
        "median": float(np.median(values)),
        "spread": float(values.sum() ** 2 / np.sum(values**2)),
    }


def left_after(network: Any, X: Array, y: Array, gates: Any, steps: int) -> dict[str, float]:
    """Share of the error that is left by a constant kernel, and that the network leaves."""
    K = ib.kernels.empirical_ntk(network, X, gates)
    regression = ib.kernels.kernel_regression(K, y, scores(network, X, gates))
    rate = 0.1 / float(regression.eigenvalues[-1])
    first = float(np.linalg.norm(regression.start))
    by_law = float(np.linalg.norm(regression.after(steps, rate))) / first
    settings = ib.TrainingSettings(
        trainer="constant", loss="squared", batch_size=0, n_checkpoints=2,
        schedule=((steps, rate * len(y)),),
    )  # fmt: skip
    run = finished(ib.train(network, X, y, gates, settings=settings))
    return {"left_by_law": by_law, "left": math.exp((run.log_loss[-1] - run.log_loss[0]) / 2)}


def rows(depth: int, seed: int, *, n: int, width: int, steps: int) -> list[dict[str, Any]]:
    """Both kinds on one draw of data and weights."""
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, n)
    found = []
    for kind, (network, given, own) in networks(depth, width, seed, X).items():
        found.append(
            {
                "depth": depth,
                "seed": seed,
                "kind": kind,
                **spectrum(ib.kernels.empirical_ntk(network, X, given)),
                "overlap_ratio": ib.kernels.overlap_ratio(own, widths=(width,) * (depth - 1)),
                **left_after(network, X, y, given, steps),
            }
        )
    return found


def draw(table: pd.DataFrame) -> Figure:
    """Spread of the spectrum, and the error that is left, over the depth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, kind in zip(("C0", "C1"), KINDS, strict=True):
        own = table[table["kind"] == kind]
        mean = own.groupby("depth").mean(numeric_only=True)
        left.plot(own["depth"], own["spread"], f"{colour}o", ms=4, alpha=0.5)
        left.plot(mean.index, mean["spread"], f"{colour}-", label=kind)
        right.plot(own["depth"], own["left"], f"{colour}o", ms=4, alpha=0.5)
        right.plot(mean.index, mean["left"], f"{colour}-", label=f"{kind}, trained")
        right.plot(mean.index, mean["left_by_law"], f"{colour}:", label=f"{kind}, constant kernel")
    left.set(xlabel="depth", ylabel="(tr K_0)^2 / tr K_0^2")
    right.set(xlabel="depth", ylabel="share of the error left")
    for ax in (left, right):
        ax.set_xticks(sorted(set(table["depth"])))
    left.legend(frameon=False)
    right.legend(frameon=False, fontsize="small")
    figure.suptitle(f"100 points of the square, width 100, {table['seed'].nunique()} draws")
    return figure


@click.command()
@click.option(
    "--depth",
    "depths",
    type=click.IntRange(min=2),
    multiple=True,
    default=(2, 4, 6, 8),
    show_default=True,
)
@sizes(draws=(2, 11), steps=(300, 1000))
@out_folder
def main(depths: tuple[int, ...], draws: int, steps: int, out: Path) -> None:
    """Compare gates of another network with a ReLU network's own, at the start and trained."""
    click.echo(machine())
    kept = Kept(
        out / "galu.csv", KEY, options={"steps": steps}, float_format="%.6g"
    )  # fmt: skip
    for seed in range(1, draws + 1):
        for depth in depths:
            if (depth, seed) in kept:
                continue
            found = rows(depth, seed, n=100, width=100, steps=steps)
            kept.add(found)
            shares = ", ".join(f"{one['kind']} leaves {one['left']:.3f}" for one in found)
            click.echo(f"depth {depth}, draw {seed}: {shares}")
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=110)
    click.echo(kept.table.groupby(["depth", "kind"]).mean(numeric_only=True).to_string())


if __name__ == "__main__":
    main()
