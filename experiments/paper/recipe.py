"""Gated linear networks by the published recipe: each is trained once, beside every program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import implicit_bias as ib
from experiments.interrupts import finished
from experiments.printed import forgotten, wrong_groups, wrong_norm
from experiments.tables import Kept
from implicit_bias.measures import agreement, scores
from implicit_bias.models.run_model import resolve
from implicit_bias.runs.setup import prepare

from .points import COLUMNS, KEY, points_of

CELL = ("hidden_units", "contexts", "n_train", "seed", "cutoffs")


def recipe_points(
    grid: Mapping[str, Any], given: Mapping[str, Any], path: Path, *, jobs: int = 1
) -> Iterator[str]:
    """Write the points of every cell to a CSV file, which keeps those that it has; yield each.

    A cell's network stands beside SVM-GLN and SVM-L2, as they should be and as they were printed.

    Parameters
    ----------
    grid : mapping
        Values of `CELL`.
    given : mapping
        Data, trainer, and other options of the runs.
    path : Path
    jobs : int
        Cells at a time.
    """
    kept = Kept(path, CELL)
    every = product(*(grid[name] for name in CELL))
    cells = [dict(zip(CELL, values, strict=True)) for values in every if values not in kept]
    work = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    for cell, found in work(joblib.delayed(_points)(cell, given) for cell in cells):
        kept.add(found)
        yield ", ".join(f"{name} {value}" for name, value in cell.items())


def _points(
    cell: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[Mapping[str, Any], pd.DataFrame]:
    report = finished(ib.run("gln", **cell, **given))
    row = report.row()
    right = points_of(pd.DataFrame([row]))
    # The samples of the run again, which a report has not; with the gating of their units.
    units, contexts, cutoffs = cell["hidden_units"], cell["contexts"], cell["cutoffs"]
    setup = prepare(
        resolve("gln", {**given, **cell}),
        gating=lambda seed: ib.HyperplaneContexts(
            units, contexts, cutoffs=cutoffs, random_state=seed
        ),
    )
    train, held_out = setup.samples
    trained = scores(report.network, held_out)
    error = _error(trained, held_out)
    if error != row["error_network"]:
        raise RuntimeError(f"the run of {cell} had other samples than those drawn here")
    # Cutoffs that are drawn, and not fitted to data, came back with the network.
    lost = cutoffs == "median"
    compared = forgotten(report.network, setup.gating, train, held_out) if lost else trained
    l2 = ib.solve_gln_l2_svm(train.X, train.y, train.required_gates, n_contexts=contexts)
    found = l2.certificate.proves_separability()
    predicted = l2.predictor(held_out.X, held_out.gates) if found else trained * np.nan
    beside: dict[str, Any] = {"svm-l2": (l2, np.asarray(predicted), trained)}
    for name, solve in (("svm-gln-printed", wrong_groups), ("svm-l2-printed", wrong_norm)):
        beside[name] = (*solve(train, held_out, contexts), compared)
    points = [
        {name: row.get(name) for name in (*KEY, "n_val", "log_inverse_loss")}
        | {
            "program": name,
            "status": answer.status.name,
            "gap": answer.certificate.gap,
            "error_program": _error(scored, held_out),
            "error_network": error,
            "inconsistency": np.nan if np.isnan(scored).any() else 1 - agreement(network, scored),
        }
        for name, (answer, scored, network) in beside.items()
    ]
    beside_it = pd.DataFrame(points, columns=list(COLUMNS))
    return cell, pd.concat([right, beside_it], ignore_index=True)


def _error(predicted: np.ndarray, sample: ib.Sample) -> float:
    """Return the share of wrong labels, NaN for scores that are not known."""
    wrong = ~(predicted * sample.y > 0)
    return np.nan if np.isnan(predicted).any() else float(np.mean(wrong))
