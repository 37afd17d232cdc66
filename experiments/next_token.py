"""Limits of next tokens beside their literal programs in cvxpy, and decoders on the way there.

    python -m experiments.next_token programs --out experiments/results/next_token.csv
    python -m experiments.next_token courses --out experiments/results/next_token_courses.csv

Contexts, tokens and supports are drawn in sizes from 1 to 12: more contexts than dimensions among
them, parallel contexts, hard labels and full supports. A row has the status, and how far direction
and loss are from those of Clarabel, relative to 1 and to themselves. Courses are those of the
decoders of `compare --model next-token` on its bundled text. Each a few minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import cvxpy
import numpy as np

import implicit_bias as ib
from implicit_bias.limits import solve_next_token
from implicit_bias.programs import InSupportLoss, NextTokenSVM

from .interrupts import finished
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


def courses(steps: int = 1000, descent_steps: int = 100_000) -> Iterator[dict[str, Any]]:
    """Train decoders of the text on contexts of one word and of two, and follow them."""
    for context, dimension in ((1, 32), (2, 80)):
        how: Any = {"steps": steps, "descent_steps": descent_steps, "checkpoints": 7}
        report = finished(ib.run("next-token", context=context, dimension=dimension, **how))
        for name, path in report.trajectory.items():
            far = path.observed
            rows = zip(path.step, far["margin_ratio"], far["limit_error"], strict=True)
            for step, ratio, error in rows:
                if step > 0:
                    yield {
                        "context": context, "contexts": len(report.limit.in_support),
                        "network": name, "steps": int(step), "margin_ratio": round(ratio, 5),
                        "limit_error": float(f"{error:.3g}"),
                    }  # fmt: skip


@click.group()
def main() -> None:
    """Limits of next tokens beside cvxpy, and decoders on the way there."""


@main.command("programs")
@out_file()
def programs(out: Path | None) -> None:
    """Compare 200 problems with their programs in cvxpy."""
    keep_rows(map(compared, range(N)), out, digits=".1e")


@main.command("courses")
@out_file()
def followed(out: Path | None) -> None:
    """Follow decoders of the bundled text to their limits."""
    keep_rows(courses(), out, digits=".3g")


if __name__ == "__main__":
    main()
