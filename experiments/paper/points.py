"""Rows of sweeps and published ones in one form: a point a network and program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from .settings import BESIDE, Figure

PUBLISHED = Path(__file__).parents[1] / "published" / "lippl_2022"
# Of a point: which network and program, then what was found of them.
KEY = ("program", "hidden_units", "contexts", "n_train", "seed", "cutoffs", "momentum", "trainer")
MEASURED = ("error_program", "error_network", "inconsistency")
FOUND = ("n_val", "status", "gap", *MEASURED, "margin_ratio", "log_inverse_loss")
COLUMNS = (*KEY, *FOUND)
PROGRAMS = {"gln": "svm-gln", "shallow-gln": "shallow"}
MACHINES = {"rc": "svm-rc", "lc": "svm-lc", "hl": "svm-hl", "gates_only": "gates-only"}


def points_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a point for each row of a sweep of gated linear networks, and four of ReLU networks.

    Parameters
    ----------
    frame : DataFrame
        As `Sweep.frame` returns it.
    """
    numbers = [name for name in frame if str(name).endswith(("agreement", "n_steps"))]
    frame = frame.astype(dict.fromkeys(numbers, float))  # null is NaN
    found = []
    for row in frame.to_dict("records"):
        shared = {name: row.get(name) for name in (*KEY, *FOUND)}
        if row["model"] == "relu":
            found += [shared | _beside_machine(row, *machine) for machine in MACHINES.items()]
            continue
        own = {"error_program": row["error_limit"], "inconsistency": 1 - row["agreement"]}
        # Nothing was trained: there is a program alone.
        own |= {} if row["n_steps"] == row["n_steps"] else {"trainer": None, "momentum": None}
        found.append(shared | own | {"program": PROGRAMS[row["model"]]})
    points = pd.DataFrame(found, columns=list(COLUMNS))
    return points.astype(dict.fromkeys(("gap", *MEASURED, "margin_ratio"), float))


def _beside_machine(row: dict[str, Any], key: str, program: str) -> dict[str, Any]:
    """Return what a row of ReLU networks has of one machine."""
    return {
        "program": program,
        "status": row[f"{key}_status"],
        "gap": row[f"{key}_gap"],
        "error_program": row[f"{key}_error"],
        "inconsistency": 1 - row[f"{key}_agreement"],
        # Not of machines whose inputs no layer of the network has.
        "margin_ratio": row.get(f"{key}_margin_ratio"),
    }


def published_points(of: str) -> pd.DataFrame:
    """Return the points of the paper: of gated linear networks ("gln") or ReLU networks ("relu").

    Programs whose published field is empty have NaN. Gated linear networks are those that were
    trained without momentum, as in figure 2.
    """
    if of == "gln":
        key = ["hidden_units", "contexts", "n_train", "context_seed", "cutoff"]
        descent = pd.read_csv(PUBLISHED / "gln_gd.csv").query("momentum == 0")
        programs = pd.read_csv(PUBLISHED / "gln_convex.csv").merge(descent, on=key, how="left")
        shallow = pd.read_csv(PUBLISHED / "shallow_gln_convex.csv").assign(program="shallow")
        shallow = shallow.rename(columns={"hyperplanes": "hidden_units"}).assign(contexts=2)
        table = pd.concat([programs, shallow], ignore_index=True)
        seed = "context_seed"
    else:
        key = ["hidden_units", "n_train", "init_seed", "momentum"]
        descent = pd.read_csv(PUBLISHED / "relu_gd.csv")
        table = pd.read_csv(PUBLISHED / "relu_convex.csv").merge(descent, on=key, how="left")
        seed = "init_seed"
    found = table.rename(columns={seed: "seed", "cutoff": "cutoffs"}).assign(
        trainer="constant",
        n_val=12_000,
        error_program=1 - table["val_accuracy"],
        error_network=1 - table["val_accuracy_last"],
        inconsistency=1 - table["agreement_with_gd"],
    )
    return found.reindex(columns=list(COLUMNS))


def of_figure(points: pd.DataFrame, figure: Figure) -> pd.DataFrame:
    """Return the points that a figure shows: those of its own networks, and of those beside them.

    Beside ReLU networks stand gated linear ones that are no larger.
    """
    gln = points["contexts"].notna()
    if figure.of == "gln":
        return points[gln]
    beside = points["program"].isin(figure.beside) & (points["hidden_units"] <= BESIDE)
    no_larger = (points["contexts"] == 2) & (points["cutoffs"] == "median")
    return points[~gln | (beside & no_larger)]
