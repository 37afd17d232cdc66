"""Unconstrained features of random class sizes: the closed form beside Clarabel on all samples.

    python -m experiments.collapse --out experiments/results

Odd problems: 2 to 6 classes of 1 to 5 samples, half of them with weight decay. One row a problem:
what `solve_collapse` finds by one column a class, its gap, and what Clarabel finds in cvxpy on the
literal program of all samples, which knows nothing of classes having one feature each. `agrees` if
the two differ by less than 2e-6, relative, about what Clarabel reaches. Ends with an error where a
problem does not. 200 problems take a minute or two; rows that are there are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

import implicit_bias as ib

from .tables import Kept, keep_rows, out_folder

if TYPE_CHECKING:
    from pathlib import Path

KEY = ("seed",)
ACCURACY = 2e-6


def problem(seed: int) -> tuple[tuple[int, ...], float | None]:
    """Class sizes and weight decay of a problem; None without."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(n) for n in rng.integers(1, 6, size=rng.integers(2, 7)))
    return sizes, float(10 ** rng.uniform(-3, -0.5)) if seed % 2 else None


def row(seed: int) -> dict[str, Any]:
    """Solve one problem both ways."""
    sizes, decay = problem(seed)
    limit = ib.limits.solve_collapse(class_sizes=sizes, weight_decay=decay)
    stated = ib.programs.Collapse(decay).literal(class_sizes=sizes)
    beside = float(stated.solve(solver="CLARABEL"))
    return {
        "seed": seed, "sizes": " ".join(map(str, sizes)), "decay": decay,
        "status": limit.status.name, "gap": limit.gap, "objective": limit.objective,
        "clarabel": beside, "agrees": bool(abs(beside / limit.objective - 1) < ACCURACY),
    }  # fmt: skip


@click.command()
@click.option("--problems", type=click.IntRange(min=1), default=200, show_default=True)
@out_folder
def main(problems: int, out: Path) -> None:
    """Closed forms beside a general solver."""
    kept = Kept(out / "collapse.csv", KEY)
    keep_rows((row(seed) for seed in range(problems) if (seed,) not in kept), kept, digits=".10g")
    wrong = kept.table[~kept.table["agrees"].astype(bool) | (kept.table["status"] != "SOLVED")]
    if len(wrong):
        raise click.ClickException(f"{len(wrong)} of {len(kept.table)} problems:\n{wrong}")
    click.echo(f"{len(kept.table)} problems agree; largest gap {kept.table['gap'].max():.1e}")


if __name__ == "__main__":
    main()
