"""Kernels of the simple and the complex half, class by class, and what they count along training.

    python -m experiments.simple_half_figures --full --out experiments/results
    python -m experiments.simple_half_figures --full --data-dir DIR --out experiments/results

The source's figures 7 and 11 to 16 by its recipe (Adam at 2e-4, three runs, one arm: the first five
classes keep their labels), of MNIST's test images or scikit-learn's digits in place of
Fashion-MNIST, with the networks, labels and batches of `experiments.simple_half`. Beside it stands
the arm that the source lacks, in which the last five classes are the simple half.

    simple_half_curves_NAME.csv    of a checkpoint, the mean number of open paths on both halves,
                                   the mean diagonal of the tangent kernel there, and accuracies
    simple_half_kernels_NAME.csv   of three moments (start; the first step with 72 % of the simple
                                   half learned; end)
                                   the mean of the overlap and of the tangent kernel over pairs of
                                   50 images of two labels each, over their mean diagonal
    simple_half_curves_NAME.png    figures 7, 11 (DLGN-PWC) and 12 (ReLU)
    simple_half_kernels_NAME.png   figures 13 to 16, means over runs of the source's arm

Labels stand in the order of the source: those of the simple half first.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import torch

import implicit_bias as ib
from implicit_bias.models.dlgn.regions import active_paths
from implicit_bias.runs.drawing.palette import BLUE, VERMILLION

from .curves import mean_and_range
from .simple_half import (
    BATCH,
    CLASSES,
    HALVES,
    KEY,
    NETWORKS,
    Classifier,
    Floats,
    Part,
    parts,
)
from .spectra import machine
from .tables import Kept, data_folder, images_of, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE, LEARNED, EACH = 2e-4, 0.72, 50
EVERY = 50  # steps between checkpoints
PAIRS = tuple(combinations_with_replacement(range(CLASSES), 2))
COLUMNS = tuple(f"{a}_{b}" for a, b in PAIRS)
MOMENTS = ("start", "middle", "end")
CURVES = ("paths", "ntk", "test")


def class_means(kernel: Floats, labels: np.ndarray[Any, Any], order: list[int]) -> Floats:
    """(10, 10) means of a kernel over pairs of labels, over the mean of its diagonal."""
    which = (labels[:, None] == np.array(order)).astype(float)
    which /= which.sum(axis=0)
    return np.asarray(which.T @ kernel @ which / (np.trace(kernel) / len(kernel)))


def order_of(simple: str) -> list[int]:
    """Labels of the simple half, then the others."""
    return sorted(range(CLASSES), key=lambda label: label not in HALVES[simple])


def chosen(part: Part) -> torch.Tensor:
    """Row numbers of the first images of every label, as many of each."""
    rows = [torch.flatten(torch.nonzero(part.labels == label))[:EACH] for label in range(CLASSES)]
    return torch.cat(rows)


def kernels(network: Classifier, part: Part, simple: str) -> dict[str, Floats]:
    """Class means of the overlap and of the tangent kernel."""
    rows = chosen(part)
    X, labels, order = part.X[rows], part.labels[rows].numpy(), order_of(simple)
    overlap = ib.kernels.path_overlap(network.gates(X), widths=network.widths)
    tangent = network.kernel(X)
    return {
        "overlap": class_means(overlap, labels, order),
        "tangent": class_means(tangent, labels, order),
    }


def accuracy(network: Classifier, part: Part, *, simple: bool) -> float:
    """Share of right labels on the simple half, or on the complex one."""
    own = torch.tensor(part.simple == simple)
    with torch.no_grad():
        right = network(part.X[own]).argmax(1) == part.labels[own]
    return float(right.float().mean())


def curve(network: Classifier, train: Part, test: Part) -> dict[str, float]:
    """Means on both halves: open paths, diagonal of the tangent kernel, accuracies."""
    rows = chosen(train)
    X, easy = train.X[rows], train.simple[rows.numpy()]
    paths = np.exp(active_paths(network.gates(X), widths=network.widths))
    diagonal = network.kernel_diagonal(X)
    found = {}
    for name, half in (("simple", True), ("complex", False)):
        found[f"paths_{name}"] = float(paths[easy == half].mean())
        found[f"ntk_{name}"] = float(diagonal[easy == half].mean())
        for part_name, part in (("train", train), ("test", test)):
            found[f"{part_name}_{name}"] = accuracy(network, part, simple=half)
    return found


def run(
    data_dir: Path | None, kind: str, simple: str, seed: int, steps: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and kernels of one network."""
    train, test = parts(data_dir, simple, seed)
    network = Classifier(train.X.shape[1], kind, seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    batches = torch.Generator().manual_seed(seed)
    shared: dict[str, Any] = {"network": kind, "simple": simple, "seed": seed}
    along: list[dict[str, Any]] = []
    moments: list[dict[str, Any]] = []
    met: set[str] = set()
    for step in range(steps + 1):
        if step % EVERY == 0 or step == steps:
            along.append({**shared, "step": step, **curve(network, train, test)})
        reached = {
            "start": step == 0,
            "middle": "middle" not in met and accuracy(network, train, simple=True) >= LEARNED,
            "end": step == steps,
        }
        for name in (name for name, now in reached.items() if now):
            met.add(name)
            for sort, means in kernels(network, train, simple).items():
                values = dict(zip(COLUMNS, (means[pair] for pair in PAIRS), strict=True))
                moments.append({**shared, "moment": name, "step": step, "kernel": sort, **values})
        batch = torch.randint(len(train.X), (BATCH,), generator=batches)
        loss = torch.nn.functional.cross_entropy(network(train.X[batch]), train.labels[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return pd.DataFrame(along), pd.DataFrame(moments)


def matrix(row: pd.Series[Any]) -> Floats:
    """(10, 10) kernel of a row."""
    found = np.zeros((CLASSES, CLASSES))
    for (a, b), name in zip(PAIRS, COLUMNS, strict=True):
        found[a, b] = found[b, a] = row[name]
    return found


def on_diagonal(table: pd.DataFrame) -> pd.DataFrame:
    """Of every row of kernels, log2 of the mean diagonal of the simple half over the other's."""
    names = [f"{k}_{k}" for k in range(CLASSES)]
    ratio = table[names[:5]].mean(axis=1) / table[names[5:]].mean(axis=1)
    return table[[*KEY, "kernel", "moment", "step"]].assign(log2=np.log2(ratio))


def draw_curves(table: pd.DataFrame, data: str) -> Figure:
    """Figures 7 and 11, 12: a row of panels a network, solid the source's arm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.5 * len(NETWORKS)), layout="constrained")
    panels = figure.subplots(len(NETWORKS), 3, squeeze=False)
    titles = {"paths": "open paths, mean", "ntk": "tangent kernel, mean diagonal",
              "test": "held-out accuracy"}  # fmt: skip
    for kind, row in zip(reversed(NETWORKS), panels, strict=True):
        for ax, name in zip(row, CURVES, strict=True):
            for simple, style in (("0-4", "-"), ("5-9", ":")):
                own = table[(table["network"] == kind) & (table["simple"] == simple)]
                for half, color in (("simple", BLUE), ("complex", VERMILLION)):
                    label = f"{half} half, {simple} simple"
                    y = f"{name}_{half}"
                    mean_and_range(ax, own, "step", y, style, color=color, alpha=0.1, label=label)
            figures = "12" if kind == "relu" else "7, 11"
            ax.set(title=f"figure {figures}, {kind}: {titles[name]}", xlabel="Adam steps")
            ax.set_ylim(0, None)
    panels[0][2].legend(frameon=False, fontsize="small", loc="lower right")
    figure.suptitle(f"{data}: mean and range of {table['seed'].nunique()} runs")
    return figure


def draw_kernels(table: pd.DataFrame, data: str) -> Figure:
    """Figures 13 to 16: overlap and tangent kernels at three moments, means over runs."""
    from matplotlib.figure import Figure

    rows = [(sort, kind) for sort in ("overlap", "tangent") for kind in reversed(NETWORKS)]
    figure = Figure(figsize=(11, 3.3 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(MOMENTS), squeeze=False)
    arm = table[table["simple"] == "0-4"]
    for number, ((sort, kind), row) in enumerate(zip(rows, panels, strict=True)):
        for ax, name in zip(row, MOMENTS, strict=True):
            own = arm[(arm["kernel"] == sort) & (arm["network"] == kind) & (arm["moment"] == name)]
            if own.empty:  # no run learned as much
                ax.set_title(f"{name}: not reached", fontsize="medium")
                ax.set_axis_off()
                continue
            means = matrix(own[list(COLUMNS)].mean())
            image = ax.imshow(means, cmap="viridis")
            figure.colorbar(image, ax=ax, fraction=0.046, pad=0.02)
            steps = sorted(set(own["step"]))
            shown = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
            figure_of = f"figure {13 + number}: {sort}, {kind}"
            ax.set_title(f"{figure_of}\n{name}, step {shown}", fontsize="medium")
            ax.axhline(4.5, color="w", linewidth=0.6)
            ax.axvline(4.5, color="w", linewidth=0.6)
            ax.set_xticks(range(CLASSES))
            ax.set_yticks(range(CLASSES))
        row[0].set_ylabel("label (0-4 simple)")
    figure.suptitle(f"{data}: means of {arm['seed'].nunique()} runs, over the mean diagonal")
    return figure


@click.command()
@data_folder
@sizes(seeds=(1, 3), steps=(200, 1000))
@out_folder
def main(data_dir: Path | None, seeds: int, steps: int, out: Path) -> None:
    """Class-averaged kernels of networks that learn simple and complex classes."""
    click.echo(machine())
    images = images_of(data_dir)
    curves, moments = (
        Kept(
            out / f"simple_half_{name}_{images.file}.csv", KEY, options={"steps": steps},
            float_format=form,
        )
        for name, form in (("curves", "%.6g"), ("kernels", "%.5g"))
    )  # fmt: skip
    for seed in range(1, seeds + 1):
        for kind in NETWORKS:
            for simple in HALVES:
                if (kind, simple, seed) in curves:
                    continue
                along, found = run(data_dir, kind, simple, seed, steps)
                if (kind, simple, seed) not in moments:  # of a run that ended between the two
                    moments.add(found)
                curves.add(along)
                click.echo(f"{kind}, {simple} simple, seed {seed}: {along.iloc[-1].to_dict()}")
    draw_curves(curves.table, images.said).savefig(curves.path.with_suffix(".png"), dpi=100)
    draw_kernels(moments.table, images.said).savefig(moments.path.with_suffix(".png"), dpi=100)
    click.echo(
        on_diagonal(moments.table)
        .groupby(["kernel", "network", "simple", "moment"], sort=False)["log2"]
        .agg(["mean", "min", "max"])
        .to_string(float_format="%.3f")
    )  # fmt: skip


if __name__ == "__main__":
    main()
