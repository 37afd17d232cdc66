"""How often the truth lies within the bars of `extrapolate`.

    python -m experiments.coverage --out experiments/results

Networks are trained for N steps, bars are made of the first N / 20, and what the margin ratio has
become at 10 and 20 times these steps is looked up. Writes `coverage.csv`, two rows a run, as runs
end; what the file has already is not run again, so an interrupted experiment goes on. With --series
FOLDER what the bars are made of is kept there too, and scored again without training.

The constants of `measures.power_sums` were chosen on seeds 101 and 102, of sizes a little larger.
Seeds from 1 on are the test.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import torch

from implicit_bias import Status
from implicit_bias.dynamics import extrapolate
from implicit_bias.measures.growth.extrapolation import Extrapolation, inverse_log_loss

from .coverage_runs import CASES, Case, Series, degree_of, run_case
from .tables import Kept, out_folder

SEEDS = (1, 2)
FARTHER = (10, 20)
KEY = ("model", "data", "trainer", "seed")


def rows(case: Case, seed: int, runs: dict[str, Series]) -> Iterator[dict[str, Any]]:
    """Two rows a run: its bars at 10 and 20 times as many steps, and what became of it."""
    for start, series in runs.items():
        step, ratio, u = series.step, series.margin_ratio, inverse_log_loss(series.log_loss)
        last = int(np.flatnonzero(step <= step[-1] / max(FARTHER))[-1])
        seen = slice(last + 1)
        found = extrapolate(
            u[seen],
            ratio[seen],
            upper=1.0,
            degree=degree_of(case),
            dual_norms=series.dual_norms[last],
            unit_norms=series.unit_norms[last],
        )
        for times in FARTHER:
            then = int(np.flatnonzero(step >= min(times * step[last], step[-1]))[0])
            yield {
                **asdict(case), "start": start, "seed": seed, "times": times,
                "steps": int(step[last]), "steps_later": int(step[then]),
                "log_inverse_loss": 1 / u[last], "log_inverse_loss_later": 1 / u[then],
                "reached": ratio[last], "later": ratio[then],
                **_scored(found, float(u[then]), float(ratio[then])),
            }  # fmt: skip


def _scored(found: Extrapolation, u: float, ratio: float) -> dict[str, Any]:
    """The bars of a run, and whether the truth lies in them; nothing without an estimate."""
    status = {"status": found.status.name}
    if found.status is not Status.ESTIMATED:
        return status
    bar = found.predict(u)
    return status | {
        "low": bar.low,
        "high": bar.high,
        "covered": bar.contains(ratio),
        "limit_low": found.limit.low,
        "limit_high": found.limit.high,
        "informative": found.informative,
        "limit_covered": found.limit.contains(1.0),
        "slow_units": " ".join(map(str, found.slow_units)),
        "misfit": found.residual,
    }


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Runs, shares that are covered, and the median bar in units of what is left, by model."""
    barred = table[table["status"] == "ESTIMATED"].copy()
    for name in ("covered", "informative", "limit_covered"):
        barred[name] = barred[name].astype(bool)
    left = 1 - barred["reached"]
    barred["width"] = (barred["high"] - barred["low"]) / left
    barred["explained"] = barred["limit_covered"] | (barred["slow_units"].fillna("") != "")
    lines = {}
    for name, one in (*barred.groupby(["model", "trainer"]), (("all", ""), barred)):
        near, far = (one[one["times"] == times] for times in FARTHER)
        telling = far[far["informative"]]
        lines[name] = {
            "runs": len(far),
            "covered_10": near["covered"].mean(),
            "covered_20": far["covered"].mean(),
            "width_20": far["width"].median(),
            "informative": len(telling),
            "limit_or_unit": telling["explained"].mean(),
            "unit_named": int((far["slow_units"].fillna("") != "").sum()),
        }
    return pd.DataFrame(lines).T


def runs_of(case: Case, seed: int, folder: Path | None) -> dict[str, Series]:
    """The series of a case and seed, from the folder where it has them, else by training."""
    name = f"{case.model}_{case.data}_{case.trainer}_{seed}.npz"
    path = None if folder is None else folder / name
    if path is not None and path.exists():
        return Series.load(path)
    found = run_case(case, seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Series.save(path, found)
    return found


@click.command()
@click.option("--seed", "seeds", type=int, multiple=True, default=SEEDS, show_default=True)
@click.option("--model", "models", multiple=True, help="These models alone.")
@click.option("--series", type=click.Path(path_type=Path), help="Folder to keep series in.")
@out_folder
def main(seeds: Sequence[int], models: Sequence[str], series: Path | None, out: Path) -> None:
    """Train networks, extrapolate their beginnings, and count how often the bars hold."""
    kept = Kept(out / "coverage.csv", KEY, float_format="%.8g")
    click.echo(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    )
    todo = [(c, s) for s in seeds for c in CASES if not models or c.model in models]
    for i, (case, seed) in enumerate(todo):
        if (case.model, case.data, case.trainer, seed) in kept:
            continue
        found = pd.DataFrame(rows(case, seed, runs_of(case, seed, series)))
        kept.add(found)
        covered = found["covered"].dropna().astype(bool) if "covered" in found else []
        click.echo(
            f"{i + 1} of {len(todo)}: {case}, seed {seed}: "
            f"{sum(covered)} of {len(covered)} later ratios in their bars"
        )
    click.echo(summary(kept.table).to_string(float_format="%.3g"))


if __name__ == "__main__":
    main()
