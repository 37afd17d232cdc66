"""The neural path kernel of a ReLU network's own gates, while the network is trained.

    python -m experiments.path_kernels --full --data-dir DIR --out experiments/results
    python -m experiments.path_kernels --full --out experiments/results

Images of 4 against 7 in MNIST's files, scikit-learn's digits without --data-dir. Networks of two
depths learn 300 images by either loss; at steps of the way one row tells

    nu           y' (M / tr M)^-1 y of the path kernel M of the gates they have then: how badly it
                 fits the labels
    npk_error    held-out error of the hard-margin machine of M
    ntk_error    the same of the machine of the network's tangent kernel
    error        held-out error of the network

with the gaps of the machines; no error where a kernel does not separate the training images, a
sample without an active path for one. `path_kernels_NAME.csv` is written as runs end,
`.png` of all of them in the end; runs that are there are not run again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from implicit_bias.data.images import load_digit_classes, load_idx_classes
from implicit_bias.options import LossName

from .interrupts import finished
from .spectra import Array, machine, scores
from .tables import Kept, data_folder, images_of, out_folder, refused, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIR = (4, 7)
CHECKPOINTS = 9
KEY = ["widths", "loss", "seed"]


@dataclass(frozen=True)
class Case:
    """A network, and the loss that it is trained on."""

    widths: tuple[int, ...]
    loss: LossName

    @property
    def name(self) -> str:
        return "-".join(map(str, self.widths))


CASES = tuple(
    Case(widths, loss) for widths in ((48,) * 3, (100,) * 4) for loss in ("squared", "logistic")
)


def pair(data_dir: Path | None, n_train: int, seed: int) -> tuple[ib.Sample, ib.Sample]:
    """All images of the two classes, shuffled: training samples and the others."""
    if data_dir is None:
        data = load_digit_classes(n_train=1000, random_state=seed)
    else:
        data = load_idx_classes(data_dir, n_train=5000, random_state=seed)
    X = np.concatenate([data.X_train, data.X_val])
    labels = np.concatenate([data.labels_train, data.labels_val])
    chosen = np.isin(labels, PAIR)
    X, y = X[chosen], np.where(labels[chosen] == PAIR[0], 1.0, -1.0)
    if n_train >= len(y):
        raise ValueError(f"n_train must leave some of the {len(y)} images to others, got {n_train}")
    return ib.Sample(X[:n_train], y[:n_train], None), ib.Sample(X[n_train:], y[n_train:], None)


def error(found: Array, y: Array) -> float:
    """Share of wrong labels."""
    return float(np.mean(~(found * y > 0)))


def watch(train: ib.Sample, held_out: ib.Sample, widths: tuple[int, ...]) -> Callable[..., Any]:
    """What is measured of a network at a checkpoint."""

    def observe(network: Any) -> Mapping[str, float]:
        gates, others = (network.gates(sample.X).numpy() for sample in (train, held_out))
        path = ib.kernels.neural_path_kernel(train.X, gates, widths=widths)
        crossed = ib.kernels.neural_path_kernel(held_out.X, others, train.X, gates, widths=widths)
        tangent = ib.kernels.empirical_ntk(network, train.X, None)
        found = {"nu": ib.kernels.nu(path, train.y)}
        machines = {
            "npk": (path, crossed),
            "ntk": (tangent, ib.kernels.empirical_ntk(network, held_out.X, None, train.X, None)),
        }
        for name, (K, cross) in machines.items():
            # Far from 1 a kernel's entries are those of another unit of weight.
            unit = float(np.trace(K)) / len(K)
            limit = ib.solve_kernel_svm(K / unit, train.y)
            apart = limit.certificate.proves_separability()
            wrong = error(limit.predictor(cross / unit), held_out.y) if apart else math.nan
            found |= {f"{name}_error": wrong, f"{name}_gap": limit.gap}
        found["error"] = error(scores(network, held_out.X, None), held_out.y)
        found["train_error"] = error(scores(network, train.X, None), train.y)
        return found

    return observe


def settings_of(case: Case, network: Any, train: ib.Sample, steps: int) -> ib.TrainingSettings:
    """Heavy-ball steps: those the trainer finds for margins, stable ones for squares."""
    if case.loss != "squared":
        given: dict[str, Any] = {"trainer": "momentum", "schedule": ((steps, None),)}
    else:
        largest = float(np.linalg.eigvalsh(ib.kernels.empirical_ntk(network, train.X, None))[-1])
        rate = 0.2 * len(train.y) / largest
        given = {"trainer": "constant", "momentum": 0.9, "schedule": ((steps, rate),)}
    return ib.TrainingSettings(loss=case.loss, batch_size=0, n_checkpoints=CHECKPOINTS, **given)


def rows(case: Case, data_dir: Path | None, seed: int, n_train: int, steps: int) -> pd.DataFrame:
    """One row a checkpoint of one run."""
    import torch

    from implicit_bias.networks.relu import DeepReLU

    train, held_out = pair(data_dir, n_train, seed)
    network = DeepReLU(train.X.shape[1], case.widths, random_state=seed, dtype=torch.float64)
    settings = settings_of(case, network, train, steps)
    observer = watch(train, held_out, case.widths)
    run = finished(ib.train(network, train.X, train.y, None, settings=settings, observer=observer))
    frame = pd.DataFrame(
        {"widths": case.name, "loss": case.loss, "seed": seed, "step": run.step.astype(int)}
    )
    return frame.assign(log_loss=run.log_loss, **run.observed)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Of every case: in how many runs nu and the machine's error ended lower, and means."""
    ends = table.sort_values("step").groupby(KEY, sort=False)
    first, last = ends.first(), ends.last()
    columns = {
        "runs": last["nu"] > 0,
        "nu_fell": last["nu"] < first["nu"],
        "npk_fell": last["npk_error"] < first["npk_error"],
        "npk_rose": last["npk_error"] > first["npk_error"],
    }
    counts = pd.DataFrame(columns).groupby(level=KEY[:2], sort=False).sum()
    for name in ("nu", "npk_error", "ntk_error", "error"):
        for when, one in (("first", first), ("last", last)):
            counts[f"{name}_{when}"] = one[name].groupby(level=KEY[:2], sort=False).mean()
    return counts


def draw(table: pd.DataFrame, data: str) -> Figure:
    """nu, and the errors of the machine and of the network, along training, a column a case."""
    from matplotlib.figure import Figure

    cases = list(table.groupby(KEY[:2], sort=False))
    figure = Figure(figsize=(3.6 * len(cases), 6.5), layout="constrained")
    panels = figure.subplots(2, len(cases), squeeze=False, sharey="row")
    for (name, own), (above, below) in zip(cases, panels.T, strict=True):
        for _, one in own.groupby("seed"):
            step = one["step"] + 1
            above.plot(step, one["nu"] / one["nu"].iloc[0], "C0-", alpha=0.6)
            below.plot(step, 100 * one["npk_error"], "C1-", alpha=0.6)
            trained = one["step"] > 0
            below.plot(step[trained], 100 * one["error"][trained], "C7:", alpha=0.6)
        above.set(xscale="log", ylim=(0, 1.3), title=f"{name[0]}, {name[1]} loss")
        below.set(xscale="log", xlabel="steps + 1", ylim=(0, 6))
    panels[0][0].set_ylabel("nu over nu at the start")
    panels[1][0].set_ylabel("held-out error, %")
    panels[1][0].plot([], [], "C1-", label="machine of the path kernel")
    panels[1][0].plot([], [], "C7:", label="network")
    panels[1][0].legend(frameon=False, loc="lower left")
    figure.suptitle(f"{data}, 4 against 7: {table['seed'].nunique()} seeds")
    return figure


@click.command()
@data_folder
@click.option("--n-train", type=click.IntRange(min=2), default=300, show_default=True)
@sizes(seeds=(1, 5), steps=(200, 500))
@out_folder
def main(data_dir: Path | None, seeds: int, n_train: int, steps: int, out: Path) -> None:
    """Follow the path kernel of a ReLU network while it learns 4 against 7."""
    click.echo(machine())
    images = images_of(data_dir)
    kept = Kept(
        out / f"path_kernels_{images.file}.csv", KEY, options={"n_train": n_train, "steps": steps},
        float_format="%.6g", dtype={"widths": str},
    )  # fmt: skip
    with refused("--n-train"):
        pair(data_dir, n_train, 1)
    for seed in range(1, seeds + 1):
        for case in CASES:
            if (case.name, case.loss, seed) in kept:
                continue
            found = rows(case, data_dir, seed, n_train, steps)
            kept.add(found)
            ends = found.iloc[[0, -1]]
            click.echo(
                f"{case.name}, {case.loss}, seed {seed}: nu {ends['nu'].round().tolist()}, path "
                f"kernel's error {ends['npk_error'].round(4).tolist()}, network "
                f"{found['error'].iloc[-1]:.2%}"
            )
    draw(kept.table, images.said).savefig(kept.path.with_suffix(".png"), dpi=110)
    click.echo(summary(kept.table).to_string(float_format="%.4g"))


if __name__ == "__main__":
    main()
