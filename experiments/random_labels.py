"""ReLU and GaLU networks that learn ten classes, labels at random, and pixels at random.

    python -m experiments.random_labels --data-dir DIR --out experiments/results
    python -m experiments.random_labels --out experiments/results

The source's figure 5: hidden layers of 512, 512, 256, 256, 128 and 64 units, ten scores, softmax;
GaLU has the same value weights behind the gates of another network, which is not trained. Of
MNIST's test images (digits without --data-dir) a part is learned, the others held out:

    standard         as they are
    random labels    labels of the images that are learned are permuted
    random pixels    pixels of each image are permuted, each by a permutation of its own

Adam at 1e-3 and batches of 128: the source gives neither. One row a data set, network, seed and
epoch: the cross-entropy and accuracy on what is learned, and the accuracy on held-out images.
`random_labels_NAME.csv` and `.png` are written as runs end; runs that are there are not run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import torch
from click.core import ParameterSource
from torch import Tensor

from implicit_bias.data.images import load_digit_classes, load_idx_classes
from implicit_bias.runs.drawing.palette import BLUE, VERMILLION

from .curves import mean_and_range
from .simple_half import Classifier
from .spectra import machine
from .tables import Kept, data_folder, images_of, out_folder, refused, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTHS = (512, 512, 256, 256, 128, 64)
DATA = ("standard", "random labels", "random pixels")
NETWORKS = ("relu", "galu")
KEY = ["data", "network", "seed"]
BATCH, RATE, HELD_OUT = 128, 1e-3, 2000
DIGITS = 1000  # of the bundled ones

Images = tuple[Tensor, Tensor]


def images(data_dir: Path | None, n_train: int, data: str, seed: int) -> tuple[Images, Images]:
    """Images and labels that are learned, and held-out ones."""
    if data_dir is None:
        found = load_digit_classes(n_train=n_train, random_state=seed)
    else:
        found = load_idx_classes(data_dir, n_train=n_train, n_val=HELD_OUT, random_state=seed)
    rng = np.random.default_rng(seed)
    X, X_val = (np.array(array) for array in (found.X_train, found.X_val))
    labels = np.array(found.labels_train)
    if data == "random labels":
        labels = rng.permutation(labels)
    if data == "random pixels":
        for array in (X, X_val):
            array[:, :-1] = rng.permuted(array[:, :-1], axis=1)  # the last column is constant
    held_out = torch.tensor(X_val).float(), torch.tensor(np.array(found.labels_val)).long()
    return (torch.tensor(X).float(), torch.tensor(labels).long()), held_out


def accuracy(network: Classifier, sample: Images) -> float:
    """Share of right labels."""
    with torch.no_grad():
        return float((network(sample[0]).argmax(1) == sample[1]).float().mean())


def run(
    train: Images, held_out: Images, kind: str, seed: int, epochs: int,
    widths: tuple[int, ...] = WIDTHS,
) -> Iterator[dict[str, float]]:  # fmt: skip
    """One row an epoch."""
    X, labels = train
    network = Classifier(X.shape[1], kind, seed, widths)
    optimiser = torch.optim.Adam([p for p in network.parameters() if p.requires_grad], lr=RATE)
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs + 1):
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(network(X), labels).item()
        known, new = accuracy(network, train), accuracy(network, held_out)
        yield {"epoch": epoch, "loss": loss, "train": known, "test": new}
        if epoch == epochs:
            return
        for batch in torch.split(torch.randperm(len(X), generator=order), BATCH):  # type: ignore[no-untyped-call]
            step = torch.nn.functional.cross_entropy(network(X[batch]), labels[batch])
            optimiser.zero_grad()
            step.backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def draw(table: pd.DataFrame, data: str) -> Figure:
    """Figure 5: accuracy on what is learned, by data, and on held-out images."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 3.7), layout="constrained")
    panels = figure.subplots(1, 4, sharey=True)
    shown = [(name, "train") for name in DATA] + [("standard", "test")]
    for ax, (name, column) in zip(panels, shown, strict=True):
        for kind, color in zip(NETWORKS, (BLUE, VERMILLION), strict=True):
            own = table[(table["data"] == name) & (table["network"] == kind)]
            mean_and_range(
                ax, own, "epoch", column, color=color, alpha=0.15, factor=100, label=kind
            )
        ax.set(title=f"{name}, {'held out' if column == 'test' else 'learned'}", xlabel="epochs")
        ax.legend(frameon=False, loc="lower right")
    panels[0].set_ylabel("accuracy, %")
    figure.suptitle(f"figure 5, {data}: mean and range of {table['seed'].nunique()} runs")
    return figure


@click.command()
@data_folder
@sizes(seeds=(3, 3), epochs=(30, 100), n_train=(2000, 8000))
@out_folder
def main(data_dir: Path | None, seeds: int, epochs: int, n_train: int, out: Path) -> None:
    """Networks whose gates adapt or stay, on labels and pixels at random.

    Of the bundled digits 1,000 are learned, or fewer.
    """
    click.echo(machine())
    source = images_of(data_dir)
    if data_dir is None and n_train > DIGITS:
        typed = click.get_current_context().get_parameter_source("n_train")
        if typed is ParameterSource.COMMANDLINE:
            raise click.BadParameter(
                f"{DIGITS} digits at most, got {n_train}", param_hint="--n-train"
            )
        n_train = DIGITS
    kept = Kept(
        out / f"random_labels_{source.file}.csv", KEY,
        options={"epochs": epochs, "n_train": n_train}, float_format="%.5g",
    )  # fmt: skip
    for seed in range(1, seeds + 1):
        for data in DATA:
            with refused("--n-train"):
                train, held_out = images(data_dir, n_train, data, seed)
            for kind in NETWORKS:
                if (data, kind, seed) in kept:
                    continue
                keys: dict[str, Any] = {"data": data, "network": kind, "seed": seed}
                found = pd.DataFrame(keys | row for row in run(train, held_out, kind, seed, epochs))
                kept.add(found)
                click.echo(f"{data}, {kind}, seed {seed}: {found.iloc[-1, 3:].to_dict()}")
    draw(kept.table, source.said).savefig(kept.path.with_suffix(".png"), dpi=100)


if __name__ == "__main__":
    main()
