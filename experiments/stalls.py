"""Which trainers come to stand still, on which networks, and whether each of them says so.

    python -m experiments.stalls --out experiments/results/stalls.csv

Every trainer trains eight kinds of networks from six seeds, which are of Gaussian inputs, with the
labels of a random linear function for the first three seeds and those of a coin for the others,
which few of the networks fit. A run stands still whose loss and weights, all of them, change by
less than one part in a million over the last quarter of its steps; this is measured here from the
weights themselves, beside what the trajectory says. `silent` counts runs that stand still and say
nothing: none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import click
import numpy as np
import torch

import implicit_bias as ib
from implicit_bias._support.words import LossName, TrainerName
from implicit_bias.training import TRAINERS

from .tables import Kept, out_file

N, D, CONTEXTS, CLASSES, PATHS = 20, 3, 2, 3, (3, 3)
SEEDS, STEPS, RATE = 6, 1000, 0.1
# Those that find no step by themselves, and those that need no more of them.
RATES, FEWER = MappingProxyType({"constant": RATE}), MappingProxyType({"newton": 30})
STILL, LAST = 1e-6, 0.75

# What a run says of itself, in short.
SAID = MappingProxyType(
    {
        "at a kink": "kink", "moves them no more": "no step", "too short": "short",
        "no score depends": "closed", "slope of the loss is 0": "rest", "in balance": "balance",
        "along the weights alone": "direction at rest",
    }
)  # fmt: skip

NETWORKS: Mapping[str, Callable[[int], torch.nn.Module]] = MappingProxyType(
    {
        "linear": lambda seed: ib.DeepLinear(D, random_state=seed),
        "gated": lambda seed: ib.GLN(D, 3, CONTEXTS, random_state=seed),
        "relu": lambda seed: ib.ReLU(D, 4, random_state=seed),
        "deep": lambda seed: ib.networks.DeepReLU(D, (4, 3), random_state=seed),
        "classes": lambda seed: ib.DeepLinear(D, n_outputs=CLASSES, random_state=seed),
        "paths": lambda seed: ib.DGN(D, widths=PATHS, random_state=seed),
        "dynamics": lambda seed: ib.networks.GDLN(D, CONTEXTS + 1, random_state=seed),
        "head": lambda seed: ib.networks.LabelledHead(CLASSES, D),
    }
)


def data(network: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return inputs (N, D), labels or rows of classes, and contexts of a gated network."""
    rng = np.random.default_rng(seed)
    X, coin = rng.normal(size=(N, D)), seed % SEEDS >= SEEDS / 2
    if network == "classes":
        scores = rng.normal(size=(N, CLASSES)) if coin else X @ rng.normal(size=(D, CLASSES))
        return X, np.eye(CLASSES)[scores.argmax(axis=1)], None
    y = np.where((rng.normal(size=N) if coin else X @ rng.normal(size=D)) > 0, 1.0, -1.0)
    if network == "head":  # margins of 1, and the classes where other networks have gates
        scores = rng.normal(size=(N, CLASSES)) if coin else X @ rng.normal(size=(D, CLASSES))
        return X, np.ones(N), np.eye(CLASSES)[scores.argmax(axis=1)]
    gating: Any = {
        "gated": ib.HyperplaneContexts(3, CONTEXTS, random_state=seed),
        "paths": ib.gates.LinearGates(D, widths=PATHS, random_state=seed),
        "dynamics": ib.HyperplaneGates(CONTEXTS, random_state=seed),
    }.get(network)
    return X, y, None if gating is None else gating.fit(X).transform(X)


def flat(network: torch.nn.Module) -> dict[str, Any]:
    """Return all weights, to be measured along a run."""
    return {"weights": torch.cat([p.detach().flatten() for p in network.parameters()]).numpy()}


def row_of(trainer: str, name: str, seed: int, steps: int) -> dict[str, Any] | None:
    """Return one run's row; None where the trainer does not take the network."""
    X, y, gates = data(name, seed)
    rate = RATES.get(trainer)
    loss: LossName = "logistic" if "logistic" in TRAINERS[trainer].losses else "squared"
    settings = ib.TrainingSettings(
        trainer=cast(TrainerName, trainer),
        batch_size=0,
        loss=loss,
        schedule=((min(steps, FEWER.get(trainer, steps)), rate),),
    )
    network = NETWORKS[name](seed).double()
    try:
        run = ib.train(network, X, y, gates, settings=settings, observer=flat)
    except ValueError:
        return None
    weights, last = run.observed["weights"], run.step >= LAST * run.step[-1]
    last |= run.step == run.step[run.step <= LAST * run.step[-1]].max()
    moved = np.linalg.norm(weights[last] - weights[-1], axis=1).max() / np.linalg.norm(weights[-1])
    fallen = float(np.abs(np.expm1(run.log_loss[last] - run.log_loss[-1])).max())
    still = bool(moved <= STILL and fallen <= STILL)
    return {
        "trainer": trainer, "network": name, "seed": seed, "steps": int(run.step[-1]),
        "log_loss": float(run.log_loss[-1]), "separates": bool(run.smallest_margin[-1] > 0),
        "moved": float(moved), "fallen": fallen, "still": still,
        "said": next((word for key, word in SAID.items() if key in run.stopped), run.stopped),
        "silent": still and not run.stopped,
    }  # fmt: skip


def rows(trainers: Sequence[str], n_seeds: int, steps: int, done: Kept) -> Iterator[dict[str, Any]]:
    """Yield the rows that are not there yet."""
    for trainer in trainers:
        for name in NETWORKS:
            for seed in range(n_seeds):
                if (trainer, name, seed) not in done:
                    found = row_of(trainer, name, seed, steps)
                    if found is not None:
                        yield found


@click.command()
@click.option("--trainer", "trainers", multiple=True, type=click.Choice(sorted(TRAINERS)))
@click.option("--seeds", type=click.IntRange(min=1), default=SEEDS, show_default=True)
@click.option("--steps", type=click.IntRange(min=4), default=STEPS, show_default=True)
@out_file(Path("runs/stalls.csv"))
def main(trainers: Sequence[str], seeds: int, steps: int, out: Path) -> None:
    """Train, and write which runs stand still and what they say."""
    kept = Kept(out, ["trainer", "network", "seed"], options={"steps": steps}, float_format="%.4g")
    for row in rows(trainers or list(TRAINERS), seeds, steps, kept):
        kept.add([row])
    counts = kept.table.groupby(["trainer", "network"])[["still", "silent"]].sum()
    click.echo(counts.to_string())


if __name__ == "__main__":
    main()
