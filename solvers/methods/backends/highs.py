"""The door to HiGHS, through SciPy: linear programs of any of our methods."""

from __future__ import annotations

import numpy as np
from scipy.optimize import OptimizeResult, linprog

from ..settings import Settings

# The least that HiGHS takes: a violation costs as much of the gap.
FEASIBILITY = 1e-10
Bounds = tuple[float | None, float | None]


def linear_program(
    cost: np.ndarray,
    left: np.ndarray | None = None,
    right: np.ndarray | None = None,
    *,
    equal: np.ndarray | None = None,
    totals: np.ndarray | None = None,
    bounds: Bounds | list[Bounds] = (0.0, None),
    method: str = "highs-ds",
    settings: Settings | None = None,
) -> OptimizeResult:
    """Solve `min cost x  s.t.  left x <= right, equal x = totals` between bounds.

    Parameters
    ----------
    cost : (m,) array
    left, right : (a, m) and (a,) arrays, optional
    equal, totals : (b, m) and (b,) arrays, optional
        Right sides and totals are 0 by default.
    bounds : pair of float or None, or a list of m
        Of every unknown.
    method : str
        Simplex, the usual one, which ends at a vertex; interior point; or what HiGHS chooses.
    settings : Settings, optional
        Its `max_iterations`.

    Returns
    -------
    OptimizeResult
        As SciPy's; x is None where HiGHS found none.

    Examples
    --------
    >>> from solvers import linear_program
    >>> linear_program([1.0, 2.0], equal=[[1.0, 1.0]], totals=[3.0]).x.tolist()
    [3.0, 0.0]
    """
    options: dict[str, float | int] = {
        "primal_feasibility_tolerance": FEASIBILITY, "dual_feasibility_tolerance": FEASIBILITY,
    }  # fmt: skip
    if settings is not None and settings.max_iterations is not None:
        options["maxiter"] = settings.max_iterations
    left, equal = (np.zeros((0, len(cost))) if rows is None else rows for rows in (left, equal))
    right = np.zeros(len(left)) if right is None else right
    totals = np.zeros(len(equal)) if totals is None else totals
    return linprog(
        cost, A_ub=left if len(left) else None, b_ub=right if len(left) else None,
        A_eq=equal if len(equal) else None, b_eq=totals if len(equal) else None,
        bounds=bounds, method=method, options=options,
    )  # fmt: skip
