"""SVM-GLN beside SVM-L2 over hidden units: what the norm of the architecture is worth.

    python -m experiments.norms --full --out experiments/results/norms.csv
    python -m experiments.norms --data-dir DIR --n-train 500 --out ...

Published tables of this comparison grouped the wrong rows and used a wrong root of the norm's
matrix; here every row carries its certificates.
"""

from __future__ import annotations

import math
from pathlib import Path

import click
import numpy as np

from implicit_bias import HyperplaneContexts, load_digits
from implicit_bias import solve_gln_l2_svm as solve_l2
from implicit_bias import solve_gln_svm as solve_gln
from implicit_bias.datasets import load_idx

from .tables import data_folder, out_file, sizes

SIZES = ((1, 2), (2, 2), (4, 2), (10, 2), (20, 2), (50, 2), (100, 2), (10, 4), (50, 4))


def row(
    data_dir: Path | None, n_train: int, size: tuple[int, int], seed: int
) -> dict[str, float | int | str]:
    """Errors, optima and gaps of both programs for H units, C contexts and one seed."""
    n_units, n_contexts = size
    if data_dir is None:
        data = load_digits(n_train=n_train, random_state=seed)
    else:
        data = load_idx(data_dir, n_train=n_train, random_state=seed)
    gating = HyperplaneContexts(n_units, n_contexts, random_state=seed + 1000).fit(data.X_train)
    contexts, held_out = gating.transform(data.X_train), gating.transform(data.X_val)
    found: dict[str, float | int | str] = {
        "hidden_units": n_units, "contexts": n_contexts, "n_train": n_train, "seed": seed,
    }  # fmt: skip
    for name, solve in (("gln", solve_gln), ("l2", solve_l2)):
        limit = solve(data.X_train, data.y_train, contexts, n_contexts=n_contexts)
        found |= {
            f"{name}_status": limit.status.name,
            f"{name}_optimum": limit.objective,
            f"{name}_gap": limit.gap,
            f"{name}_error": math.nan,
        }
        if limit.certificate.proves_separability():
            wrong = ~(limit.predictor(data.X_val, held_out) * data.y_val > 0)
            found[f"{name}_error"] = float(np.mean(wrong))
    return found


@click.command()
@data_folder
@click.option("--n-train", type=click.IntRange(min=2), default=500, show_default=True)
@sizes(seeds=(1, 3))
@out_file()
def main(data_dir: Path | None, n_train: int, seeds: int, out: Path | None) -> None:
    """Compare SVM-GLN with SVM-L2 for more and more hidden units."""
    import pandas as pd

    rows: list[dict[str, float | int | str]] = []
    click.echo("  H  C   error GLN   error L2   (mean over seeds)")
    for size in SIZES:
        mine = [row(data_dir, n_train, size, seed) for seed in range(1, seeds + 1)]
        rows += mine
        errors = [np.mean([float(r[f"{name}_error"]) for r in mine]) for name in ("gln", "l2")]
        click.echo(f"{size[0]:3d} {size[1]:2d}   {errors[0]:9.2%}  {errors[1]:9.2%}")
        if out is not None:
            pd.DataFrame(rows).to_csv(out, index=False)


if __name__ == "__main__":
    main()
