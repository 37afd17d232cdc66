"""Time of certified local optima next to ReLU networks on digits, and of one of their programs.

    python -m experiments.relu_speed [--data-dir DIR] --out experiments/results

One row a number of samples and units, one thread: seconds and programs of the whole search from a
network of 1,000 steps, seconds and gap of its first program, of the next one from its solution on
the units that are live there, and of the first by Clarabel in cvxpy's own statement, where that
takes no more than some minutes.
With a folder of MNIST's files also some of its images. Searches are given up after 120 seconds,
programs alone after 60; those of 200 units are solved to a gap of a thousandth, as the search does
at first. `relu_speed.csv`; rows that are there are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

import implicit_bias as ib
from implicit_bias.limits.relu.descent import live_units
from implicit_bias.limits.relu.problem import ReLUProblem, merged
from implicit_bias.limits.relu.search import units_at
from solvers import solve_hinge

from .interrupts import finished
from .speed.cases import halves
from .tables import Kept, data_folder, images_of, keep_rows, out_folder

KEY = ("data", "samples", "units")
SIZES = ((60, 12), (300, 12), (300, 50), (1000, 50), (1797, 50))
OF_IMAGES = ((1000, 50), (1000, 200))
STEPS = 1000
# Seconds after which a search, and a program alone, begin no further step.
LIMIT, OF_PROGRAM = 120.0, 60.0
# Pairs beyond which programs are solved to the gap that the search asks of them at first.
MANY, ROUGH = 100_000, 1e-3
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


def row(samples: int, units: int, data_dir: Path | None = None) -> dict[str, Any]:
    """One network, its first programs and the whole search."""
    X, y = halves(data_dir, samples, seed=0)
    network = ib.ReLU(X.shape[1], units, init="kaiming", init_scale=0.3, random_state=0)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((STEPS, None),))
    finished(ib.train(network, X, y, settings=settings))
    w1, w2 = (layer.detach().numpy() for layer in network.layers)
    problem = ReLUProblem.checked(X, y)
    own, _ = merged(problem, units_at(problem, np.abs(w2.T) * w1, np.sign(w2[0])))
    first, ends_at = problem.program(own), ROUGH if samples * units > MANY else None
    seconds, solved = timed(
        lambda: solve_hinge(first, own.u, ends_at=ends_at, max_seconds=OF_PROGRAM)
    )
    blocks = first.blocks(solved.multipliers, solved.shares)
    live = live_units(np.linalg.norm(solved.u, axis=1), blocks)
    left = replace(own, u=solved.u, gates=problem.X @ solved.u.T > 0).take(live)
    after, guess = problem.program(left), (solved.multipliers, solved.shares[:, live])
    again, following = timed(
        lambda: solve_hinge(after, left.u, guess=guess, ends_at=ends_at, max_seconds=OF_PROGRAM)
    )
    clarabel, optimum = float("nan"), float("nan")
    if samples * units <= CLARABEL:
        clarabel, optimum = timed(lambda: by_clarabel(problem.X, y, own.signs, own.gates))
    whole, limit = timed(
        lambda: ib.limits.relu_local_limit(network, X, y, max_patterns=1, max_seconds=LIMIT)
    )
    return {
        "data": images_of(data_dir).data, "samples": samples, "units": units, "seconds": whole,
        "programs": limit.programs, "lassos": limit.solves, "status": limit.status.name,
        "value": limit.value,
        "gap": limit.gap, "live": len(limit.units), "support": int(limit.support.sum()),
        "kinks": limit.kinks_opposing, "first_seconds": seconds,
        "first_gap": solved.certificate.gap, "first_lassos": solved.solves,
        "first_iterations": solved.iterations, "next_seconds": again,
        "next_gap": following.certificate.gap, "next_lassos": following.solves,
        "next_iterations": following.iterations, "next_steps": following.steps,
        "clarabel_seconds": clarabel,
        "clarabel_difference": optimum / solved.certificate.objective - 1,
    }  # fmt: skip


@click.command()
@click.option("--most", type=click.IntRange(min=1), default=1797, show_default=True,
              help="Samples of the largest data.")  # fmt: skip
@data_folder
@out_folder
def main(most: int, data_dir: Path | None, out: Path) -> None:
    """Time certified local optima next to ReLU networks."""
    kept = Kept(out / "relu_speed.csv", KEY)
    wanted: list[tuple[Path | None, int, int]] = [(None, *size) for size in SIZES]
    if data_dir is not None:
        wanted += [(data_dir, *size) for size in OF_IMAGES]
    left = [
        (samples, units, folder)
        for folder, samples, units in wanted
        if (images_of(folder).data, samples, units) not in kept and samples <= most
    ]
    keep_rows((row(*one) for one in left), kept, digits=".3g")


if __name__ == "__main__":
    main()
