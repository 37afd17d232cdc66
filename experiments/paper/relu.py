"""ReLU networks beside their four machines, and beside nothing else that a run has.

The local optimum next to a network and its copy with frozen gates are in no figure, and take twice
the time of its training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import implicit_bias as ib
from experiments.interrupts import finished
from implicit_bias.models.relu import compare_relu, solve_relu_svms, view_relu
from implicit_bias.run_model import resolve
from implicit_bias.runs.setup import prepare, start

from .cells import Cell, cell_points
from .points import COLUMNS, KEY

__all__ = ["CELL", "relu_points"]

CELL = ("hidden_units", "n_train", "seed", "momentum", "trainer")
MACHINES = {"rc": "svm-rc", "lc": "svm-lc", "hl": "svm-hl", "gates_only": "gates-only"}


def relu_points(
    grid: Mapping[str, Any], given: Mapping[str, Any], path: Path, *, jobs: int = 1
) -> Iterator[str]:
    """Write the points of every cell to a CSV file, which keeps those that it has; yield each.

    Parameters
    ----------
    grid : mapping
        Values of `CELL`.
    given : mapping
        Data and other options of `ib.run("relu")`.
    path : Path
    jobs : int
        Cells at a time.
    """
    yield from cell_points(partial(_points, given=given), CELL, grid, path, jobs=jobs)


def _points(cell: Cell, *, given: Mapping[str, Any]) -> pd.DataFrame:
    """Train a network as a run does, and solve its machines."""
    setup = prepare(resolve("relu", {**given, **cell}))
    options, seeds = setup.options, setup.seeds
    train, held_out = setup.samples
    n_inputs, n_units = train.X.shape[1], options.hidden_units
    network = ib.ReLU(n_inputs, n_units, **start(options, seeds.weights))
    trajectory = finished(ib.train(network, train.X, train.y, None, settings=setup.settings))
    gating = ib.HyperplaneGates(n_units, cutoffs=options.cutoffs, random_state=seeds.gating)
    gating.fit(train.X)
    views = [view_relu(network, sample.X, sample.y, gating) for sample in (train, held_out)]
    limits = solve_relu_svms(views[0], solver=options.solver, tol=options.tol)
    compared = compare_relu(limits, network, *views)
    shared = {name: getattr(options, name, None) for name in KEY} | {
        "n_val": len(held_out.y),
        "error_network": compared.error_network,
        "log_inverse_loss": -float(trajectory.log_loss[-1]),
    }
    found = [
        shared
        | {
            "program": name,
            "status": limit.status.name,
            "gap": limit.certificate.gap,
            "error_program": machine.error,
            "inconsistency": 1 - machine.agreement,
            "margin_ratio": machine.margin_ratio,
        }
        for key, name in MACHINES.items()
        for limit, machine in [(getattr(limits, key), getattr(compared, key))]
    ]
    return pd.DataFrame(found, columns=list(COLUMNS))
