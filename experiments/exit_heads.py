"""Exits that teach one another: chapter 6 of the thesis, as far as digits can show it.

    python -m experiments.exit_heads --full --out experiments/results

The thesis trains multi-scale dense networks on CIFAR100 and ImageNet; its tables 6.1 to 6.4 stand
in `published/phuong_2021/accuracies.csv`. Here are scikit-learn's digits: heads on a frozen trunk
by their certified limits, and a small trunk that is trained along with its exits by algorithm 6.1.
Exits of a convolutional trunk are those of `experiments.thesis exits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import torch
from numpy.typing import NDArray

from implicit_bias.data.catalogue import load_class_data
from implicit_bias.heads import Trunk, budget_exits, solve_exit_heads, train_multi_exit, train_trunk
from implicit_bias.models.heads import averages, confidence, distillation_loss
from implicit_bias.runs.drawing.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

from .tables import keep_rows, sizes, to_write_to

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Row = dict[str, float | int | str]

REPORTED = Path(__file__).parent / "published" / "phuong_2021" / "accuracies.csv"
# Samples to learn from, labelled or not, and those that choose the exit of a budget; the rest test.
POOL, CHOOSING = 400, 200
LABELS = (5, 10, 20)
# Of a trunk with its exits. With 300 a temperature of 3 costs four points, with 1200 none.
STEPS = 900
# Minimisers are asked for to 1e-4 of their norm, directions to a gap of 1e-4: accuracies need less.
TOL = 1e-4
# In print exit-wise is blue, distilled and annealed green, semi-supervised red, all later yellow.
COLORS = {
    "exit-wise": BLUE, "distilled": GREEN, "semi-supervised": VERMILLION,
    "annealed": GREEN, "annealed, all later teach": ORANGE, "tau = 1": BLACK,
    "tau = 2": PURPLE, "tau = 3": SKY, "tau = 4": "#8C564B",
    "annealed, semi-supervised": VERMILLION,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Draw:
    """Digits with so many labels per class.

    Attributes
    ----------
    X, choosing, test : arrays of inputs
    labels : (POOL,) ints
        -1 for none.
    chosen, tested : ints
        The classes of `choosing` and `test`.
    """

    X: Floats
    labels: NDArray[np.int64]
    choosing: Floats
    chosen: NDArray[np.int64]
    test: Floats
    tested: NDArray[np.int64]

    @property
    def labelled(self) -> NDArray[np.bool_]:
        return self.labels >= 0


def draw_digits(per_class: int, seed: int) -> Draw:
    """A pool of digits of which so many a class keep their label."""
    data = load_class_data("digits", n_train=POOL, n_val=1797 - POOL, random_state=seed)
    y = data.labels_train
    rows = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in range(10)])
    labels = np.full(len(y), -1)
    labels[rows] = y[rows]
    X, y = data.X_val, data.labels_val
    return Draw(data.X_train, labels, X[:CHOOSING], y[:CHOOSING], X[CHOOSING:], y[CHOOSING:])


Logits = Callable[[Floats], list[Floats]]


def accuracies(logits: Logits, draw: Draw) -> tuple[Floats, Floats]:
    """Held-out accuracies of the first 1, 2, ... exits, in budget mode and in anytime mode."""
    chosen = budget_exits([accuracy(u, draw.chosen) for u in logits(draw.choosing)])
    tested = logits(draw.test)
    own = [accuracy(u, draw.tested) for u in tested]
    together = [accuracy(u, draw.tested) for u in averages(tested)]
    return np.array([own[m] for m in chosen]), np.array(together)


def accuracy(u: Floats, labels: NDArray[np.int64]) -> float:
    """The share of rows of logits (n, K) that are largest at the label."""
    return float(np.mean(u.argmax(axis=1) == labels))


# Heads on a frozen trunk, where descent takes them


def limits(n_draws: int) -> Iterator[Row]:
    """Tables 6.1 to 6.4 with heads alone: exit-wise, distilled and semi-supervised limits."""
    for per_class in LABELS:
        found: dict[str, list[tuple[Floats, Floats]]] = {}
        worst, taught = 0.0, []
        for seed in range(n_draws):
            draw = draw_digits(per_class, seed)
            trunk = Trunk(draw.X.shape[1], widths=(16, 16, 16), random_state=seed)
            both = np.vstack([draw.X, draw.test])
            unseen = np.concatenate([draw.labels, np.full(len(draw.test), -1)])
            said = train_trunk(trunk, both, unseen, n_steps=150)
            teacher = said[:POOL]
            taught.append(float(np.mean(said[POOL:].argmax(axis=1) == draw.tested)))
            for method in METHODS:
                heads = _heads(draw, trunk.features(draw.X), teacher, method)
                worst = max(worst, *(head.certificate.error for head in heads))
                logits = _of_heads(trunk, [head.zeta for head in heads])
                found.setdefault(method, []).append(accuracies(logits, draw))
        for method, ends in found.items():
            about: Row = {"labels": per_class, "method": method, "error_bound": worst}
            yield from _table({**about, "teacher": 100 * float(np.mean(taught))}, ends)


METHODS = ("exit-wise", "distilled", "semi-supervised")


def _heads(draw: Draw, features: Sequence[Floats], teacher: Floats, method: str) -> list[Any]:
    """Limits of all exits; the last has no teacher and learns from labels, as T(M) is empty."""
    known = draw.labelled
    rows = np.ones_like(known) if method == "semi-supervised" else known
    found: list[Any] = []
    for m, phi in enumerate(features):
        if method == "exit-wise" or m == len(features) - 1:
            found += solve_exit_heads([phi[known]], draw.labels[known], share=1, tol=TOL)
        else:
            found += solve_exit_heads(
                [phi[rows]], draw.labels[rows], teacher=teacher[rows], temperature=3.0, tol=TOL
            )
    return [head.require() for head in found]


def _of_heads(trunk: Trunk, weights: Sequence[Floats]) -> Logits:
    return lambda X: [phi @ W.T for phi, W in zip(trunk.features(X), weights, strict=True)]


# A trunk that is trained along with its exits


def together(n_draws: int) -> Iterator[Row]:
    """Tables 6.1 to 6.4, figure 6.7 and appendix E.1 with algorithm 6.1, 10 labels a class."""
    for name, how in COURSES.items():
        both, ends = [], []
        for seed in range(n_draws):
            draw = draw_digits(10, seed)
            logits, run = _train(draw, seed, how)
            both.append(accuracies(logits, draw))
            ends.append(float(run.temperature[-1]))
        yield from _table({"labels": 10, "method": name, "temperature": float(np.mean(ends))}, both)


COURSES: dict[str, dict[str, Any]] = {
    "exit-wise": {"share": 1.0},
    **{f"tau = {tau}": {"temperature": float(tau)} for tau in (1, 2, 3, 4)},
    "annealed": {"most_confident": 0.5},
    "annealed, all later teach": {"most_confident": 0.5, "later_teach": True},
    "annealed, semi-supervised": {"most_confident": 0.5, "all": True},
}


def _train(draw: Draw, seed: int, how: dict[str, Any]) -> tuple[Logits, Any]:
    rows = np.ones_like(draw.labelled) if how.get("all") else draw.labelled
    trunk = Trunk(draw.X.shape[1], widths=(32, 32, 32, 32), random_state=seed)
    own = {name: value for name, value in how.items() if name != "all"}
    run = train_multi_exit(trunk, draw.X[rows], draw.labels[rows], n_steps=STEPS, **own)
    return _of_heads(trunk, run.weights), run


def sureness() -> Iterator[Row]:
    """Figure 6.6: how sure the last exit is, with annealing and without, over training."""
    for name in ("tau = 1", "annealed"):
        run = _train(draw_digits(10, 0), 0, COURSES[name])[1]
        for step in range(0, len(run.temperature), 10):
            plain, tempered = run.confidence[step]
            yield {
                "method": name,
                "step": step,
                "confidence": plain,
                "tempered": tempered,
                "temperature": run.temperature[step],
            }


# What is printed otherwise


def errata() -> Iterator[Row]:
    """Algorithm 6.1 as printed and as meant, on a digits teacher; claims beside the tables."""
    draw = draw_digits(10, 0)
    trunk = Trunk(draw.X.shape[1], widths=(16, 16, 16), random_state=0)
    teacher = torch.tensor(train_trunk(trunk, draw.X, draw.labels, n_steps=150))
    tau = 4.0
    yield _erratum("teacher's confidence at tau = 4 (line 10 tempers it again)",
                   confidence([teacher], tau**2), confidence([teacher], tau))  # fmt: skip
    twice = _slope(lambda s: distillation_loss(teacher / tau, s, tau), teacher)
    once = _slope(lambda s: distillation_loss(teacher, s, tau), teacher)
    yield _erratum("slope of a student that equals its teacher", twice, once)
    empty = float(torch.empty(0).mean())
    yield _erratum("(6.4): mean over the teachers of the last exit, of whom there are none", empty,
                   0.0)  # fmt: skip
    for claim, printed, right in claims(reported()):
        yield _erratum(claim, printed, right)


def reported() -> pd.DataFrame:
    """Tables 6.1 to 6.4 of the thesis: top-5 accuracy in per cent, and 1.96 standard errors."""
    import pandas as pd

    return pd.read_csv(REPORTED)


def claims(tables: pd.DataFrame) -> Iterator[tuple[str, float, float]]:
    """What the text says of tables 6.1 and 6.2, and what they say."""
    budget = tables[tables["mode"] == "budget"]
    of = {str(name): one.set_index("exit") for name, one in budget.groupby("data")}
    gain = {name: one.distilled - one.exit_wise for name, one in of.items()}
    imagenet = max(float(g.max()) for name, g in gain.items() if name.startswith("ImageNet"))
    yield "ImageNet: gains of up to, points", 3.8, round(imagenet, 1)
    even = sum(int((g.round(1) <= 0).sum()) for name, g in gain.items() if name.startswith("CIFAR"))
    yield "CIFAR100: budgets at which distillation is no better", 0, even


def _slope(loss: Callable[[torch.Tensor], torch.Tensor], at: torch.Tensor) -> float:
    student = at.clone().requires_grad_()
    (slope,) = torch.autograd.grad(loss(student), student)
    return float(slope.norm(dim=1).mean()) * len(at)


def _erratum(what: str, printed: float, right: float) -> Row:
    return {"what": what, "printed": printed, "right": right}


def _table(about: Row, both: Sequence[tuple[Floats, Floats]]) -> Iterator[Row]:
    """A row an exit: means over draws and 1.96 standard errors, in per cent."""
    values = 100 * np.array(both)
    means = values.mean(axis=0)
    errors = np.full_like(means, math.nan)
    if len(both) > 1:
        errors = 1.96 * values.std(axis=0, ddof=1) / math.sqrt(len(both))
    for m in range(values.shape[2]):
        yield {
            **about,
            "exit": m + 1,
            "budget": means[0, m],
            "budget_error": errors[0, m],
            "anytime": means[1, m],
            "anytime_error": errors[1, m],
            "draws": len(both),
        }


# Pictures


def draw_all(folder: Path) -> None:
    """Reported gains beside those of limits; training together; confidence and temperature."""
    import pandas as pd

    from implicit_bias.runs.drawing import Row as FigureRow
    from implicit_bias.runs.drawing import compose

    names = ("limits", "together", "sureness")
    paths = [folder / f"exit_heads_{name}.csv" for name in names]
    if not all(path.exists() for path in paths):
        return
    limited, joint, sure = (pd.read_csv(path) for path in paths)
    rows = [
        FigureRow(3, lambda axes: _draw_gains(axes, reported(), limited), height=3.6),
        FigureRow(3, lambda axes: _draw_together(axes, joint, sure), height=3.9),
    ]
    title = (
        "Chapter 6 of the thesis: gains in print (tables 6.1 and 6.2), and scikit-learn's digits "
        "(bars: 1.96 standard errors)"
    )
    compose(rows, title=title).savefig(folder / "exit_heads.png", dpi=110)


def _draw_gains(axes: list[Axes], tables: Any, limited: Any) -> None:
    from implicit_bias.runs.drawing import legend_above

    left, middle, right = axes
    for name in ("CIFAR(150)", "CIFAR(250)", "CIFAR(500)", "ImageNet(100)", "ImageNet(full)"):
        one = tables[(tables["mode"] == "budget") & (tables.data == name)]
        left.plot(one.exit, one.distilled - one.exit_wise, marker="o", ms=3, label=name)
    left.set(xlabel="exits in the budget (in print)", ylabel="gain by distillation, points")
    for labels, one in limited.groupby("labels"):
        wide = one.pivot(index="exit", columns="method", values="budget")
        gain = wide["distilled"] - wide["exit-wise"]
        middle.plot(gain.index, gain, marker="o", ms=3, label=f"{labels} labels a class")
    middle.set(xlabel="exits in the budget (limits, digits)", xticks=sorted(set(limited.exit)),
               ylabel="gain by distillation, points")  # fmt: skip
    least = limited[limited.labels == min(LABELS)]
    for method, one in least.groupby("method"):
        right.errorbar(one.exit, one.anytime, one.anytime_error, marker="o", ms=3,
                       color=COLORS[str(method)], label=method)  # fmt: skip
    right.set(xlabel="exits that are averaged (limits)", xticks=sorted(set(limited.exit)),
              ylabel=f"accuracy, {min(LABELS)} labels a class, %")  # fmt: skip
    for ax in axes:
        ax.axhline(0, color="0.6", linewidth=0.8) if ax is not right else None
        legend_above(ax)


def _draw_together(axes: list[Axes], joint: Any, sure: Any) -> None:
    from implicit_bias.runs.drawing import legend_above

    by_exit, confident, names = axes
    for method in COURSES:
        one = joint[joint.method == method]
        by_exit.errorbar(one.exit, one.anytime, one.anytime_error, marker="o", ms=3,
                         color=COLORS[method], label=method)  # fmt: skip
    by_exit.set(xlabel="6.7, E.1: exits that are averaged (trained together)", ylabel="accuracy, %",
                xticks=sorted(set(joint.exit)))  # fmt: skip
    plain, annealed = (sure[sure.method == name] for name in ("tau = 1", "annealed"))
    confident.plot(plain.step, plain.confidence, label="tau = 1")
    confident.plot(annealed.step, annealed.confidence, label="annealed")
    confident.plot(annealed.step, annealed.tempered, label="annealed, tempered")
    confident.axhline(0.5, color="0.6", linewidth=0.8)
    confident.set(
        xlabel="6.6: steps (one draw)", ylabel="confidence of the last exit", ylim=(0, 1.02)
    )
    legend_above(confident)
    names.axis("off")
    names.legend(*by_exit.get_legend_handles_labels(), loc="center left", frameon=False,
                 title="trained together")  # fmt: skip


@click.command()
@click.option("--only", type=click.Choice(["limits", "together", "sureness", "errata"]))
@sizes(draws=(4, 10))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    callback=to_write_to,
    help="Folder for rows and the picture.",
)
def main(only: str | None, draws: int, out: Path | None) -> None:
    """Redo what can be computed of the thesis's chapter about exits.

    Trunks that are trained along take two fifths of the draws.
    """
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "limits": lambda: limits(draws),
        "together": lambda: together(max(1, 2 * draws // 5)),
        "sureness": sureness,
        "errata": errata,
    }
    for name in [only] if only else list(parts):
        path = None if out is None else out / f"exit_heads_{name}.csv"
        keep_rows(parts[name](), path, digits=".4g")
    if out is not None:
        draw_all(out)


if __name__ == "__main__":
    main()
