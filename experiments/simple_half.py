"""Do open paths go to the simple classes? Five classes as they are, five cut up at random.

    python -m experiments.simple_half --full --out experiments/results
    python -m experiments.simple_half --full --data-dir DIR --out experiments/results

The images of five classes keep their labels; each of the other five is split into five clusters,
and the 25 clusters get labels of that half at random. Networks of five hidden layers of 128 units
learn the ten labels by cross-entropy with Adam: a ReLU network, and a deep linearly gated one with
constant experts (DLGN-PWC) and soft gates of steepness 4. The claim: throughout training more paths
are open on the simple half than on the complex one. Beside it stands the tangent kernel's diagonal.

Classes differ in size and shape whatever their labels are. So every seed is run twice, with 0 to 4
as the simple half and with 5 to 9, from the same weights: means over both arms of the logarithm of
simple over complex know nothing of the classes, and are 0 at the start by construction. One row a
checkpoint:

    network, simple, seed, step
    paths      log2 of the mean number of open paths on the simple half over that on the complex one
    ntk        the same of the tangent kernel's diagonal, summed over the ten scores
    log_paths_simple, log_paths_complex      mean log2 of the open paths of a sample
    train_simple, .., test_complex           accuracy on both halves

`simple_half_NAME.csv` is written as runs end, `.png` of all of them in the end; runs that are there
are not run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from implicit_bias.data.images import load_digit_classes, load_idx_classes
from implicit_bias.models.dlgn.regions import active_paths
from implicit_bias.runs.drawing.palette import BLUE, VERMILLION

from .spectra import machine
from .tables import Kept, data_folder, images_of, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS, CLASSES, CLUSTERS, BETA = (128,) * 5, 10, 5, 4.0
BATCH, RATE = 256, 5e-4
CHECKPOINTS = (0, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1000)
NETWORKS = ("relu", "dlgn-pwc")
HALVES = {"0-4": range(5), "5-9": range(5, 10)}
KEY = ["network", "simple", "seed"]
PANELS = {
    "paths": "open paths: log2 simple / complex",
    "ntk": "NTK diagonal: log2 simple / complex",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Images, labels to learn, and whose class is of the simple half."""

    X: Tensor
    labels: Tensor
    simple: NDArray[np.bool_]


class Classifier(torch.nn.Module):
    """Ten scores behind gates of its own: of a ReLU network, or of a DLGN with constant experts.

    Of kind "galu" gates are those of a second ReLU network, which is not trained.
    """

    def __init__(
        self, n_inputs: int, kind: str, seed: int, widths: tuple[int, ...] | None = None
    ) -> None:
        super().__init__()
        self.kind, self.widths = kind, WIDTHS if widths is None else widths
        generator = torch.Generator().manual_seed(seed)
        shapes = [(high, low) for low, high in pairwise((n_inputs, *self.widths, CLASSES))]

        def drawn(shape: tuple[int, int], variance: float) -> torch.nn.Parameter:
            weights = torch.randn(shape, generator=generator)
            return torch.nn.Parameter(weights * math.sqrt(variance / shape[1]))

        self.value = torch.nn.ParameterList(drawn(shape, 2) for shape in shapes)
        gating = [] if kind == "relu" else shapes[:-1]
        variance = 2 if kind == "galu" else 1
        self.gating = torch.nn.ParameterList(drawn(shape, variance) for shape in gating)
        self.gating.requires_grad_(kind != "galu")

    def forward(self, X: Tensor) -> Tensor:
        """(n, 10) scores."""
        return self.layers(X)[-1][1]

    def layers(self, X: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Of every matrix product the inputs (n, below) and the outputs (n, width), scores last."""
        found, opened = [], X
        for weight in self.gating:
            found.append((opened, opened @ weight.T))
            opened = found[-1][1] if self.kind == "dlgn-pwc" else found[-1][1].relu()
        hard = self.kind == "galu"
        gates = [(q >= 0).to(q) if hard else torch.sigmoid(BETA * q) for _, q in found]
        signal = torch.ones_like(X) if self.kind == "dlgn-pwc" else X
        for index, weight in enumerate(self.value):
            found.append((signal, signal @ weight.T))
            signal = gates[index] * found[-1][1] if index < len(gates) else found[-1][1].relu()
        return found

    def gates(self, X: Tensor) -> Floats:
        """(n, sum of widths) of hard gates."""
        with torch.no_grad():
            outputs = [q for _, q in self.layers(X)]
        return torch.cat([q >= 0 for q in outputs[: len(self.widths)]], dim=1).numpy().astype(float)

    def kernel_diagonal(self, X: Tensor) -> Floats:
        """(n,) of the tangent kernel, summed over the scores: a matrix's gradient has rank one."""
        total = torch.zeros(len(X))
        for inputs, slopes in self._factors(X):
            total += inputs.square().sum(1) * slopes.square().sum(1)
        return total.double().numpy()

    def kernel(self, X: Tensor) -> Floats:
        """(n, n) of the tangent kernel, summed over the scores."""
        total = torch.zeros(len(X), len(X))
        for inputs, slopes in self._factors(X):
            total += (inputs @ inputs.T) * (slopes @ slopes.T)
        return total.double().numpy()

    def _factors(self, X: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Of every score and matrix the inputs (n, below), and the score's slopes (n, width)."""
        # Those of frozen gates have no gradient.
        layers = [(inputs, q) for inputs, q in self.layers(X) if q.requires_grad]
        outputs = [q for _, q in layers]
        for c in range(CLASSES):
            slopes = torch.autograd.grad(outputs[-1][:, c].sum(), outputs, retain_graph=True)
            for (inputs, _), slope in zip(layers, slopes, strict=True):
                yield inputs.detach(), slope


def parts(data_dir: Path | None, simple: str, seed: int) -> tuple[Part, Part]:
    """Training and held-out images with the labels to learn, clusters found on the former."""
    from sklearn.cluster import KMeans

    if data_dir is None:
        data = load_digit_classes(n_train=1400, random_state=seed)
    else:
        data = load_idx_classes(data_dir, n_train=6000, random_state=seed)
    rng = np.random.default_rng(seed)
    kept = np.array(HALVES[simple])
    others = np.setdiff1d(np.arange(CLASSES), kept)
    images = [(data.X_train, data.labels_train), (data.X_val, data.labels_val)]
    learned = [np.asarray(labels).astype(np.int64) for _, labels in images]
    given = rng.permutation(np.repeat(others, CLUSTERS)).reshape(len(others), CLUSTERS)
    for names, digit in zip(given, others, strict=True):
        own = [(X[labels == digit], labels == digit) for X, labels in images]
        clusters = KMeans(CLUSTERS, n_init=4, random_state=seed).fit(own[0][0])
        for labels, (X, rows) in zip(learned, own, strict=True):
            labels[rows] = names[clusters.predict(X)]
    train, test = (
        Part(torch.tensor(X).float(), torch.tensor(labels), np.isin(digits, kept))
        for (X, digits), labels in zip(images, learned, strict=True)
    )
    return train, test


def measure(network: Classifier, train: Part, test: Part) -> dict[str, float]:
    """What a checkpoint is worth on both halves."""
    paths = active_paths(network.gates(train.X), widths=WIDTHS) / math.log(2)
    kernel, easy = network.kernel_diagonal(train.X), train.simple
    found = {
        "paths": log_ratio(np.exp2(paths), easy),
        "ntk": log_ratio(kernel, easy),
        "log_paths_simple": float(paths[easy & np.isfinite(paths)].mean()),
        "log_paths_complex": float(paths[~easy & np.isfinite(paths)].mean()),
    }
    for name, part in (("train", train), ("test", test)):
        with torch.no_grad():
            right = (network(part.X).argmax(1) == part.labels).numpy()
        found[f"{name}_simple"] = float(right[part.simple].mean())
        found[f"{name}_complex"] = float(right[~part.simple].mean())
    return found


def log_ratio(values: Floats, easy: NDArray[np.bool_]) -> float:
    """log2 of the mean over the simple half over that over the complex one."""
    return float(np.log2(values[easy].mean() / values[~easy].mean()))


def run(data_dir: Path | None, kind: str, simple: str, seed: int) -> pd.DataFrame:
    """One row a checkpoint of one network."""
    train, test = parts(data_dir, simple, seed)
    network = Classifier(train.X.shape[1], kind, seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    order = torch.Generator().manual_seed(seed)
    rows: list[dict[str, Any]] = []
    for step in range(CHECKPOINTS[-1] + 1):
        if step in CHECKPOINTS:
            rows.append({"network": kind, "simple": simple, "seed": seed, "step": step})
            rows[-1] |= measure(network, train, test)
        batch = torch.randint(len(train.X), (BATCH,), generator=order)
        loss = torch.nn.functional.cross_entropy(network(train.X[batch]), train.labels[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return pd.DataFrame(rows)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Of every network and step: means over both arms, and the range of these over seeds."""
    by_seed = table.groupby(["network", "step", "seed"])[list(PANELS)].mean()
    grouped = by_seed.groupby(level=["network", "step"])
    found = {f"{name}_{how}": grouped[name].agg(how) for name in PANELS
             for how in ("mean", "min", "max")}  # fmt: skip
    accuracies = [f"{part}_{half}" for part in ("train", "test") for half in ("simple", "complex")]
    means = table.groupby(["network", "step"])[accuracies].mean()
    return pd.DataFrame(found).join(means)


def draw(table: pd.DataFrame, data: str) -> Figure:
    """Both ratios and the accuracies along training, a row of panels a network."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in NETWORKS if kind in set(table["network"])]
    figure = Figure(figsize=(12, 3.6 * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), 3, squeeze=False)
    for kind, row in zip(kinds, panels, strict=True):
        own = table[table["network"] == kind]
        for ax, (name, label) in zip(row, PANELS.items(), strict=False):
            for (simple, _), one in own.groupby(["simple", "seed"]):
                colour = BLUE if simple == "0-4" else VERMILLION
                ax.plot(one["step"] + 1, one[name], color=colour, linewidth=0.7)
            mean = own.groupby("step")[name].mean()
            ax.plot(mean.index + 1, mean, "k-", linewidth=2)
            ax.axhline(0, color="0.6", linewidth=0.8)
            ax.set(xscale="log", xlabel="steps + 1", title=f"{kind}: {label}")
        mean = own.groupby("step").mean(numeric_only=True)
        for name, style in (("simple", "-"), ("complex", "--")):
            for part, colour in (("train", "C0"), ("test", "C1")):
                row[2].plot(mean.index + 1, mean[f"{part}_{name}"], colour + style,
                            label=f"{part}, {name}")  # fmt: skip
        row[2].set(xscale="log", xlabel="steps + 1", title=f"{kind}: accuracy")
    panels[0][0].plot([], [], color=BLUE, label="0-4 simple")
    panels[0][0].plot([], [], color=VERMILLION, label="5-9 simple")
    panels[0][0].plot([], [], "k-", label="mean of both")
    panels[0][0].legend(frameon=False)
    panels[0][2].legend(frameon=False)
    figure.suptitle(f"{data}: {table['seed'].nunique()} seeds, both arms; accuracies are means")
    return figure


@click.command()
@data_folder
@sizes(seeds=(1, 5))
@out_folder
def main(data_dir: Path | None, seeds: int, out: Path) -> None:
    """Follow open paths and the tangent kernel on simple and on complex classes."""
    click.echo(machine())
    images = images_of(data_dir)
    kept = Kept(out / f"simple_half_{images.file}.csv", KEY, float_format="%.6g")
    for seed in range(1, seeds + 1):
        for kind in NETWORKS:
            for simple in HALVES:
                if (kind, simple, seed) in kept:
                    continue
                found = run(data_dir, kind, simple, seed)
                kept.add(found)
                ends = found.iloc[[0, -1]]
                click.echo(
                    f"{kind}, {simple} simple, seed {seed}: paths {ends['paths'].tolist()}, ntk "
                    f"{ends['ntk'].tolist()}, test {found['test_simple'].iloc[-1]:.3f} / "
                    f"{found['test_complex'].iloc[-1]:.3f}"
                )
    draw(kept.table, images.said).savefig(kept.path.with_suffix(".png"), dpi=110)
    click.echo(summary(kept.table).to_string(float_format="%.3g"))


if __name__ == "__main__":
    main()
