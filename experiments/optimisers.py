"""What batches, epsilon, beta2 and Newton-Schulz steps change of where optimisers go.

    python -m experiments.optimisers --out experiments/results

Linear predictors of three classes, 24 samples in 9 dimensions, trained from weights of 0 by the
logistic loss of every pair of classes: the margin that each run reaches, over the largest margin of
weights of the same norm, in three norms. `optimisers.csv` and `optimisers.png`, in some minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

import implicit_bias as ib
from implicit_bias._support.words import WeightNorm
from implicit_bias.limits import Norm, solve_multiclass_svm

from .tables import keep_rows, to_write_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

NORMS: tuple[WeightNorm, ...] = ("linf", "l2", "spectral")
STEPS = 10_000


Make = Callable[[list[torch.nn.Parameter], int], ib.optim.MarginOptimizer]


@dataclass(frozen=True)
class Run:
    """One optimiser, and what is changed of it.

    Attributes
    ----------
    optimiser, change : str
        In words.
    norm : str
        The norm whose largest margin theory names, or in which the unchanged optimiser goes.
    make : callable
        `make(weights, n_samples)` returns the optimiser.
    batch : int
        Samples a step; 0 for all.
    """

    optimiser: str
    change: str
    norm: str
    make: Make
    batch: int = 0


def _steepest(norm: Any, momentum: float = 0.0, polar: Any = "exact", lr: float = 0.03) -> Make:
    def make(weights: list[torch.nn.Parameter], n: int) -> ib.optim.MarginOptimizer:
        """Return steepest descent in the norm."""
        return ib.optim.SteepestDescent(
            weights, norm=norm, n_samples=n, degree=1, lr=lr, momentum=momentum, polar=polar
        )

    return make


def _adam(beta2: float, epsilon: float = 0.0) -> Make:
    def make(weights: list[torch.nn.Parameter], n: int) -> ib.optim.MarginOptimizer:
        """Return Adam on the margins of all samples, or of a batch."""
        return ib.optim.Adam(
            weights, n_samples=n, degree=1, lr=0.03, betas=(0.9, beta2), epsilon=epsilon
        )

    return make


RUNS: tuple[Run, ...] = (
    Run("sign descent", "-", "linf", _steepest("linf")),
    Run("Signum", "-", "linf", _steepest("linf", 0.9)),
    Run("Adam", "-", "linf", _adam(0.9)),
    Run("Adam", "beta2 0.99", "linf", _adam(0.99)),
    Run("Adam", "beta2 0.999", "linf", _adam(0.999)),
    Run("Adam", "epsilon 1e-3", "linf", _adam(0.9, 1e-3)),
    Run("Adam", "epsilon 1e-8", "linf", _adam(0.9, 1e-8)),
    Run("spectral descent", "-", "spectral", _steepest("spectral", lr=0.03)),
    Run("Muon", "exact polar factors", "spectral", _steepest("spectral", 0.9, lr=0.03)),
    Run("Muon", "as shipped", "spectral", _steepest("spectral", 0.9, "newton-schulz", lr=0.03)),
    Run("sign descent", "batches of 6", "linf", _steepest("linf"), batch=6),
    Run("Signum", "batches of 6", "linf", _steepest("linf", 0.9), batch=6),
    Run("Muon", "batches of 6", "spectral", _steepest("spectral", 0.9, lr=0.03), batch=6),
    Run("Adam", "batches of 1", "linf", _adam(0.9), batch=1),
)


@cache
def data() -> tuple[Array, NDArray[np.int64]]:
    """Three classes, 24 samples in 9 dimensions."""
    rng = np.random.default_rng(5)
    X, B = rng.normal(size=(24, 9)), rng.normal(size=(3, 9))
    return X, np.argmax(X @ B.T, axis=1)


@cache
def largest() -> dict[WeightNorm, float]:
    """The largest margin of coefficients of norm 1, certified, by norm."""
    X, labels = data()
    return {norm: 1 / solve_multiclass_svm(X, labels, norm=norm).objective for norm in NORMS}


def relative_margins(B: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
    """Margins of every sample and wrong class, in a row."""
    X, labels = data()
    inputs, own = torch.from_numpy(X)[samples], torch.from_numpy(labels)[samples]
    scores = inputs @ B.T
    every = scores.gather(1, own[:, None]) - scores
    wrong = torch.ones_like(scores, dtype=torch.bool).scatter(1, own[:, None], False)
    return every[wrong]


def margins_over_largest(run: Run, n_steps: int) -> dict[str, float]:
    """Train by a run from weights of 0, and return its margin over the largest, by norm."""
    torch.set_num_threads(1)
    n = len(data()[1])
    B = torch.nn.Parameter(torch.zeros(3, 9).double())
    order, everything = np.random.default_rng(0), torch.arange(n)
    optimiser = run.make([B], 2 * (run.batch or n))
    chosen = everything
    for step in range(n_steps):
        if run.batch:
            if step % (n // run.batch) == 0:
                epoch = torch.from_numpy(order.permutation(n))
            start = step % (n // run.batch) * run.batch
            chosen = epoch[start : start + run.batch]
        optimiser.step(partial(relative_margins, B, chosen))
    margin = float(relative_margins(B.detach(), everything).min())
    return {
        norm: margin / Norm.of(norm).value(B.detach().numpy()) / best
        for norm, best in largest().items()
    }


def rows(n_steps: int = STEPS) -> Iterator[dict[str, Any]]:
    """Train all runs, one after the other."""
    for run in RUNS:
        ratios = margins_over_largest(run, n_steps)
        yield {
            "optimiser": run.optimiser,
            "change": run.change,
            "norm": run.norm,
            "steps": n_steps,
            **{norm: round(ratio, 4) for norm, ratio in ratios.items()},
        }


def draw(frame: pd.DataFrame) -> Figure:
    """Draw the ratios of every run, a mark a norm."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.subplots()
    names = [
        one.optimiser if one.change == "-" else f"{one.optimiser}, {one.change}"
        for one in frame.itertuples()
    ]
    for norm, marker in zip(NORMS, "osD", strict=True):
        axes.plot(frame[norm].clip(lower=0), range(len(frame)), marker, label=norm, alpha=0.8)
    axes.axvline(1, color="0.6", lw=1)
    axes.set_yticks(range(len(frame)), names)
    axes.invert_yaxis()
    axes.set_xlabel("margin over the largest of weights of the same norm")
    axes.legend(title="norm", loc="lower left")
    return figure


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=to_write_to,
    default=None,
    help="Folder of the rows.",
)
@click.option("--steps", type=int, default=STEPS, show_default=True)
def main(out: Path | None, steps: int) -> None:
    """Write `optimisers.csv` and `optimisers.png`."""
    found: list[dict[str, Any]] = []

    def kept() -> Iterator[dict[str, Any]]:
        for row in rows(steps):
            found.append(row)
            yield row

    keep_rows(kept(), None if out is None else out / "optimisers.csv", digits=".4f")
    if out is not None:
        draw(pd.DataFrame(found)).savefig(out / "optimisers.png", dpi=110)


if __name__ == "__main__":
    main()
