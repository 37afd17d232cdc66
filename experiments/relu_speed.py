"""Time of certified local optima next to ReLU networks on digits, and of one of their programs.

    python -m experiments.relu_speed --out experiments/results

One row a number of samples and units, one thread: seconds and programs of the whole search from a
network of 1,000 steps, seconds and gap of its first program, of the next one from its solution, and
of the first by Clarabel in cvxpy's own statement, where that takes no more than some minutes.
`relu_speed.csv`; rows that are there are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

import implicit_bias as ib
from solvers import HingeProgram, solve_hinge

from .interrupts import finished
from .tables import Kept, keep_rows, out_folder

KEY = ("samples", "units")
SIZES = ((60, 12), (300, 12), (300, 50), (1000, 50), (1797, 50))
STEPS = 1000
# Entries of the products of samples and units up to which Clarabel is asked.
CLARABEL = 300 * 50


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of this process, and what the function returns."""
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def by_clarabel(X: np.ndarray, y: np.ndarray, signs: np.ndarray, gates: np.ndarray) -> float:
    """The optimum of the literal program."""
    problem = ib.programs.ReLUMargin(signs=signs).literal(X, y, gates)
    return float(problem.solve(solver="CLARABEL"))


def program_of(y: np.ndarray, X: np.ndarray, signs: np.ndarray, gates: np.ndarray) -> HingeProgram:
    """The program of ReLU units on gates of helping pairs."""
    helping = y[:, None] * signs > 0
    return HingeProgram(X, np.where(helping, gates, 0.0), np.where(helping, 0.0, 1.0))


def row(samples: int, units: int) -> dict[str, Any]:
    """One network, its first programs and the whole search."""
    data = ib.load_digits(n_train=samples, n_val=0, random_state=0)
    X, y = data.X_train, data.y_train
    network = ib.ReLU(X.shape[1], units, init="kaiming", init_scale=0.3, random_state=0)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((STEPS, None),))
    finished(ib.train(network, X, y, settings=settings))
    w1, w2 = (layer.detach().numpy() for layer in network.layers)
    u, signs = np.abs(w2.T) * w1, np.sign(w2[0])
    first = program_of(y, X, signs, X @ u.T > 0)
    seconds, solved = timed(lambda: solve_hinge(first, u))
    live = np.linalg.norm(solved.u, axis=1) > 0
    after = program_of(y, X, signs, X @ np.where(live[:, None], solved.u, u).T > 0)
    guess = (solved.multipliers, solved.shares)
    again, following = timed(lambda: solve_hinge(after, solved.u, guess=guess))
    clarabel, optimum = float("nan"), float("nan")
    if samples * units <= CLARABEL:
        clarabel, optimum = timed(lambda: by_clarabel(X, y, signs, X @ u.T > 0))
    whole, limit = timed(lambda: ib.limits.relu_local_limit(network, X, y, max_patterns=1))
    return {
        "samples": samples, "units": units, "seconds": whole, "programs": limit.programs,
        "lassos": limit.solves, "status": limit.status.name, "value": limit.value,
        "gap": limit.gap, "live": len(limit.units), "support": int(limit.support.sum()),
        "kinks": limit.kinks_opposing, "first_seconds": seconds,
        "first_gap": solved.certificate.gap, "first_lassos": solved.solves,
        "next_seconds": again, "next_lassos": following.solves, "next_steps": following.steps,
        "clarabel_seconds": clarabel,
        "clarabel_difference": optimum / solved.certificate.objective - 1,
    }  # fmt: skip


@click.command()
@click.option("--most", type=click.IntRange(min=1), default=1797, show_default=True,
              help="Samples of the largest data.")  # fmt: skip
@out_folder
def main(most: int, out: Path) -> None:
    """Time certified local optima next to ReLU networks."""
    kept = Kept(out / "relu_speed.csv", KEY)
    wanted = [size for size in SIZES if size not in kept and size[0] <= most]
    keep_rows((row(*size) for size in wanted), kept, digits=".3g")


if __name__ == "__main__":
    main()
