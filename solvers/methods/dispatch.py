"""Entry to all solvers of max-margin programs, by name."""

from __future__ import annotations

import logging
from pkgutil import resolve_name

from ..certificates.solution import Solution
from ..numerics.arrays import is_sparse
from ..programs.max_margin import MaxMarginProgram
from ..programs.scaling import require_scales
from .settings import Settings, SolverName

log = logging.getLogger(__name__)

# A family takes the rest of the name after its colon: "cvxpy:CLARABEL" calls
# `solve_cvxpy(program, settings, "CLARABEL")`.
SOLVERS = {
    "interior-point": "interior_point:solve_interior_point",
    "highs": "backends.highs_margins:solve_highs",
    "cvxpy": "backends.cvxpy_margins:solve_cvxpy",
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
    method = resolve_name(f"{__package__}.{SOLVERS[family]}")
    of_family = (name or "CLARABEL",) if family == "cvxpy" else ()
    found: Solution = method(program, settings or Settings(), *of_family)
    log.info(
        "%s: %s, gap %.2g, %d iterations, %.3g s",
        solver, found.status.name, found.certificate.gap, found.iterations, found.seconds,
    )  # fmt: skip
    return found
