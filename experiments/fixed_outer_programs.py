"""Two hundred random programs of networks with a fixed outer layer, beside cvxpy's.

    python -m experiments.fixed_outer_programs --out experiments/results

One row a problem: samples, inputs, neurons, slope, the certified optimum that descent from the
labels' gates or from a random network comes to, that of the convex program of its gates as cvxpy
states it, solved by Clarabel, the bound of all inner layers, and the least value of a hundred
random ones. `fixed_outer_programs.csv`, in some minutes; rows that are there are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import cvxpy as cp
import numpy as np

import implicit_bias as ib

from .tables import Kept, keep_rows, out_folder

PROBLEMS, RANDOM = 200, 100
SLOPES = (0.0, 0.1, 0.5)


def stated(X: np.ndarray, y: np.ndarray, a: np.ndarray, slope: float, W: np.ndarray) -> float:
    """The least norm under the gates that W has on the samples of each neuron's own sign."""
    V = cp.Variable(W.shape)
    margins: list[Any] = [0.0] * len(y)
    for n, (x, label) in enumerate(zip(X, y, strict=True)):
        for h, weight in enumerate(a):
            z = V[h] @ x
            if label * weight > 0:
                margins[n] += abs(weight) * (1.0 if W[h] @ x >= 0 else slope) * z
            else:
                margins[n] -= abs(weight) * cp.maximum(z, slope * z)
    problem = cp.Problem(cp.Minimize(cp.norm(V, "fro")), [one >= 1 for one in margins])
    return float(problem.solve(solver="CLARABEL"))


def row(problem: int) -> dict[str, Any]:
    """Solve one problem by both, and look at random inner layers."""
    rng = np.random.default_rng(problem)
    n, D, H = (int(rng.integers(low, high)) for low, high in ((1, 11), (1, 14), (1, 7)))
    slope, own = SLOPES[problem % 3], problem % 2 == 0
    X = rng.normal(size=(n, D)) * 10 ** rng.uniform(-2, 2)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    a = np.where(rng.random(H) < 0.5, 1.0, -1.0) * rng.uniform(0.5, 2, H)
    start = rng.normal(size=(H, D)) + np.outer(a, y @ X) / np.linalg.norm(X)
    limit = ib.limits.solve_fixed_outer(X, y, a, slope=slope, start=None if own else start)
    proof = limit.certificate
    found = {
        "problem": problem, "samples": n, "inputs": D, "neurons": H, "slope": slope,
        "start": "labels" if own else "random", "status": limit.status.name, "value": limit.value,
        "gap": limit.gap, "bound_over_value": proof.lower_bound / limit.value, "rank": limit.rank,
    }  # fmt: skip
    if limit.status.name == "FAILED":
        return found
    known = stated(X, y, a, slope, limit.zeta)
    values = []
    for W in rng.normal(size=(RANDOM, H, D)) + limit.zeta / np.abs(limit.zeta).max():
        z = X @ W.T
        margin = float(np.min(y * (np.maximum(z, slope * z) @ a)))
        values.append(np.linalg.norm(W) / margin if margin > 0 else np.inf)
    return found | {
        "cvxpy": known, "difference": abs(limit.value / known - 1),
        "random_over_bound": min(values) / proof.lower_bound if proof.lower_bound else np.nan,
    }  # fmt: skip


@click.command()
@out_folder
def main(out: Path) -> None:
    """Solve random programs of fixed outer layers, by the library and by cvxpy."""
    kept = Kept(out / "fixed_outer_programs.csv", ("problem",))
    missing = (row(problem) for problem in range(PROBLEMS) if (problem,) not in kept)
    keep_rows(missing, kept, digits=".6g")


if __name__ == "__main__":
    main()
