"""Limits of next tokens beside their literal programs in cvxpy, on contexts of odd shapes.

    python -m experiments.next_token --out experiments/results/next_token.csv

Contexts, tokens and supports are drawn in sizes from 1 to 12: more contexts than dimensions among
them, parallel contexts, hard labels and full supports. A row has the status, and how far direction
and loss are from those of Clarabel, relative to 1 and to themselves. A few minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import cvxpy
import numpy as np

from implicit_bias.limits import solve_next_token
from implicit_bias.programs import InSupportLoss, NextTokenSVM

from .tables import keep_rows, out_file

NORMS: tuple[Any, ...] = ("l2", "linf", "spectral", "nuclear", "l1")
N = 200


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw contexts (m, D), chances (m, V) and weights (m,)."""
    rng = np.random.default_rng(seed)
    m, D, V = rng.integers(1, 13), rng.integers(1, 13), rng.integers(2, 13)
    contexts = rng.normal(size=(m, D)) * 10.0 ** rng.uniform(-1, 1)
    if m > 1 and seed % 4 == 0:
        contexts[1] = -2 * contexts[0] if seed % 8 else 3 * contexts[0]
    chances = rng.uniform(0.1, 1, size=(m, V)) * (rng.uniform(size=(m, V)) < rng.uniform())
    chances[np.arange(m), rng.integers(V, size=m)] = 1
    return contexts, chances / chances.sum(axis=1, keepdims=True), rng.uniform(0.1, 1, size=m)


def compared(seed: int) -> dict[str, Any]:
    """Solve one problem, and compare it with both programs as far as they hold of it."""
    contexts, chances, weights = drawn(seed)
    norm = NORMS[seed % len(NORMS)]
    limit = solve_next_token(contexts, chances, weights, norm=norm)
    row: dict[str, Any] = {
        "seed": seed, "contexts": len(contexts), "inputs": contexts.shape[1],
        "tokens": chances.shape[1], "norm": norm, "equal": limit.n_equal,
        "separable": limit.n_separable, "stuck": limit.n_stuck, "status": limit.status.name,
        "direction": 0.0, "loss": 0.0,
    }  # fmt: skip
    program = _optimum(NextTokenSVM(norm).literal(contexts, chances))
    if limit.n_stuck:  # the program has no solution then, and the loss is of these tokens too
        assert not np.isfinite(program), (seed, program)
        return row
    loss, own = _optimum(InSupportLoss().literal(contexts, chances, weights)), limit.entropy
    return row | {
        "direction": abs(limit.objective - program) / max(1.0, program),
        "loss": abs(own + limit.excess - loss) / max(1.0, own),
    }


def _optimum(problem: cvxpy.Problem) -> float:
    """Return the optimum by Clarabel; NaN where it fails."""
    try:
        return float(problem.solve(solver="CLARABEL"))
    except cvxpy.SolverError:
        return float("nan")


@click.command()
@out_file()
def main(out: Path | None) -> None:
    """Compare 200 problems with their programs in cvxpy."""
    keep_rows(map(compared, range(N)), out, digits=".1e")


if __name__ == "__main__":
    main()
