"""Programs of selected tokens beside cvxpy, on shapes that are drawn.

    python -m experiments.token_programs --problems 200

Sizes from one sequence of two tokens on, any chosen tokens, four norms: prints the largest relative
difference of the optima, and of what statuses say.
"""

from __future__ import annotations

from typing import Any

import click
import numpy as np

import implicit_bias as ib
from implicit_bias.programs import TokenMargin

NORMS = ("l2", "nuclear", "spectral", "linf")


def drawn(number: int) -> tuple[tuple[Any, ...], Any]:
    """Return X, queries, scores and tokens of a problem, and its norm."""
    rng = np.random.default_rng(number)
    n, T, d, q = rng.integers((1, 2, 1, 1), (7, 6, 7, 7))
    X, queries = rng.normal(size=(n, T, d)), rng.normal(size=(n, q))
    scores = rng.uniform(size=(n, T)).round(1 + number % 3)
    scores[:, 0] += 0.01  # not all the same
    tokens = rng.integers(0, T, n)
    tokens[0] = scores[0].argmax()  # above another one
    return (X, queries, scores, tokens), NORMS[number % len(NORMS)]


def relative_difference(data: tuple[Any, ...], norm: Any) -> float:
    """Return by how much both optima differ; 0 where both say that nothing separates."""
    problem = TokenMargin(norm).literal(*data)
    problem.solve(solver="CLARABEL")
    limit = ib.limits.solve_token_svm(*data, norm=norm)
    inseparable = limit.status is ib.Status.NOT_SEPARABLE
    if problem.value is None or not np.isfinite(problem.value):
        return 0.0 if inseparable else np.inf
    return np.inf if inseparable else abs(limit.objective / float(problem.value) - 1)


def programs(n: int) -> np.ndarray:
    """Return the differences (n,) of so many problems."""
    return np.array([relative_difference(*drawn(number)) for number in range(n)])


@click.command()
@click.option("--problems", type=click.IntRange(min=1), default=200, show_default=True)
def main(problems: int) -> None:
    """Programs of selected tokens beside cvxpy: the largest relative difference of optima."""
    differences = programs(problems)
    worst = int(differences.argmax())
    click.echo(f"{problems} problems, both inseparable in {int((differences == 0).sum())}")
    click.echo(f"largest difference {differences[worst]:.2g}: {worst}, {drawn(worst)[1]}")


if __name__ == "__main__":
    main()
