"""Least norms of coefficients that interpolate, as margin programs with equalities."""

from __future__ import annotations

import numpy as np

from ...certificates.fits import unreachable
from ...norms.norm import Norm
from ...numerics.memory import require_memory
from ...programs.fits import FitProgram
from ...programs.images import Floats, Rows
from ...programs.norm_program import NormProgram
from ..norm_routes import solve_norm
from ..settings import Settings


def solve_interpolation(
    problem: FitProgram, norm: Norm, tol: float
) -> tuple[Floats, Floats, str, int]:
    """Return coefficients of least norm, multipliers, the solver's name and its iterations.

    One target that is not 0 asks for a margin, and scores of the others stand to its score as the
    targets do: so interpolation is a `NormProgram`. Where nothing interpolates, and for the norm
    "l2", they are those of least squares.

    Raises
    ------
    ValueError
        If memory cannot hold the rows.
    """
    A, sizes = problem.unit_rows()
    y = (problem.y.T / sizes).T
    if norm == Norm.of("l2") or unreachable(problem) is not None:
        W = np.asarray(np.linalg.lstsq(A, y)[0], np.float64)
        r = np.linalg.lstsq(A.T, W / (np.linalg.norm(W) or 1.0))[0]
        return problem.shaped(W), (r.T / sizes).T, "least squares", 1
    n_scores = y[0].size
    require_memory(4 * y.size * A[0].size * n_scores, "rows of all targets", "take the norm 'l2'")
    rows = A[:, None, :, None] * np.eye(n_scores)[None, :, None, :]
    rows = problem.shaped(rows.reshape(y.size, -1, *y.shape[1:]))
    pivot, targets = int(np.argmax(np.abs(y))), y.reshape(-1)
    first, others = rows[pivot], np.delete(rows, pivot, axis=0)
    own, rest = targets[pivot], np.delete(targets, pivot)
    E = Rows(others - np.multiply.outer(rest / own, first)) if len(rest) else None
    found = solve_norm(
        NormProgram(Rows(first[None] / own), norm, E),
        solver="highs" if norm in (Norm.of("l1"), Norm.of("linf")) else None,
        settings=Settings(tol=tol / 10),
    )
    nu = found.equality_dual
    r = np.insert(nu, pivot, (found.dual[0] - nu @ rest) / own).reshape(y.shape)
    return found.primal, (r.T / sizes).T, found.solver, found.iterations
