"""Points of gated linear networks with the errors of the published programs and comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import implicit_bias as ib
from experiments.printed import forgotten, wrong_groups, wrong_norm
from experiments.tables import begun
from implicit_bias.measures import agreement, scores
from implicit_bias.runs.seeds import Seeds

from .points import COLUMNS, KEY
from .settings import PUBLISHED

__all__ = ["CELL", "points_as_printed"]

CELL = ("hidden_units", "contexts", "n_train", "seed", "cutoffs")


def points_as_printed(
    grid: Mapping[str, Any], given: Mapping[str, Any], path: Path
) -> Iterator[str]:
    """Write the points of every cell to a CSV file, which keeps those that it has; yield each.

    Parameters
    ----------
    grid : mapping
        Values of `CELL`.
    given : mapping
        Data, and other options of the runs.
    path : Path
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    table, done = begun(path, CELL)
    for values in product(*(grid[name] for name in CELL)):
        if values in done:
            continue
        found = _points(dict(zip(CELL, values, strict=True)), given)
        table = pd.concat([table, pd.DataFrame(found, columns=list(COLUMNS))], ignore_index=True)
        table.to_csv(path, index=False)
        yield ", ".join(map(str, values))


def _points(cell: Mapping[str, Any], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    report = ib.run("gln", **cell, **given, trainer=PUBLISHED)
    row = report.row()
    seeds = Seeds.from_seed(cell["seed"])
    sizes = {"n_train": cell["n_train"], "n_val": row["n_val"], "random_state": seeds.data}
    data = (
        ib.datasets.load_idx(given["data_dir"], **sizes) if "data_dir" in given
        else ib.load_digits(**sizes)
    )  # fmt: skip
    gating = ib.HyperplaneContexts(
        cell["hidden_units"], cell["contexts"], cutoffs=cell["cutoffs"], random_state=seeds.gating
    ).fit(data.X_train)
    train = ib.Sample(data.X_train, data.y_train, gating.transform(data.X_train))
    held_out = ib.Sample(data.X_val, data.y_val, gating.transform(data.X_val))
    trained = scores(report.network, held_out)
    error = float(np.mean(~(trained * held_out.y > 0)))
    if error != row["error_network"]:
        raise RuntimeError(f"the run of {cell} had other samples than those drawn here")
    # Cutoffs that are drawn, and not fitted to data, came back with the network.
    lost = cell["cutoffs"] == "median"
    compared = forgotten(report.network, gating, train, held_out) if lost else trained
    points = []
    for name, solve in (("svm-gln-printed", wrong_groups), ("svm-l2-printed", wrong_norm)):
        answer, predicted = solve(train, held_out, cell["contexts"])
        points.append(
            {name: row.get(name) for name in (*KEY, "n_val", "log_inverse_loss")}
            | {
                "program": name,
                "status": answer.status.name,
                "gap": answer.certificate.gap,
                "error_program": float(np.mean(~(predicted * held_out.y > 0))),
                "error_network": error,
                "inconsistency": 1 - agreement(compared, predicted),
            }
        )
    return points
