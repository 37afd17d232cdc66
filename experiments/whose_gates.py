"""Is what a deep ReLU network learns in its gates? Frozen gates of four kinds, 4 against 7.

    python -m experiments.whose_gates --full --data-dir DIR --out experiments/results
    python -m experiments.whose_gates --full --out experiments/results

Images of 4 against 7 in MNIST's files, scikit-learn's digits without --data-dir: 300 are learned by
the logistic loss, the others held out. Five hidden layers of 100 units; every network begins with
the same weights, but for the last, which begins afresh. One row a seed and kind of gates:

    adapting    a ReLU network, which goes on setting them
    own start   those the ReLU network begins with, frozen
    another's   those another untrained ReLU network begins with (GaLU)
    learned     those the trained ReLU network ends with, frozen, behind new weights

with the held-out errors of the network and of the certified hard-margin machine of the path kernel
of these gates. `whose_gates_NAME.csv` is written as rows come; rows that are there are not run
again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib

from .interrupts import finished
from .path_kernels import error, pair
from .spectra import Array, machine, scores
from .tables import Kept, data_folder, images_of, out_folder, refused, sizes

WIDTHS = (100,) * 5
KINDS = ("adapting", "own start", "another's", "learned")


def relu(n_inputs: int, seed: int, widths: tuple[int, ...] = WIDTHS) -> Any:
    """An untrained ReLU network."""
    import torch

    from implicit_bias.networks.relu import DeepReLU

    return DeepReLU(n_inputs, widths, random_state=seed, dtype=torch.float64)


def trained(network: Any, sample: ib.Sample, gates: Any, steps: int) -> Any:
    """Heavy-ball steps on the logistic loss, in place."""
    settings = ib.TrainingSettings(
        trainer="momentum", loss="logistic", batch_size=0, schedule=((steps, None),)
    )
    finished(ib.train(network, sample.X, sample.y, gates, settings=settings))
    return network


def path_machine(
    train: ib.Sample, held_out: ib.Sample, gates: tuple[Array, Array], widths: tuple[int, ...]
) -> float:
    """Held-out error of the path kernel's machine; NaN where it does not separate."""
    K = ib.kernels.neural_path_kernel(train.X, gates[0], widths=widths)
    cross = ib.kernels.neural_path_kernel(held_out.X, gates[1], train.X, gates[0], widths=widths)
    unit = float(np.trace(K)) / len(K)
    limit = ib.solve_kernel_svm(K / unit, train.y)
    if not limit.certificate.proves_separability():
        return math.nan
    return error(limit.predictor(cross / unit), held_out.y)


def arms(
    train: ib.Sample, seed: int, steps: int, widths: tuple[int, ...] = WIDTHS
) -> Iterator[tuple[str, Any, Any]]:
    """Of every kind its name, the trained network, and the ReLU network that set the gates.

    The gates of the first are its own: it is given none.
    """
    n_inputs = train.X.shape[1]
    learner = trained(relu(n_inputs, seed, widths), train, None, steps)
    yield KINDS[0], learner, learner
    for kind, weights, setter in (
        (KINDS[1], relu(n_inputs, seed, widths), relu(n_inputs, seed, widths)),
        (KINDS[2], relu(n_inputs, seed, widths), relu(n_inputs, 1000 + seed, widths)),
        (KINDS[3], relu(n_inputs, 2000 + seed, widths), learner),
    ):
        network = ib.DGN.from_weights(*weights.layers)
        gates = ib.gates.NetworkGates(setter).fit(train.X).transform(train.X)
        yield kind, trained(network, train, gates, steps), setter


def rows(
    train: ib.Sample, held_out: ib.Sample, seed: int, steps: int, widths: tuple[int, ...] = WIDTHS
) -> Iterator[dict[str, Any]]:
    """One row a kind."""
    for kind, network, setter in arms(train, seed, steps, widths):
        gating = ib.gates.NetworkGates(setter).fit(train.X)
        gates = gating.transform(train.X).astype(float), gating.transform(held_out.X).astype(float)
        given = (None, None) if kind == KINDS[0] else gates
        yield {
            "seed": seed,
            "gates": kind,
            "train_error": error(scores(network, train.X, given[0]), train.y),
            "error": error(scores(network, held_out.X, given[1]), held_out.y),
            "npk_error": path_machine(train, held_out, gates, widths),
        }


@click.command()
@data_folder
@sizes(seeds=(2, 10), steps=(200, 500))
@click.option("--n-train", type=click.IntRange(min=2), help="By default 300 of MNIST, 60 digits.")
@out_folder
def main(data_dir: Path | None, seeds: int, steps: int, n_train: int | None, out: Path) -> None:
    """Held-out errors behind gates that adapt, that never learned, and that have learned."""
    click.echo(machine())
    n_train = n_train or (60 if data_dir is None else 300)
    kept = Kept(
        out / f"whose_gates_{images_of(data_dir).file}.csv", ("seed",),
        options={"steps": steps, "n_train": n_train}, float_format="%.6g",
    )  # fmt: skip
    for seed in range(1, seeds + 1):
        if (seed,) in kept:
            continue
        with refused("--n-train"):
            train, held_out = pair(data_dir, n_train, seed)
        found = pd.DataFrame(rows(train, held_out, seed, steps))
        kept.add(found)
        click.echo(found.to_string(index=False, header=seed == 1, float_format="%.4f"))
    table = kept.table
    by_kind = table.groupby("gates", sort=False)[["train_error", "error", "npk_error"]]
    click.echo(by_kind.agg(["mean", "min", "max"]).to_string(float_format="%.4f"))
    errors = table.pivot(index="seed", columns="gates", values="error")
    for better, worse in ((KINDS[0], KINDS[1]), (KINDS[3], KINDS[2]), (KINDS[3], KINDS[0])):
        less = int((errors[better] < errors[worse]).sum())
        more = int((errors[better] > errors[worse]).sum())
        click.echo(f"{better} below {worse}: {less} seeds, above: {more}, of {len(errors)}")


if __name__ == "__main__":
    main()
