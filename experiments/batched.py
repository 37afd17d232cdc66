"""Seconds a run when networks train side by side, beside one after the other.

    python -m experiments.batched --out experiments/results/batched.csv

Inputs are random, as many and as long as the published experiments' MNIST images: only the sizes
matter. Both ways alternate in one process, and medians are compared.
"""

from __future__ import annotations

import platform
import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from implicit_bias import GLN, FReLU, TrainingSettings, train, train_many
from implicit_bias.options import TrainerName

from .tables import out_file

N_SAMPLES, N_INPUTS, N_CONTEXTS = 500, 785, 2
STEPS = 60
# What is trained, with how many units, by which trainer, in batches of how many samples.
CASES: tuple[tuple[str, int, TrainerName, int], ...] = (
    ("gln", 10, "constant", 128),
    ("gln", 10, "annealed", 0),
    ("gln", 50, "constant", 128),
    ("frelu", 50, "constant", 128),
    ("frelu", 50, "annealed", 0),
)


def networks(model: str, n_units: int, n_runs: int, device: str) -> list[torch.nn.Module]:
    """Untrained networks that differ in their seeds."""
    if model == "gln":
        return [
            GLN(N_INPUTS, n_units, N_CONTEXTS, random_state=seed, device=device)
            for seed in range(n_runs)
        ]
    return [
        FReLU(N_INPUTS, n_units, init="kaiming", random_state=seed, device=device)
        for seed in range(n_runs)
    ]


def measure(
    model: str,
    n_units: int,
    trainer: TrainerName,
    batch_size: int,
    *,
    n_runs: int,
    repeats: int,
    device: str,
) -> dict[str, Any]:
    """Medians of both ways, in seconds a run and step."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, N_INPUTS))
    y = np.sign(rng.normal(size=N_SAMPLES))
    gates = rng.integers(0, 2, size=(N_SAMPLES, n_units))
    settings = TrainingSettings(
        trainer=trainer,
        batch_size=batch_size,
        schedule=((STEPS, 0.01 if trainer == "constant" else None),),
        n_checkpoints=2,
    )

    def alone() -> None:
        for network in networks(model, n_units, n_runs, device):
            train(network, X, y, gates, settings=settings)

    def together() -> None:
        train_many(networks(model, n_units, n_runs, device), X, y, gates, settings=settings)

    seconds: dict[str, list[float]] = {"alone": [], "together": []}
    for repeat in range(repeats + 1):
        for name, way in (("alone", alone), ("together", together)):
            start = time.perf_counter()
            way()
            if repeat:  # the first is a warm-up
                seconds[name].append((time.perf_counter() - start) / (n_runs * STEPS))
    one, many = (statistics.median(seconds[name]) for name in ("alone", "together"))
    return {
        "model": model,
        "hidden_units": n_units,
        "trainer": trainer,
        "batch_size": batch_size or N_SAMPLES,
        "runs": n_runs,
        "device": device,
        "ms_a_step_alone": 1e3 * one,
        "ms_a_step_together": 1e3 * many,
        "ratio": one / many,
    }


@click.command()
@click.option("--runs", "n_runs", type=click.IntRange(min=2), default=8, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--device", default="cpu", show_default=True)
@out_file()
def main(n_runs: int, repeats: int, device: str, out: Path | None) -> None:
    """Time runs side by side and one after the other."""
    import pandas as pd

    click.echo(
        f"{platform.machine()}, Python {platform.python_version()}, torch {torch.__version__}"
    )
    rows = []
    for case in CASES:
        row = measure(*case, n_runs=n_runs, repeats=repeats, device=device)
        rows.append(row)
        click.echo(
            f"{row['model']} {row['hidden_units']} units, {row['trainer']}, batches of "
            f"{row['batch_size']}: {row['ms_a_step_alone']:.2f} ms a step alone, "
            f"{row['ms_a_step_together']:.2f} ms among {n_runs}: {row['ratio']:.2f} x"
        )
        if out is not None:
            pd.DataFrame(rows).to_csv(out, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
