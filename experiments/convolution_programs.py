"""Two hundred random convolution programs beside cvxpy's, and points of three layers beside both.

    python -m experiments.convolution_programs --out experiments/results

One row a problem: a group, samples, the certified l1 optimum of frequencies, that of the program in
complex numbers as the paper has it, stated here and solved by Clarabel, and the stationary point of
three layers with its bound. Tables are of groups that do not commute. `convolution_programs.csv`,
in a minute; rows that are there are kept.
"""

from __future__ import annotations

import math
from itertools import permutations, product
from pathlib import Path
from typing import Any

import click
import cvxpy as cp
import numpy as np

import implicit_bias as ib

from .tables import Kept, keep_rows, out_folder

PROBLEMS = 200


def permuted(n: int) -> np.ndarray:
    """The table of all permutations of n things."""
    every = list(permutations(range(n)))
    return np.array([[every.index(tuple(a[i] for i in b)) for b in every] for a in every])


def dihedral(n: int) -> np.ndarray:
    """The table of the turns and flips of a polygon of n corners."""
    every = list(product(range(2), range(n)))
    return np.array([
        [every.index(((s + t) % 2, (a * (-1) ** t + b) % n)) for t, b in every] for s, a in every
    ])  # fmt: skip


TABLES = {"permutations of 3": permuted(3), "square": dihedral(4), "pentagon": dihedral(5)}
CIRCLES: tuple[tuple[int, ...], ...] = (
    (1,), (2,), (3,), (5,), (8,), (13,), (24,), (2, 2), (3, 5), (4, 4), (1, 7), (2, 3, 2),
)  # fmt: skip


def stated(X: np.ndarray, y: np.ndarray, group: str | tuple[int, ...]) -> float:
    """The least norm by cvxpy: sizes of complex frequencies, or singular values of a matrix."""
    D = X.shape[1]
    b = cp.Variable(D)
    if isinstance(group, str):
        table = TABLES[group]
        place = np.argsort(table, axis=1)  # row g: the h of each product g h
        matrix = cp.vstack([b[place[g]] for g in range(D)])  # entry (g, k) is b[g^-1 k]
        norm = cp.normNuc(matrix) / np.sqrt(D)
    else:
        unit = np.eye(D).reshape(D, *group)
        F = np.fft.fftn(unit, axes=range(1, 1 + len(group))).reshape(D, D).T / np.sqrt(D)
        norm = cp.sum(cp.norm(cp.vstack([F.real @ b, F.imag @ b]), 2, axis=0))
    problem = cp.Problem(cp.Minimize(norm), [cp.multiply(y, X @ b) >= 1])
    return float(problem.solve(solver="CLARABEL"))


def row(problem: int) -> dict[str, Any]:
    """Solve one problem by both, and look for its point of three layers."""
    rng = np.random.default_rng(problem)
    groups: list[str | tuple[int, ...]] = [*CIRCLES, *TABLES]
    group = groups[problem % len(groups)]
    table = TABLES[group] if isinstance(group, str) else None
    D = math.prod(group) if not isinstance(group, str) else len(TABLES[group])
    n = int(rng.integers(1, max(D, 2)))
    X = rng.normal(size=(n, D)) * 10 ** rng.uniform(-3, 3)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    places: Any = group if table is None else table
    limit = ib.limits.solve_convolution(X, y, group=places)
    known = stated(X, y, group)
    found = {
        "problem": problem, "group": group if table is not None else " x ".join(map(str, group)),
        "samples": n, "status": limit.status.name, "optimum": limit.objective, "gap": limit.gap,
        "cvxpy": known, "difference": abs(limit.objective / known - 1),
    }  # fmt: skip
    if table is not None:
        return found
    point = ib.limits.solve_convolution(X, y, 3, places)
    assert isinstance(point, ib.limits.ConvolutionPoint)
    proof = point.certificate
    return found | {
        "deep_status": point.status.name, "residual": proof.residual, "curvature": proof.curvature,
        "bound_over_value": proof.lower_bound / proof.objective,
    }  # fmt: skip


@click.command()
@out_folder
def main(out: Path) -> None:
    """Solve random programs of convolutions, by the library and by cvxpy."""
    kept = Kept(out / "convolution_programs.csv", ("problem",))
    missing = (row(problem) for problem in range(PROBLEMS) if (problem,) not in kept)
    keep_rows(missing, kept, digits=".6g")


if __name__ == "__main__":
    main()
