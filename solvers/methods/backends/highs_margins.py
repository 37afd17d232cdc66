"""Solver `highs` for programs of absolute values: a sparse vertex, under the same certificate."""

from __future__ import annotations

import time

import numpy as np

from ...certificates.max_margin import certify
from ...certificates.solution import Solution, conclude
from ...numerics.arrays import Array, as_float64, to_numpy
from ...numerics.memory import require_memory
from ...programs.max_margin import MaxMarginProgram
from ..refinement import cancel_blocks
from ..settings import Settings
from .highs import linear_program

# Matrices that live at the same time: HiGHS's own copy of both halves, and the one it is made of.
MATRICES = 4


def solve_highs(program: MaxMarginProgram, settings: Settings) -> Solution:
    """Solve a program with one coefficient a group by HiGHS's dual simplex method, through SciPy.

        minimise  1^T (p + q)   s.t.   A (p - q) >= 1,  p, q >= 0,   A[n, j] = y[n] Z[n, j] X[n]

    `settings.progress` is never called: SciPy has no hook for it. Where HiGHS finds no feasible
    point, multipliers that prove it minimise the largest block.

    Raises
    ------
    ValueError
        If a group has more than one coefficient, so that its norm is no absolute value, or memory
        cannot hold the program.
    """
    design = program.design
    n_columns, n_inputs = int(design.Z.shape[1]), int(design.X.shape[1])
    if n_inputs != 1 or n_columns != program.n_groups:
        raise ValueError(
            f"solver 'highs' takes programs with one coefficient a group, and this one has "
            f"{program.n_groups} groups of {n_columns} x {n_inputs} in all: use 'interior-point'"
        )
    require_memory(
        MATRICES * program.n_samples * n_columns,
        f"HiGHS's matrix of {program.n_samples} margins",
        "use solver='interior-point'",
    )
    start = time.perf_counter()
    A = to_numpy(design.Z) * (to_numpy(design.X) * to_numpy(program.y)[:, None])
    scale = float(np.abs(A).max()) or 1.0
    primal, dual, iterations = _least_norm(A / scale, settings)
    V = None if primal is None else _like(program, primal[:, None])
    lam = None if dual is None else _like(program, dual)
    if V is None or not certify(program, V).proves_separability():
        dual, more = _proof(A / scale, settings)
        iterations += more
        lam = None if dual is None else cancel_blocks(program, _like(program, dual))
    seconds = time.perf_counter() - start
    return conclude(
        program, V, lam, tol=settings.tol, iterations=iterations, seconds=seconds, solver="highs"
    )


def _least_norm(
    A: np.ndarray, settings: Settings
) -> tuple[np.ndarray | None, np.ndarray | None, int]:
    """Coefficients (J,), multipliers (n,) and iterations; None where HiGHS found none."""
    n_samples, n_columns = A.shape
    halves = np.ones(2 * n_columns), np.hstack([-A, A]), -np.ones(n_samples)
    found = linear_program(*halves, settings=settings)
    if found.x is None:
        return None, None, int(found.nit)
    positive, negative = found.x.reshape(2, n_columns)
    return positive - negative, np.clip(-found.ineqlin.marginals, 0.0, None), int(found.nit)


def _proof(A: np.ndarray, settings: Settings) -> tuple[np.ndarray | None, int]:
    """Multipliers of sum one that minimise `max_j |A^T lam|_j`, zero if nothing separates."""
    n_samples, n_columns = A.shape
    blocks = np.vstack([np.hstack([sign * A.T, -np.ones((n_columns, 1))]) for sign in (1, -1)])
    found = linear_program(
        np.append(np.zeros(n_samples), 1.0),
        blocks,
        np.zeros(2 * n_columns),
        equal=np.append(np.ones(n_samples), 0.0)[None, :],
        totals=np.ones(1),
        settings=settings,
    )
    return None if found.x is None else np.clip(found.x[:-1], 0.0, None), int(found.nit)


def _like(program: MaxMarginProgram, values: np.ndarray) -> Array:
    return as_float64(values, like=program.design.X)
