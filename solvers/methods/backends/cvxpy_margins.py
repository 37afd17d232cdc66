"""The programs exactly as the papers print them, in cvxpy, for any solver that cvxpy has."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...certificates.max_margin import certify
from ...certificates.solution import Solution, conclude
from ...numerics.arrays import Array, array_namespace, as_float64, to_numpy
from ...numerics.checks import require_instance
from ...numerics.memory import require_memory
from ...programs.max_margin import MaxMarginProgram
from ..refinement import cancel_blocks
from ..settings import Settings
from .cvxpy_solvers import conic_solvers, is_conic, labelled, require_installed, run_problem

if TYPE_CHECKING:
    import cvxpy


def primal_program(
    program: MaxMarginProgram,
    *,
    squared: bool = False,
    least: cvxpy.Parameter | float = 1.0,
) -> tuple[cvxpy.Problem, cvxpy.Variable]:
    """State the primal program in cvxpy, in the letters in which its theory is printed.

        minimise sum_g ||zeta_g||_F   s.t.   y_n sum_j Z[n, j] <x_n, zeta_j> >= 1

    Parameters
    ----------
    program : MaxMarginProgram
    squared : bool
        State `1/2 ||zeta||^2` instead of `||zeta||`, which quadratic solvers take; one group only.
    least : cvxpy.Parameter (n,) or float
        Margins that are asked for.

    Returns
    -------
    (cvxpy.Problem, cvxpy.Variable)
        The problem and its variable "zeta" (J, D). Its one constraint is labelled "margins".

    Raises
    ------
    ValueError
        If `squared` is asked for with more than one group.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equations (20) and (22).
    """
    import cvxpy as cp

    X, Z = to_numpy(program.design.X), to_numpy(program.design.Z)
    y, group = to_numpy(program.y), to_numpy(program.design.group)
    zeta = cp.Variable((Z.shape[1], X.shape[1]), name="zeta")
    margins = cp.multiply(y, cp.sum(cp.multiply(Z, X @ zeta.T), axis=1))
    # Rows are taken by index, never by a reshape, whose order decides which rows make a group.
    units = [zeta[np.flatnonzero(group == g), :] for g in range(program.n_groups)]
    if not squared:
        objective = cp.sum([cp.norm(unit, "fro") for unit in units])
    elif len(units) == 1:
        objective = cp.sum_squares(zeta) / 2
    else:
        raise ValueError(
            f"a squared norm states the program for one group only, this one has {len(units)}: "
            "use a conic solver such as cvxpy:CLARABEL"
        )
    return cp.Problem(cp.Minimize(objective), [labelled(margins >= least, "margins")]), zeta


def to_cvxpy(program: MaxMarginProgram) -> cvxpy.Problem:
    """State `program` in cvxpy, to add constraints to; `certify_constrained` judges what comes.

    Parameters
    ----------
    program : MaxMarginProgram
        On NumPy arrays or torch tensors, in any number of groups.

    Returns
    -------
    cvxpy.Problem
        Its variable is "zeta" (J, D), in `problem.var_dict`; its one constraint is labelled
        "margins" and asks them to be at least the parameter "margins" (n,), positive and 1 to
        begin with, in `problem.param_dict`. Problems that differ in this parameter alone are
        compiled once (DPP). With more constraints it is
        `cvxpy.Problem(problem.objective, problem.constraints + [...])`.

    Raises
    ------
    ModuleNotFoundError
        Without cvxpy.
    ValueError
        If memory cannot hold the program multiplied out.

    Examples
    --------
    The shortest w with <w, (3, 4)> >= 1 that does not grow with the first input:

    >>> import cvxpy, numpy as np
    >>> from solvers import GatedDesign, MaxMarginProgram, to_cvxpy
    >>> one, group = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    >>> program = MaxMarginProgram(GatedDesign(np.array([[3.0, 4.0]]), one, group), one[0])
    >>> plain = to_cvxpy(program)
    >>> flat = plain.var_dict["zeta"][:, 0] <= 0
    >>> problem = cvxpy.Problem(plain.objective, plain.constraints + [flat])
    >>> round(float(problem.solve(solver="CLARABEL")), 6)
    0.25
    """
    import cvxpy as cp

    require_instance("program", program, MaxMarginProgram)
    _require_memory(program)
    least = cp.Parameter(program.n_samples, name="margins", pos=True)
    least.value = np.ones(program.n_samples)
    return primal_program(program, least=least)[0]


def inseparability_program(
    program: MaxMarginProgram,
) -> tuple[cvxpy.Problem, cvxpy.Variable]:
    """State the search for a proof of inseparability in cvxpy: multipliers whose blocks cancel.

        minimise max_g ||v_g(lam)||_F   s.t.   lam >= 0,  sum lam = 1

    Its optimum is the best margin per unit of norm, zero exactly if no coefficients separate.

    Returns
    -------
    (cvxpy.Problem, cvxpy.Variable)
        The problem and its variable "lam" (n,); constraints "multipliers" and "total".
    """
    import cvxpy as cp

    X, Z = to_numpy(program.design.X), to_numpy(program.design.Z)
    y, group = to_numpy(program.y), to_numpy(program.design.group)
    lam = cp.Variable(len(y), name="lam")
    blocks = [
        cp.hstack([(X * (y * Z[:, j])[:, None]).T @ lam for j in np.flatnonzero(group == g)])
        for g in range(program.n_groups)
    ]
    largest = cp.max(cp.hstack([cp.norm(block, 2) for block in blocks]))
    constraints = [labelled(lam >= 0, "multipliers"), labelled(cp.sum(lam) == 1, "total")]
    return cp.Problem(cp.Minimize(largest), constraints), lam


def solve_cvxpy(program: MaxMarginProgram, settings: Settings, name: str) -> Solution:
    """Solve the literal primal program with the cvxpy solver `name`, such as "CLARABEL".

    Where the solver reports an infeasible program, `inseparability_program` is solved for the
    multipliers that prove it.

    Raises
    ------
    ValueError
        If cvxpy has no such solver installed, the solver takes neither norms nor, for a program
        of one group, a quadratic objective, or memory cannot hold the program.
    """
    name = name.upper()
    conic = _takes_norms(name, program)
    _require_memory(program)
    start = time.perf_counter()
    # One factor for all of X leaves the program what it is and suits absolute tolerances.
    scale = program.data_scale(array_namespace(program.y).ones_like(program.y)) / program.n_samples
    scaled = replace(program, design=replace(program.design, X=program.design.X / (scale or 1.0)))
    problem, zeta = primal_program(scaled, squared=not conic)
    iterations = run_problem(problem, name, settings)
    primal, dual = _like(program, zeta.value), _like(program, problem.constraints[0].dual_value)
    if primal is None or not certify(program, primal).proves_separability():
        problem, lam = inseparability_program(scaled)
        # A quadratic solver cannot state this program; cvxpy's own default conic solver can.
        iterations += run_problem(problem, name if conic else "CLARABEL", settings)
        dual = _like(program, lam.value)
        if dual is not None:
            dual = cancel_blocks(program, array_namespace(dual).clip(dual, min=0.0))
    return conclude(
        program,
        primal,
        dual,
        tol=settings.tol,
        iterations=iterations,
        seconds=time.perf_counter() - start,
        solver=f"cvxpy:{name}",
    )


# Numbers that each entry of the constraint matrix takes at least: its value and its place.
COPIES = 2


def _require_memory(program: MaxMarginProgram) -> None:
    require_memory(
        COPIES * int((program.design.Z != 0).sum()) * int(program.design.X.shape[1]),
        f"cvxpy's matrix of {program.n_samples} margins",
        "use solver='interior-point', which never multiplies it out",
    )


def _takes_norms(name: str, program: MaxMarginProgram) -> bool:
    """True if the solver takes second-order cones, False if it takes one group's squared norm.

    Raises
    ------
    ValueError
        If it takes neither, with the solvers that do.
    """
    from cvxpy.reductions.solvers.defines import SOLVER_MAP_QP

    require_installed(name)
    if not is_conic(name) and (name not in SOLVER_MAP_QP or program.n_groups > 1):
        accepted = "quadratic programs, of one group only" if name in SOLVER_MAP_QP else "no norms"
        raise ValueError(
            f"cvxpy:{name} takes {accepted}, and this program has {program.n_groups} groups: use "
            f"a conic solver, one of {', '.join(conic_solvers())}, or 'interior-point'"
        )
    return is_conic(name)


def _like(program: MaxMarginProgram, values: np.ndarray | None) -> Array | None:
    if values is None or not np.all(np.isfinite(values)):
        return None
    return as_float64(np.asarray(values, dtype=float), like=program.design.X)
