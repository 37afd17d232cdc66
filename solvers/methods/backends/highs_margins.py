"""Solver `highs` for programs of absolute values: a sparse vertex, under the same certificate."""

from __future__ import annotations

import time

import numpy as np

from ...certificates.max_margin import certify
from ...certificates.solution import Solution, conclude
from ...numerics.arrays import as_float64, to_numpy
from ...numerics.memory import require_memory
from ...programs.images import Floats
from ...programs.max_margin import MaxMarginProgram
from ...programs.norm_program import NormPoint
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
    found = least_entries(A / scale, settings)
    iterations, dual = found.iterations, found.lam
    V = None if found.B is None else as_float64(found.B[:, None], like=design.X)
    separated = V is not None and certify(program, V).proves_separability()
    if not separated:
        dual, more = _proof(A / scale, settings)
        iterations += more
    lam = None if dual is None else as_float64(dual, like=design.X)
    return conclude(
        program,
        V,
        lam if separated or lam is None else cancel_blocks(program, lam),
        tol=settings.tol,
        iterations=iterations,
        seconds=time.perf_counter() - start,
        solver="highs",
    )


def least_entries(
    A: Floats, settings: Settings, E: Floats | None = None, *, largest: bool = False
) -> NormPoint:
    """Find coefficients (J,) of margins `A B >= 1` and `E B = 0` by least entries.

    Parameters
    ----------
    A : (m, J) array
    settings : Settings
    E : (e, J) array, optional
    largest : bool
        Whether the largest absolute entry is to be least, or the sum of all.

    Returns
    -------
    NormPoint
        Without coefficients where HiGHS found none.
    """
    m, size = A.shape
    E = np.zeros((0, size)) if E is None else E
    if largest:
        cost, eye = np.append(np.zeros(size), 1.0), np.eye(size)
        walls = np.hstack([np.vstack([eye, -eye]), -np.ones((2 * size, 1))])
        left = np.vstack([np.hstack([-A, np.zeros((m, 1))]), walls])
        right = np.append(-np.ones(m), np.zeros(2 * size))
        equal, least, method = np.hstack([E, np.zeros((len(E), 1))]), None, "highs-ipm"
    else:
        cost, left, right = np.ones(2 * size), np.hstack([-A, A]), -np.ones(m)
        equal, least, method = np.hstack([E, -E]), 0.0, "highs-ds"
    found = linear_program(
        cost, left, right, equal=equal, bounds=(least, None), method=method, settings=settings
    )
    if found.x is None:
        return NormPoint(None, None, iterations=int(found.nit or 0))
    B = found.x[:size] if largest else found.x[:size] - found.x[size:]
    nu = found.eqlin.marginals if len(E) else None
    lam = np.clip(-found.ineqlin.marginals[:m], 0.0, None)
    return NormPoint(B, lam, nu, int(found.nit or 0))


def _proof(A: np.ndarray, settings: Settings) -> tuple[np.ndarray | None, int]:
    """Multipliers of sum one that minimise `max_j |A^T lam|_j`, zero if nothing separates."""
    n_samples, n_columns = A.shape
    blocks = np.vstack([np.hstack([sign * A.T, -np.ones((n_columns, 1))]) for sign in (1, -1)])
    found = linear_program(
        np.append(np.zeros(n_samples), 1.0),
        blocks,
        equal=np.append(np.ones(n_samples), 0.0)[None, :],
        totals=np.ones(1),
        settings=settings,
    )
    return None if found.x is None else np.clip(found.x[:-1], 0.0, None), int(found.nit)
