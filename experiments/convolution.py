"""Features of a convolutional network on the digits 0 and 1 (thesis, section 3.4.3).

    python -m experiments.convolution --full --out experiments/results
    python -m experiments.convolution --full --data-dir DIR --out experiments/results

Six convolutions and two fully connected layers learn 0 against 1 by Adam, as table 3.1 has them:
scikit-learn's digits, or the images of MNIST's files. The thesis reads off its pictures that the
features of layer 7 are orthogonally separable, and that few singular values of W_7 are large, as
its theorem has it for two layers. Seen here, with biases as there and without, at some epochs:

    convolution_layers_NAME.csv   one row a layer: quantiles of the cosines of pairs across and
                                  within the classes, shares of the pairs that offend, the worst
                                  one, singular values of the features
    convolution_products_NAME.csv distributions of the inner products of such pairs at the end:
                                  shares in 80 equal bins from `least` to `largest` of the layer
    convolution_heads_NAME.csv    the last two layers beside the two max-margin vectors of what
                                  comes into them: certificate, cosines, margin ratio, KKT distance;
                                  the same beside the pair that is silent on the other class; and
                                  last, as `refitted`, two layers from near zero by gradient steps
                                  on the final features, as the theorem wants them
    convolution_neurons_NAME.csv  neurons of layer 7 at the end, in the plane of its top singular
                                  vectors

Runs that all tables have are not made again. `convolution_NAME.png` and, for figure 3.3,
`convolution_products_NAME.png` are drawn of the rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

import implicit_bias as ib
from implicit_bias.data.made.pairs import load_pair
from implicit_bias.measures.layers import LEVELS

from .convolution_figure import draw, draw_products
from .convolution_heads import PAIRED, head_rows, numbered
from .spectra import Array, machine
from .tables import Kept, data_folder, images_of, out_folder, sizes

# Table 3.1: kernels, their size, stride and padding; then fc(features, 128) and fc(128, 1).
CONVOLUTIONS = (
    (32, 3, 1, 1), (32, 3, 1, 1), (32, 5, 2, 2), (64, 3, 1, 1), (64, 3, 1, 1), (64, 5, 2, 2),
)  # fmt: skip
HIDDEN, SHRUNK, BATCH = 128, 0.05, 128
CHECKPOINTS = (0, 1, 5, 20, 50)
N_TRAIN = {"digits": 270, "mnist": 1715}
KEY = ["biases", "seed"]
PARTS = ("layers", "products", "heads", "neurons")
BINS = 80


def convolutional(side: int, *, biases: bool, seed: int) -> nn.Sequential:
    """The network of table 3.1 on images (n, 1, side, side), its last two layers near zero."""
    layers: list[nn.Module] = []
    channels = 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for kernels, size, stride, padding in CONVOLUTIONS:
            layers += [nn.Conv2d(channels, kernels, size, stride, padding, bias=biases), nn.ReLU()]
            channels, side = kernels, (side + 2 * padding - size) // stride + 1
        first = nn.Linear(channels * side * side, HIDDEN, bias=biases)
        last = nn.Linear(HIDDEN, 1, bias=biases)
    with torch.no_grad():
        for linear in (first, last):
            linear.weight *= SHRUNK
    return nn.Sequential(*layers, nn.Flatten(), first, nn.ReLU(), last)


def trained(network: nn.Module, X: Tensor, y: Tensor, *, epochs: int, seed: int) -> Iterator[int]:
    """Adam on the logistic loss in batches of 128; the epochs at which to look."""
    optimiser = torch.optim.Adam(network.parameters())
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs + 1):
        if epoch in CHECKPOINTS or epoch == epochs:
            yield epoch
        if epoch == epochs:
            return
        shuffled = torch.randperm(len(X), generator=order)
        for batch in shuffled.split(BATCH):  # type: ignore[no-untyped-call]
            margins = y[batch] * network(X[batch]).flatten()
            optimiser.zero_grad()
            nn.functional.softplus(-margins).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()


def zero_and_one(folder: Path | None, seed: int) -> tuple[ib.Sample, ib.Sample]:
    """Images of 0 (-1) and 1 (+1), pixels in [0, 1]: for training, and held out."""
    n_train = N_TRAIN["digits" if folder is None else "mnist"]
    data = load_pair(folder, n_train=n_train, random_state=seed)
    train = ib.Sample(_images(data.X_train), data.y_train, None)
    return train, ib.Sample(_images(data.X_val), data.y_val, None)


def _images(X: Array) -> Array:
    """(n, 1, side, side) from rows of pixels in [-1, 1] that end in a constant."""
    side = math.isqrt(X.shape[1] - 1)
    return np.asarray((X[:, :-1] + 1) / 2).reshape(-1, 1, side, side)


def layer_rows(network: nn.Sequential, train: ib.Sample) -> Iterator[dict[str, Any]]:
    """One row a layer, 0 being the images."""
    X, y = train.X[:PAIRED], train.y[:PAIRED]
    for index, layer in enumerate(ib.measures.separability_by_layer(network, X, y)):
        found = layer.separability
        row: dict[str, Any] = {
            "layer": index,
            "n_features": layer.n_features,
            "cross_positive": found.share_across,
            "within_negative": found.share_within,
            "least_within": found.smallest_within,
            "largest_across": found.largest_across,
            "worst_pair": "" if found.pair is None else "{} {}".format(*found.pair),
            "worst_product": found.product,
        }
        kinds = {"across": layer.across, "zeros": layer.negative, "ones": layer.positive}
        for kind, quantiles in kinds.items():
            names = (f"{kind}_{100 * level:g}" for level in LEVELS)
            row |= dict(zip(names, quantiles, strict=True))
        yield row | numbered("s", layer.singular_values, 4)


def product_rows(network: nn.Sequential, train: ib.Sample) -> Iterator[dict[str, Any]]:
    """Figure 3.3: shares of the inner products of each kind by bin, one row a layer and kind."""
    X, y = train.X[:PAIRED], train.y[:PAIRED]
    for index, (_, features) in enumerate(ib.measures.layer_features(network, X)):
        products = features @ features.T
        within = np.triu(np.ones_like(products, dtype=bool), k=1)
        kinds = {
            "across": products[np.ix_(y > 0, y < 0)],
            "zeros": products[within & np.logical_and.outer(y < 0, y < 0)],
            "ones": products[within & np.logical_and.outer(y > 0, y > 0)],
        }
        limits = (
            min(float(kind.min()) for kind in kinds.values()),
            max(float(kind.max()) for kind in kinds.values()),
        )
        for kind, found in kinds.items():
            counts, _ = np.histogram(found, bins=BINS, range=limits)
            row = {"layer": index, "kind": kind, "least": limits[0], "largest": limits[1]}
            yield row | numbered("b", counts / found.size, BINS)


def run(folder: Path | None, biases: bool, seed: int, epochs: int) -> dict[str, pd.DataFrame]:
    """Train one network and look at it: a table for each of `PARTS`."""
    train, held_out = zero_and_one(folder, seed)
    network = convolutional(train.X.shape[-1], biases=biases, seed=seed)
    X, y = (torch.tensor(part).float() for part in (train.X, train.y))
    layers: list[dict[str, Any]] = []
    products: list[dict[str, Any]] = []
    heads: list[dict[str, Any]] = []
    neurons = pd.DataFrame()
    key = {"biases": biases, "seed": seed}
    for epoch in trained(network, X, y, epochs=epochs, seed=seed):
        at = key | {"epoch": epoch}
        layers += [at | row for row in layer_rows(network, train)]
        if epoch == epochs:
            products = [at | row for row in product_rows(network, train)]
        last = seed if epoch == epochs else None
        found, neurons = head_rows(network, train, held_out, seed=last)
        heads += [at | row for row in found]
    parts = (layers, products, heads, neurons.assign(**key))
    return {name: pd.DataFrame(rows) for name, rows in zip(PARTS, parts, strict=True)}


@click.command()
@data_folder
@sizes(seeds=(1, 3), epochs=(10, 50))
@out_folder
def main(data_dir: Path | None, seeds: int, epochs: int, out: Path) -> None:
    """Look at the layers of a convolutional network that learns 0 against 1."""
    images = images_of(data_dir)
    click.echo(f"{machine()}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    kept = {
        part: Kept(
            out / f"convolution_{part}_{images.file}.csv", KEY, options={"epochs": epochs},
            float_format="%.6g",
        )
        for part in PARTS
    }  # fmt: skip
    for seed in range(1, seeds + 1):
        for biases in (True, False):
            if all((biases, seed) in table for table in kept.values()):
                continue
            start = time.perf_counter()
            for part, found in run(data_dir, biases, seed, epochs).items():
                if (biases, seed) not in kept[part]:  # what an interrupt left
                    kept[part].add(found)
            kind = "with biases" if biases else "without biases"
            click.echo(f"seed {seed}, {kind}: {time.perf_counter() - start:.0f} s")
    tables = {part: one.table for part, one in kept.items()}
    draw(tables, images.said).savefig(out / f"convolution_{images.file}.png", dpi=110)
    draw_products(tables["products"], images.said).savefig(
        kept["products"].path.with_suffix(".png"), dpi=110
    )
    click.echo(summary(tables).to_string(float_format="%.4f"))


def summary(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Means over seeds of what the section speaks of, at the end of training."""
    layers, heads = tables["layers"], tables["heads"]
    seventh = layers[(layers["layer"] == len(CONVOLUTIONS) + 1)]
    shares = seventh.set_index([*KEY, "epoch"])["cross_positive"].rename("layer7_positive")
    columns = ["mean_cosine", "cone_cosine", "margin_ratio", "cone_ratio", "kkt_residual"]
    table = heads.join(shares, on=[*KEY, "epoch"])
    return table.groupby(["biases", "head", "epoch"])[["layer7_positive", *columns]].mean()


if __name__ == "__main__":
    main()
