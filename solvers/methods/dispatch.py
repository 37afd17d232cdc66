"""Entry to all solvers of max-margin programs, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..certificates.solution import Solution
from ..numerics.arrays import is_sparse
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import require_scales
from .backends.cvxpy_margins import solve_cvxpy
from .backends.highs import solve_highs
from .interior_point import solve_interior_point
from .settings import Settings, SolverName

log = logging.getLogger(__name__)

# A family takes the rest of the name after its colon: "cvxpy:CLARABEL" calls
# `solve_cvxpy(program, settings, "CLARABEL")`.
SOLVERS: dict[str, Callable[[MaxMarginProgram, Settings, str], Solution]] = {
    "interior-point": lambda program, settings, _: solve_interior_point(program, settings),
    "highs": lambda program, settings, _: solve_highs(program, settings),
    "cvxpy": lambda program, settings, name: solve_cvxpy(program, settings, name or "CLARABEL"),
}


def solve(
    program: MaxMarginProgram,
    *,
    solver: SolverName = "interior-point",
    settings: Settings | None = None,
) -> Solution:
    """Solve a max-margin program and certify the answer.

    Parameters
    ----------
    program : MaxMarginProgram
        With a design of (n, D) inputs and (n, J) gates, on NumPy arrays or torch tensors.
    solver : str
        "interior-point" (the structured method of this package); "highs" for programs with one
        coefficient a group, of which it returns a vertex; or "cvxpy:NAME" for a solver of
        second-order cones that cvxpy has installed: CLARABEL, ECOS, SCS; or, for programs of one
        group, of quadratic programs: OSQP, HIGHS.
    settings : Settings, optional

    Returns
    -------
    Solution
        Coefficients (J, D) and multipliers (n,) as far as the solver came, with the status that
        their certificate proves.

    Raises
    ------
    TypeError
        If `solver` is not a string.
    ValueError
        If there is no such solver, it does not take the program, memory cannot hold it, or inputs,
        gates or their products are, at their largest, beyond 1e152 or below 1e-152.

    Examples
    --------
    <w, (2, 0)> >= 1 and <w, (0, 1)> <= -1 have the shortest solution w = (1/2, -1):

    >>> import numpy as np
    >>> from solvers import GatedDesign
    >>> design = GatedDesign(np.diag([2.0, 1.0]), np.ones((2, 1)), np.zeros(1, dtype=np.int64))
    >>> solution = solve(MaxMarginProgram(design, np.array([1.0, -1.0]))).require()
    >>> solution.primal.round(6).tolist()
    [[0.5, -1.0]]
    """
    if not isinstance(solver, str):
        raise TypeError(
            f"`solver` must be a name, got {solver!r}: use 'interior-point', 'highs' or "
            "'cvxpy:NAME'"
        )
    family, _, name = solver.partition(":")
    if family not in SOLVERS or (name and family != "cvxpy"):
        raise ValueError(
            f"unknown solver {solver!r}: let `solver` be 'interior-point', 'highs' or 'cvxpy:NAME' "
            "with NAME one of CLARABEL, ECOS, SCS, OSQP"
        )
    if is_sparse(program.design.X) and family != "interior-point":
        raise ValueError(
            f"`solver` must be 'interior-point' where `X` is sparse, got {solver!r}: give "
            "`X.toarray()` to any other"
        )
    require_scales(program)
    found = SOLVERS[family](program, settings or Settings(), name)
    log.info(
        "%s: %s, gap %.2g, %d iterations, %.3g s",
        solver, found.status.name, found.certificate.gap, found.iterations, found.seconds,
    )  # fmt: skip
    return found
