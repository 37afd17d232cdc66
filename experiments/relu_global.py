"""Networks that plain PyTorch trains on data of scikit-learn: local optima, and the global one.

    python -m experiments.relu_global --out experiments/results

One row a data set: a torch.nn.Sequential of 50 units, trained by Adam on the logistic loss, the
certified local optimum next to it, and that which births of units lead to, with the lower bound of
all widths by branch and bound and the support samples of both labels, whose gate patterns it
decides over. Last, a network of few units, none to spare. `relu_global.csv`, in some minutes; rows
that are there are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from sklearn import datasets

import implicit_bias as ib

from .tables import Kept, keep_rows, out_folder

KEY = ("data", "width", "max_seconds")
WIDTH, FEW, STEPS = 50, 6, 3000
# Of the clock, for births and the bound of all widths.
SECONDS = 200.0
DIGITS = (60, 100, 200, 300)


Samples = tuple[np.ndarray, np.ndarray]


def scaled(data: Samples) -> Samples:
    """Standardised inputs with a constant column, and class 1 against the others."""
    X, y = data
    sizes = X.std(axis=0)
    inputs = (X - X.mean(axis=0)) / np.where(sizes > 0, sizes, 1.0)
    return np.column_stack([inputs, np.ones(len(X))]), np.where(y == 1, 1.0, -1.0)


def digits(n: int) -> Samples:
    """Bundled digits, which have their constant column."""
    data = ib.load_digits(n_train=n, n_val=0, random_state=0)
    return data.X_train, data.y_train


DATA: dict[str, Callable[[], Samples]] = {
    "moons": lambda: scaled(datasets.make_moons(60, noise=0.1, random_state=0)),
    "circles": lambda: scaled(datasets.make_circles(60, noise=0.05, factor=0.5, random_state=0)),
    "iris": lambda: scaled(datasets.load_iris(return_X_y=True)),
    "wine": lambda: scaled(datasets.load_wine(return_X_y=True)),
    "breast cancer": lambda: scaled(datasets.load_breast_cancer(return_X_y=True)),
    **{f"{n} digits": partial(digits, n) for n in DIGITS},
}


def trained(X: np.ndarray, y: np.ndarray, width: int, steps: int) -> torch.nn.Sequential:
    """Train a network without biases by Adam."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], width, bias=False),
        torch.nn.ReLU(),
        torch.nn.Linear(width, 1, bias=False),
    ).double()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    inputs, labels = torch.tensor(X), torch.tensor(y)
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.softplus(-labels * network(inputs)[:, 0]).mean()
        torch.autograd.backward(loss)
        optimiser.step()
    return network


def row(
    data: str, width: int, *, steps: int = STEPS, max_seconds: float = SECONDS
) -> dict[str, Any]:
    """Train one network, and find the local optimum next to it and the best of all widths."""
    X, y = DATA[data]()
    network = trained(X, y, width, steps)
    start = time.process_time()
    limit = ib.limits.relu_local_limit(network, X, y, max_patterns=2**12)
    middle = time.process_time()
    best = ib.limits.solve_relu_minnorm(X, y, start=network, max_seconds=max_seconds)
    positive = int((best.support_labels > 0).sum())
    return {
        "data": data, "samples": len(y), "inputs": X.shape[1], "width": width,
        "max_seconds": max_seconds,
        "network": limit.start_value, "local": limit.value, "local_status": limit.status.name,
        "local_gap": limit.gap, "degrees": limit.certificate.smallest_turn,
        "live": len(limit.units), "local_seconds": middle - start, "best": best.value,
        "bound": best.certificate.lower_bound, "status": best.status.name, "gap": best.gap,
        "units": len(best.units), "support_positive": positive,
        "support_negative": len(best.support_labels) - positive,
        "best_seconds": time.process_time() - middle,
    }  # fmt: skip


@click.command()
@click.option("--data", type=click.Choice(sorted(DATA)), multiple=True, help="All if none.")
@out_folder
@click.option(
    "--max-seconds", type=float, default=SECONDS, show_default=True,
    help="Of the clock, for births and the bound of all widths.",
)  # fmt: skip
def main(data: tuple[str, ...], out: Path, max_seconds: float) -> None:
    """Local and global optima next to networks of plain PyTorch."""
    kept = Kept(out / "relu_global.csv", KEY)

    def missing() -> Iterator[dict[str, Any]]:
        for name, width in [*((name, WIDTH) for name in data or DATA), ("wine", FEW)]:
            # The row of few units is of the usual time.
            seconds = max_seconds if width == WIDTH else SECONDS
            if (name, width, seconds) not in kept:
                yield row(name, width, max_seconds=seconds)

    keep_rows(missing(), kept, digits=".6g")


if __name__ == "__main__":
    main()
