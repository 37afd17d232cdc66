"""Linear distillation: data geometry, optimisation bias and monotonicity (thesis, section 5.4).

    python -m experiments.distillation --full --out experiments/results
    python -m experiments.distillation --full --data-dir DIR --only bias --out experiments/results

Students are their limits in closed form, which is where gradient flow takes them. The thesis prints
pictures without numbers; rows here have standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from implicit_bias import solve_linear_svm
from implicit_bias.data.made.pairs import load_pair
from implicit_bias.datasets import make_angle_task
from implicit_bias.distillation import distillation_limit, risk_bound, transfer_risk
from implicit_bias.models.distillation import (
    TransferTask,
    angle,
    image_task,
    polynomial_risk_bound,
    polynomial_tail,
    sample_span,
)

from .tables import IMAGES, Kept, data_folder, images_of, keep_rows, out_folder, sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Row = dict[str, float | int | str]
Learner = Callable[[TransferTask, int, np.random.Generator], Floats]

KAPPAS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
DELTAS = tuple(range(0, 100, 10))
REDUCED = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
TRANSFER = {"digits": 30, "mnist": 100}


def geometry(n_draws: int) -> Iterator[Row]:
    """Figure 5.3: the risk on tasks of growing angular alignment, d = 1000, n = 20."""
    for kappa in KAPPAS:
        risks = []
        for seed in range(n_draws):
            task = make_angle_task(20, 1000, kappa, random_state=seed)
            risks.append(transfer_risk(_distilled(task.X, task), task.teacher, task.X_val))
        bound = risk_bound(polynomial_tail(kappa), 20)
        yield {
            "kappa": kappa,
            **_mean("risk", risks),
            "bound_sharper": bound.sharper,
            "bound_printed": bound.value,
            "corollary": polynomial_risk_bound(kappa, 20),
        }


def bias(data_dir: Path | None, n_draws: int) -> Iterator[Row]:
    """Figure 5.4: students w_hat + delta ||w_hat|| q / ||q||, of one loss, on the digits 0, 1."""
    images = images_of(data_dir)
    tasks = [
        image_task(load_pair(data_dir, n_train=TRANSFER[images.data], random_state=seed))
        for seed in range(n_draws)
    ]
    for delta in DELTAS:
        risks = [
            transfer_risk(
                _moved(task.X, task, float(delta), np.random.default_rng(seed)),
                task.teacher,
                task.X_val,
            )
            for seed, task in enumerate(tasks)
        ]
        sizes = {"n_train": len(tasks[0].X), "n_val": len(tasks[0].X_val)}
        yield {"data": images.file, **sizes, "delta": delta, **_mean("risk", risks)}


def monotonicity(n_draws: int) -> Iterator[Row]:
    """Figure 5.5: how often one more sample brings a learner nearer to its teacher, and its risk.

    kappa = 1, d = 100, n = 5.
    """
    for name, learner in _learners().items():
        nearer, risks = [], []
        for seed in range(n_draws):
            task = make_angle_task(6, 100, 1.0, random_state=seed)
            # Not the stream that drew the teacher: its first numbers are the teacher's direction.
            rng = np.random.default_rng((seed, 1))
            before, after = learner(task, 5, rng), learner(task, 6, rng)
            gain = _unsigned(before, task) - _unsigned(after, task)
            nearer.append(float(gain > 0))
            risks.append(transfer_risk(before, task.teacher, task.X_val))
        yield {"learner": name, **_mean("index", nearer), **_mean("risk", risks)}


def _learners() -> dict[str, Learner]:
    def reduced(delta: float) -> Learner:
        return lambda task, n, rng: _moved(task.X[:n], task, delta, rng)

    found: dict[str, Learner] = {"distillation": lambda task, n, rng: _distilled(task.X[:n], task)}
    found |= {f"delta {delta:g}": reduced(delta) for delta in REDUCED}
    return found | {"hard labels": lambda task, n, rng: _hard(task.X[:n], task)}


def _distilled(X: Floats, task: TransferTask) -> Floats:
    return distillation_limit(X, task.teacher).require().zeta


def _moved(X: Floats, task: TransferTask, delta: float, rng: np.random.Generator) -> Floats:
    """The same loss with less of the bias of descent: a Gaussian direction that no sample sees."""
    what = _distilled(X, task)
    q = rng.standard_normal(len(what))
    q -= sample_span(X).project(q)
    return np.asarray(what + delta * np.linalg.norm(what) / np.linalg.norm(q) * q)


def _hard(X: Floats, task: TransferTask) -> Floats:
    """The hard-margin SVM, where descent takes a student of hard labels."""
    y = np.where(X @ task.teacher >= 0, 1.0, -1.0)
    # A sample beyond the margin leaves the machine as it is; a new solve, but for its gap.
    if len(X) > 1:
        before = _hard(X[:-1], task)
        if y[-1] * (X[-1] @ before) >= 1:
            return before
    return np.asarray(solve_linear_svm(X, y).require().zeta).reshape(-1)


def _unsigned(w: Floats, task: TransferTask) -> float:
    between = angle(w, task.teacher)
    return min(between, math.pi - between)


def _mean(name: str, values: list[float]) -> Row:
    """The mean of several draws and its standard error."""
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    return {name: float(np.mean(values)), f"{name}_error": error, "draws": len(values)}


# Pictures


def draw(folder: Path) -> None:
    """Figures 5.1 to 5.3 and 5.5, and 5.4 of every data set that there are rows of."""
    import pandas as pd

    from implicit_bias.runs.drawing import Row as FigureRow
    from implicit_bias.runs.drawing import compose

    own = [folder / f"distillation_{name}.csv" for name in ("geometry", "monotonicity")]
    if all(path.exists() for path in own):
        falls, learners = (pd.read_csv(path) for path in own)
        rows = [
            FigureRow(2, lambda axes: _draw_tasks(axes), height=3.2),
            FigureRow(3, lambda axes: _draw_samples(axes), height=3.6),
            FigureRow(3, lambda axes: _draw_results(axes, falls, learners), height=3.8),
        ]
        title = (
            "Figures 5.1, 5.2, 5.3 and 5.5 of the thesis: linear distillation "
            "(bars: two standard errors)"
        )
        compose(rows, title=title).savefig(folder / "distillation.png", dpi=110)
    biased = [pd.read_csv(path) for path in sorted(folder.glob("distillation_bias_*.csv"))]
    if biased:
        panel = FigureRow(len(biased), lambda axes: _draw_bias(axes, biased), height=3.6)
        title = (
            "Figure 5.4 of the thesis: students of one loss, further and further from where "
            "descent goes (bars: two standard errors)"
        )
        compose([panel], title=title).savefig(folder / "distillation_bias.png", dpi=110)


# Shares of inputs beyond an angle: near the teacher, 20 degrees off the boundary, near it.
TASKS: dict[str, Callable[[Floats], Floats]] = {
    "A: aligned": lambda t: np.clip(1 - 2 * t / math.pi, 0, 1) ** 2,
    "B: a margin": lambda t: np.clip(1 - t / math.radians(70), 0, 1) ** 2,
    "C: at the boundary": lambda t: 1 - np.clip(2 * t / math.pi, 0, 1) ** 3,
}


# Figure 5.2, samples of the plane: name, kappa, margin in degrees.
SAMPLES = (("a margin of 20 degrees", 1.0, 20.0), ("kappa = 1", 1.0, 0.0), ("kappa = 2", 2.0, 0.0))


def _draw_tasks(axes: list[Axes]) -> None:
    from implicit_bias.runs.drawing import legend_above

    theta, (tails, bounds) = np.linspace(0, math.pi / 2, 400), axes
    samples = np.arange(1, 41)
    for name, p in TASKS.items():
        tails.plot(np.degrees(theta), p(theta), label=name)
        bounds.plot(samples, [risk_bound(p, int(n)).sharper for n in samples], label=name)
    tails.set(xlabel="5.1: angle theta, degrees", ylabel="p(theta)", xlim=(0, 90), ylim=(0, 1.02))
    bounds.set(xlabel="samples n", ylabel="least bound of the risk", yscale="log", ylim=(1e-6, 1.2))
    for ax in axes:
        legend_above(ax)


def _draw_samples(axes: list[Axes]) -> None:
    for ax, (name, kappa, margin) in zip(axes, SAMPLES, strict=True):
        task = make_angle_task(250, 2, kappa, margin=math.radians(margin), random_state=3)
        turn = np.array([[task.teacher[1], -task.teacher[0]], task.teacher])
        across, along = turn @ task.X.T
        for side, marker in ((along >= 0, "o"), (along < 0, "^")):
            ax.scatter(across[side], along[side], s=9, marker=marker)
        rise = 3 * math.tan(math.radians(margin))
        ax.fill_between([-3, 0, 3], [-rise, 0, -rise], [rise, 0, rise], color="0.92", zorder=0)
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.set(
            title=f"5.2: {name}",
            xlabel="across the teacher",
            aspect="equal",
            xlim=(-3, 3),
            ylim=(-3, 3),
        )
    axes[0].set_ylabel("along the teacher")


def _draw_results(axes: list[Axes], falls: Any, learners: Any) -> None:
    from implicit_bias.runs.drawing import legend_above

    risk, index, _ = axes
    risk.errorbar(falls.kappa, falls.risk, 2 * falls.risk_error, label="risk", marker="o", ms=3)
    for name, label in (("bound_sharper", "theorem 5.3"), ("corollary", "corollary 5.2")):
        risk.plot(falls.kappa, falls[name], linestyle="--", label=label)
    risk.set(xlabel="5.3: alignment kappa", ylabel="transfer risk", yscale="symlog", ylim=(0, 1))
    risk.set_yscale("symlog", linthresh=1e-4)
    for k, one in learners.iterrows():
        index.errorbar(
            one.risk, one["index"], 2 * one.index_error, 2 * one.risk_error, fmt="o", ms=4,
            label=one.learner, color=f"C{k}",
        )  # fmt: skip
    index.set(xlabel="5.5: transfer risk", ylabel="share of further samples that help",
              ylim=(0, 1.05))  # fmt: skip
    legend_above(risk)
    handles = index.get_legend_handles_labels()
    axes[2].axis("off")
    axes[2].legend(*handles, loc="center left", frameon=False, title="learner")


def _draw_bias(axes: list[Axes], biased: list[Any]) -> None:
    for ax, rows in zip(axes, biased, strict=True):
        ax.errorbar(rows.delta, rows.risk, 2 * rows.risk_error, marker="o", ms=3)
        ax.set(
            title=f"{IMAGES[rows.data[0]]}, 0 against 1, n = {rows.n_train[0]}", xlabel="delta",
            ylabel="transfer risk", ylim=(0, None),
        )  # fmt: skip


@click.command()
@data_folder
@click.option("--only", type=click.Choice(["geometry", "bias", "monotonicity"]))
@sizes({"draws": 2}, draws=(10, 40))
@out_folder
def main(data_dir: Path | None, only: str | None, draws: int, out: Path) -> None:
    """Redo the experiments of the thesis about linear distillation.

    Images are of the part `bias` alone. Monotonicity, which is a share, takes 25 times as many
    draws.
    """
    if data_dir is not None and only not in (None, "bias"):
        raise click.UsageError(f"--data-dir is of the part bias, which --only {only} leaves out")
    parts = {
        "geometry": lambda: geometry(draws),
        "bias": lambda: bias(data_dir, draws),
        "monotonicity": lambda: monotonicity(25 * draws),
    }
    files = {name: name for name in parts} | {"bias": f"bias_{images_of(data_dir).file}"}
    tables = {
        name: Kept(out / f"distillation_{files[name]}.csv", options={"draws": draws})
        for name in ([only] if only else parts)
    }
    for name, kept in tables.items():
        keep_rows(parts[name](), kept, digits=".4f")
    draw(out)


if __name__ == "__main__":
    main()
