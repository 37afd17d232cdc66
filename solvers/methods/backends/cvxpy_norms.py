"""Margin programs of any norm in cvxpy, for any of its conic solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...norms.norm import Norm
from ...numerics.memory import require_memory
from ...programs.images import Floats
from ...programs.norm_program import NormPoint, NormProgram
from ..settings import Settings
from .cvxpy_solvers import require_conic, run_problem

if TYPE_CHECKING:
    import cvxpy


def norm_expression(
    norm: Norm, blocks: list[cvxpy.Expression]
) -> tuple[cvxpy.Expression, list[cvxpy.Constraint]]:
    """State a norm in cvxpy.

    Parameters
    ----------
    norm : Norm
    blocks : list of cvxpy expressions
        Units of the coefficients, as matrices; norms of a matrix take one, "l2", "linf" and "l1"
        any number.

    Returns
    -------
    expression : cvxpy.Expression
        A convex scalar, which at its least under the constraints is the norm.
    constraints : list of cvxpy constraints
        None for norms that cvxpy knows.
    """
    import cvxpy as cp

    over = cp.max if norm.over == "max" else cp.sum
    whole = blocks[0] if len(blocks) == 1 else cp.vstack(blocks)
    if norm.is_factored:
        return _factored_expression(norm, whole)
    if norm.blocks == "entries":
        return over(cp.abs(whole)), []
    if norm.blocks in ("rows", "columns"):
        return over(cp.norm(whole, 2, axis=1 if norm.blocks == "rows" else 0)), []
    inside = {"l2": lambda B: cp.norm(B, "fro"), "spectral": cp.sigma_max, "nuclear": cp.normNuc}
    parts = [whole] if norm.blocks == "whole" else blocks
    return over(cp.hstack([inside[norm.inside](part) for part in parts])), []


def _factored_expression(
    norm: Norm, B: cvxpy.Expression
) -> tuple[cvxpy.Expression, list[cvxpy.Constraint]]:
    """State "muon" or its dual: Schur complements of the squares t of the weights, or of factors.

    The norm is the least s with `[[diag t, B], [B', s I]] >= 0`, sum t = s, the dual norm the mean
    of theta and tr P with `[[R, V], [V', P]] >= 0`, all R[h, h] = theta.
    """
    import cvxpy as cp

    H, Q = B.shape
    if norm.over == "factored":
        t, s = cp.Variable(H, name="t"), cp.Variable(name="s")
        cone = cp.bmat([[cp.diag(t), B], [B.T, s * np.eye(Q)]]) >> 0
        return s, [cone, cp.sum(t) == s]
    R, P = cp.Variable((H, H), symmetric=True, name="R"), cp.Variable((Q, Q), symmetric=True)
    theta = cp.Variable(name="theta")
    return (theta + cp.trace(P)) / 2, [cp.bmat([[R, B], [B.T, P]]) >> 0, cp.diag(R) == theta]


def solve_norm_cvxpy(program: NormProgram, settings: Settings, name: str) -> NormPoint:
    """Solve a program with the cvxpy solver `name`, such as "CLARABEL".

    Raises
    ------
    ValueError
        If cvxpy has no such solver, or it takes no second-order cones; if memory cannot hold it.
    """
    import cvxpy as cp

    name = name.upper()
    require_conic(name)
    shape = program.image.shape
    n_entries = 2 * program.image.n_rows * int(np.prod(shape))
    require_memory(n_entries, "cvxpy's matrix of margins", "give fewer samples")
    standard = program.image.standard()
    X, Z = np.asarray(standard.design.X), np.asarray(standard.design.Z) * standard.y[:, None]
    V = cp.Variable((Z.shape[1], X.shape[1]), name="B")
    margins = cp.sum(cp.multiply(Z, X @ V.T), axis=1) >= 1
    constraints = [margins]
    if program.equalities is not None:
        constraints.append(program.equalities.flat @ cp.vec(V, order="C") == 0)
    objective, stated = norm_expression(program.norm, units(program, V))
    problem = cp.Problem(cp.Minimize(objective), constraints + stated)
    iterations = run_problem(problem, name, settings)
    lam = _finite(margins.dual_value, (program.image.n_rows,))
    # cvxpy's multipliers of equalities are those of the Lagrangian with the other sign.
    nu = None if program.equalities is None else _negative(constraints[1].dual_value)
    return NormPoint(_finite(V.value, shape), lam, nu, iterations)


def units(program: NormProgram, V: cvxpy.Expression) -> list[cvxpy.Expression]:
    """Units of the coefficients V, in C order, each as the matrix that a norm looks at."""
    import cvxpy as cp

    shape = program.image.shape
    if len(shape) == 3:
        n_rows = shape[1]
        flat = cp.reshape(V, (shape[0] * n_rows, shape[2]), order="C")
        return [flat[h * n_rows : (h + 1) * n_rows, :] for h in range(shape[0])]
    matrix = cp.reshape(V, shape if len(shape) == 2 else (1, shape[0]), order="C")
    if program.norm.blocks != "units":
        return [matrix]
    return [cp.reshape(matrix[h, :], (1, shape[1]), order="C") for h in range(shape[0])]


def _finite(values: Floats | None, shape: tuple[int, ...]) -> Floats | None:
    if values is None or not np.all(np.isfinite(values)):
        return None
    return np.reshape(np.asarray(values, dtype=np.float64), shape)


def _negative(values: Floats | None) -> Floats | None:
    return None if values is None else -np.atleast_1d(np.asarray(values, dtype=np.float64))
