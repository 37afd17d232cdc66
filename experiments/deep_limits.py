"""Which limits do deep gated networks reach, and how far can those be from the best network?

    python -m experiments.deep_limits --out experiments/results

Networks of three and four layers of weights behind gates in every layer, 20 starts each: trained
by `annealed`, then taken to the KKT point next to them (`local_limit`). Beside them the certified
lower bound of every network with these gates (`solve_path_lasso`): the least value V* of all
networks lies between the bound and the best value found. One row a start:

    gating, depth, n, D, widths   the problem: Gaussian inputs, labels of a random half-space
    seed                          of the weights; data and gates are the same for all
    bound, value, network         of every network; of the local limit; of the network
    factor, ratio                 bound / value (certified); value / network (measured)
    status, residual, curvature   what is certified of the local limit
    limit                         its number: equal for limits of one value

`deep_limits.csv` and `.png` are written as rows come; rows that are there are not computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

import implicit_bias as ib
from implicit_bias.gates.layered import LinearGates
from implicit_bias.gates.random_gates import RandomGates

from .interrupts import finished
from .tables import Kept, out_folder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N, INPUTS, SEEDS, STEPS = 40, 8, 20, 1500


@dataclass(frozen=True)
class Case:
    """Gates of one kind, at one depth."""

    gating: str
    widths: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.gating}, {len(self.widths) + 1} layers"

    def draw(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs (n, D), labels (n,) and gates (n, sum of widths)."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(N, INPUTS))
        y = np.where(X @ rng.normal(size=INPUTS) > 0, 1.0, -1.0)
        if self.gating == "first layer":
            first = RandomGates(widths=self.widths[:1], rate=0.7, random_state=1).fit_transform(X)
            return X, y, np.hstack([first, np.ones((N, sum(self.widths[1:])), dtype=np.int64)])
        if self.gating == "half-spaces":
            return X, y, LinearGates(INPUTS, widths=self.widths, random_state=1).fit_transform(X)
        return X, y, RandomGates(widths=self.widths, rate=0.7, random_state=1).fit_transform(X)


CASES = tuple(
    Case(gating, widths)
    for gating in ("half-spaces", "random", "first layer")
    for widths in ((8, 8), (7, 7, 7))
)


def run_seed(
    case: Case, seed: int, bound: ib.limits.PathLimit
) -> tuple[dict[str, Any], ib.limits.LocalLimit]:
    """One start: trained, and taken to its limit."""
    X, y, gates = case.draw()
    network = ib.DGN(INPUTS, widths=case.widths, init="balanced", random_state=seed)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((STEPS, None),))
    finished(ib.train(network, X, y, gates, settings=settings))
    limit = ib.local_limit(network, X, y, gates)
    beyond = limit.curvature[np.abs(limit.curvature) > 1e-7]
    row = {
        "gating": case.gating,
        "depth": len(case.widths) + 1,
        "n": N,
        "D": INPUTS,
        "widths": "-".join(map(str, case.widths)),
        "seed": seed,
        "bound": bound.dual_objective,
        "tight": bound.is_tight(),
        "value": limit.value,
        "network": limit.start_value,
        "factor": bound.dual_objective / limit.value,
        "ratio": limit.value / limit.start_value,
        "status": limit.status.name,
        "residual": limit.residual,
        "curvature": float(beyond[0]) if len(beyond) else math.nan,
        "zero_modes": limit.n_zero_modes,
        "symmetry_modes": limit.n_symmetry_modes,
        "seconds": limit.seconds,
    }
    return row, limit


def rows_of(case: Case, n_seeds: int) -> Iterator[dict[str, Any]]:
    """The rows of one case, its limits numbered as they are met first."""
    X, y, gates = case.draw()
    bound = ib.solve_path_lasso(X, y, gates, widths=case.widths).require()
    known: list[float] = []
    for seed in range(n_seeds):
        row, limit = run_seed(case, seed, bound)
        # By their values: limits of equal value are the same up to rotations of units.
        same = [i for i, value in enumerate(known) if abs(value - limit.value) <= 1e-6 * value]
        if not same:
            known.append(limit.value)
        yield row | {"limit": same[0] + 1 if same else len(known)}


def draw(frame: pd.DataFrame) -> Figure:
    """Values over the bound, one column a case, coloured by what is certified."""
    from matplotlib.figure import Figure

    from implicit_bias.runs.drawing import BLUE, GREEN, ORANGE, VERMILLION

    colours = {"LOCAL_OPTIMUM": BLUE, "FLAT": GREEN, "FAILED": VERMILLION}
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    names = []
    groups = frame.groupby(["gating", "depth"], sort=False)
    for place, ((gating, depth), rows) in enumerate(groups):
        known = rows.loc[rows["status"] != "FAILED", "limit"].nunique()
        names.append(f"{gating}\n{depth} layers, {known} limit" + "s" * (known > 1))
        spread = place + np.linspace(-0.25, 0.25, len(rows))
        for status, some in rows.groupby("status"):
            at = spread[[rows.index.get_loc(i) for i in some.index]]
            colour = colours.get(str(status), ORANGE)
            label = str(status) if str(status) not in ax.get_legend_handles_labels()[1] else None
            ax.plot(at, some["value"] / some["bound"], "o", color=colour, label=label, alpha=0.7)
    ax.axhline(1, color="0.5", linestyle="--", label="bound of every network (certified)")
    ax.set_xticks(range(len(names)), names, fontsize="small")
    ax.set_ylabel("value of the local limit / bound")
    ax.legend(frameon=False, fontsize="small")
    return figure


@click.command()
@out_folder
@click.option(
    "--seeds", type=click.IntRange(min=1), default=SEEDS, show_default=True,
    help="Starts of each case.",
)  # fmt: skip
def main(out: Path, seeds: int) -> None:
    """Write `deep_limits.csv` and `deep_limits.png`."""
    kept = Kept(out / "deep_limits.csv", ("gating", "depth"), options={"seeds": seeds})
    for case in CASES:
        if (case.gating, len(case.widths) + 1) in kept:
            continue
        rows = pd.DataFrame(list(rows_of(case, seeds)))
        kept.add(rows)
        found = rows[rows["status"] != "FAILED"]
        best = found["value"].min()
        click.echo(
            f"{case.name}: bound / best {rows['bound'].iloc[0] / best:.4f}, "
            f"{found['limit'].nunique()} limits, {rows['status'].value_counts().to_dict()}"
        )
    draw(kept.table).savefig(kept.path.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
