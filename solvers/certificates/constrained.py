"""Certificates of max-margin programs to which a user has added constraints in cvxpy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from ..numerics.arrays import array_namespace, as_float64, float_of, to_numpy
from ..numerics.checks import require_instance, require_number, require_positive, shown
from ..numerics.summation import TINY, rounding
from ..programs.max_margin import MaxMarginProgram
from .html import FloatRecord
from .max_margin import gap_between, norm_above, upper_bound

if TYPE_CHECKING:
    import cvxpy

Floats = NDArray[np.float64]

# cvxpy evaluates the objective and the margins of a program as we do, up to rounding.
SAME = 1e-9


@dataclass(frozen=True)
class ConstrainedCertificate(FloatRecord):
    """Proved bounds of the optimum of a `MaxMarginProgram` with further constraints.

    Attributes
    ----------
    objective : float
        Norm of the point that was found, lengthened where that brings its margins to what is
        asked; `inf` if nothing does. An upper bound of the optimum if `violation` is 0.
    dual_objective : float
        A lower bound of the optimum, whatever the violation; 0 if the multipliers prove nothing.
    gap : float
        `objective / dual_objective - 1`, at least 0; `inf` if either is missing.
    violation : float
        The most by which the lengthened point violates an added constraint. Above 0 the point is
        one of a program whose constraints are loosened by so much, and `objective` no proof.
    smallest_margin : float
        Smallest margin, relative to the one asked of its sample, before the point was lengthened.
    """

    objective: float
    dual_objective: float
    gap: float
    violation: float
    smallest_margin: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_number(name, value, finite=False)

    def proves_optimality(self, tol: float, violation: float = 0.0) -> bool:
        """True if the bounds agree to `tol`, for a point that violates at most by `violation`."""
        require_positive("tol", tol)
        require_number("violation", violation)
        return self.gap <= tol and self.violation <= violation


@dataclass(frozen=True, eq=False)
class _Cuts:
    r"""Half-spaces :math:`\langle g_i, V \rangle \le h_i` in which every feasible V lies, weighted.

    Attributes
    ----------
    blocks, blocks_lost : (J, D) arrays
        Sum of `mu_i g_i`, and a bound of its rounding error in each entry.
    total, total_lost : float
        Sum of `mu_i h_i`, and a bound of its rounding error.
    """

    blocks: Floats
    blocks_lost: Floats
    total: float
    total_lost: float


def certify_constrained(
    program: MaxMarginProgram, problem: cvxpy.Problem
) -> ConstrainedCertificate:
    r"""Bound the optimum of `to_cvxpy(program)` with further constraints, once cvxpy has solved it.

    Let m be the margins asked for, :math:`\lambda \ge 0` the multipliers that cvxpy found for
    them, and :math:`\mu` those of the added constraints :math:`c_i(V) \le 0` (nonnegative) and
    :math:`c_i(V) = 0` (of any sign). A convex c lies above its tangents, so every feasible V has
    :math:`\langle g_i, V \rangle \le h_i`, g the slope of c at the point found and
    :math:`h = \langle g, V^* \rangle - c(V^*)`; an affine c is its own tangent. Then, with the
    blocks :math:`B = v(\lambda) - \sum_i \mu_i g_i`,

    .. math:: \sum_h \|V_h\| \ge \frac{\langle B, V \rangle}{\max_h \|B_h\|}
              \ge \frac{\sum_n \lambda_n m_n - \sum_i \mu_i h_i}{\max_h \|B_h\|}

    for every feasible V, however good or bad the multipliers are. It is tight where the tangents
    at the optimum are unique. At a kink (a bound on a 1-norm with entries of 0, on a largest entry
    with ties) cvxpy names one of several, and the gap stays open: write -t <= entries <= t instead
    of a largest one. Of sums the rounding is bounded;
    what cvxpy says of an added constraint, its value and slope at a point, is taken at its word,
    rounding included.

    Parameters
    ----------
    program : MaxMarginProgram
    problem : cvxpy.Problem
        Solved; with the objective and the margins of `to_cvxpy(program)`, and any constraints
        `<=`, `>=` and `==` on its variable.

    Returns
    -------
    ConstrainedCertificate

    Raises
    ------
    ValueError
        If the problem has no solution yet, is not convex, is of another program or has other
        variables, or a constraint is of another kind (a cone: write it as a norm or an eigenvalue
        below a bound).

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, sections 3.1.3 (tangents of convex
    functions lie below them) and 5.1 (weak duality).

    Examples
    --------
    The shortest w with <w, (3, 4)> >= 1 that does not grow with the first input is (0, 1/4):

    >>> import cvxpy
    >>> from solvers import GatedDesign, MaxMarginProgram, to_cvxpy
    >>> one, group = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    >>> program = MaxMarginProgram(GatedDesign(np.array([[3.0, 4.0]]), one, group), one[0])
    >>> plain = to_cvxpy(program)
    >>> flat = plain.var_dict["zeta"][:, 0] <= 0
    >>> problem = cvxpy.Problem(plain.objective, plain.constraints + [flat])
    >>> _ = problem.solve(solver="CLARABEL")
    >>> found = certify_constrained(program, problem)
    >>> round(found.dual_objective, 6), found.proves_optimality(1e-6, violation=1e-6)
    (0.25, True)
    """
    require_instance("program", program, MaxMarginProgram)
    if isinstance(problem, type) or not hasattr(problem, "var_dict"):
        raise TypeError(f"`problem` must be a cvxpy.Problem, got {shown(problem)}")
    zeta = _variable(program, problem)
    point = np.asarray(zeta.value, dtype=np.float64)
    margins, others = _split(program, problem, zeta)
    asked = np.asarray(_asked(margins).value, dtype=np.float64)
    # In the units of what is asked of each sample all margins are to be at least 1.
    X = program.design.X
    units = as_float64(asked, like=X)[:, None]
    program = replace(program, design=replace(program.design, X=X / units))
    try:
        cuts = _sum([_cuts(constraint, zeta, point) for constraint in others], point.shape)
        multipliers = np.clip(np.asarray(margins.dual_value, dtype=np.float64), 0.0, None)
        below = _lower_bound(program, multipliers * asked, cuts)
        above, smallest, violation = _above(program, zeta, point, others)
    finally:
        zeta.value = point
    # A point that violates constraints may be below what bounds those that do not.
    bounds = sorted((below, above)) if violation > 0 else (below, above)
    return ConstrainedCertificate(above, below, gap_between(*bounds[::-1]), violation, smallest)


def _variable(program: MaxMarginProgram, problem: cvxpy.Problem) -> cvxpy.Variable:
    """Variable "zeta" of a solved problem that is this program with constraints."""
    shape = (int(program.design.Z.shape[1]), int(program.design.X.shape[1]))
    found = {variable.name(): tuple(variable.shape) for variable in problem.variables()}
    if found != {"zeta": shape}:
        raise ValueError(
            f"`problem` must have the one variable 'zeta' {shape} of to_cvxpy(program), got "
            f"{found}: write constraints in 'zeta' alone, without variables of their own"
        )
    if not problem.is_dcp():
        raise ValueError("`problem` is not convex by cvxpy's rules, and tangents prove nothing")
    kinds = {type(c).__name__ for c in problem.constraints} - {"Inequality", "Equality"}
    if kinds:
        raise ValueError(
            f"added constraints must be written with <=, >= or ==, got {sorted(kinds)}: bound a "
            "norm instead of naming a cone, cvxpy.lambda_min(...) >= 0 instead of a matrix >> 0"
        )
    zeta = problem.variables()[0]
    duals = [constraint.dual_value for constraint in problem.constraints]
    points = [zeta.value, *duals]
    if any(value is None or not np.all(np.isfinite(value)) for value in points):
        raise ValueError(
            f"`problem` has no solution to judge (status {problem.status!r}): call its solve() "
            "first; of an infeasible one cvxpy keeps no multipliers"
        )
    return zeta


def _split(
    program: MaxMarginProgram, problem: cvxpy.Problem, zeta: cvxpy.Variable
) -> tuple[Any, list[Any]]:
    """Constraint of the margins, and the others, told apart by their values at a random point."""
    kept = zeta.value
    probe = np.random.default_rng(0).normal(size=zeta.shape)
    V = as_float64(probe, like=program.design.X)
    norm = float_of(array_namespace(V).sum(program.design.group_norms(V)))
    wanted = to_numpy(program.margins(V))
    try:
        zeta.value = probe
        same = math.isclose(float(problem.objective.value), norm, rel_tol=SAME)
        own = [c for c in problem.constraints if same and _is_of(c, wanted)]
    finally:
        zeta.value = kept
    if len(own) != 1:
        raise ValueError(
            "`problem` must minimise the norm of this program under its margins, once: build it as "
            "cvxpy.Problem(p.objective, p.constraints + [...]) of p = to_cvxpy(program)"
        )
    others = [c for c in problem.constraints if c is not own[0]]
    return own[0], others


def _asked(constraint: Any) -> Any:
    """Parameter of a constraint `parameter <= expression`; None for others."""
    left = constraint.args[0]
    named = any(one is left for one in left.parameters()) and left.name() == "margins"
    return left if type(constraint).__name__ == "Inequality" and named else None


def _is_of(constraint: Any, margins: Floats) -> bool:
    """True if a constraint is that of these margins, at the point where the variable is."""
    if _asked(constraint) is None or constraint.args[1].shape != margins.shape:
        return False
    size = float(np.max(np.abs(margins)))
    return bool(np.all(np.abs(constraint.args[1].value - margins) <= SAME * size))


def _cuts(constraint: Any, zeta: cvxpy.Variable, point: Floats) -> _Cuts:
    """Half-spaces that contain a constraint's feasible set, times its multipliers."""
    mu = np.asarray(constraint.dual_value, dtype=np.float64).ravel(order="F")
    if type(constraint).__name__ == "Inequality":
        mu = np.clip(mu, 0.0, None)
    expression = constraint.expr
    if expression.is_affine():
        # Its slope is the same anywhere, and at 0 no products are rounded.
        point = np.zeros_like(point)
    zeta.value = point
    slopes = expression.grad.get(zeta)
    value = expression.value
    if slopes is None or value is None:
        raise ValueError(
            f"cvxpy knows no slope of {constraint} at the solution: bound a norm of it"
        )
    values = np.asarray(value, dtype=np.float64).ravel(order="F")
    # (J D, m), or a number where both are scalars; entries of "zeta" are numbered by columns.
    g = csc_array(slopes if issparse(slopes) else np.reshape(slopes, (-1, mu.size)))
    x = point.ravel(order="F")
    heights = x @ g - values
    sizes = np.abs(x) @ abs(g) + np.abs(values)
    return _Cuts(
        blocks=(g @ mu).reshape(point.shape, order="F"),
        blocks_lost=rounding(mu.size + 2) * (abs(g) @ np.abs(mu)).reshape(point.shape, order="F"),
        total=float(mu @ heights),
        total_lost=rounding(x.size + mu.size + 4) * float(np.abs(mu) @ sizes),
    )


def _sum(cuts: list[_Cuts], shape: tuple[int, ...]) -> _Cuts:
    """Sum of cuts, with rounding errors that include that of adding them."""
    share = rounding(len(cuts) + 1)
    zero = np.zeros(shape)
    sizes = sum((np.abs(cut.blocks) for cut in cuts), zero)
    return _Cuts(
        blocks=sum((cut.blocks for cut in cuts), zero),
        blocks_lost=sum((cut.blocks_lost for cut in cuts), zero) + share * sizes,
        total=sum(cut.total for cut in cuts),
        total_lost=sum(cut.total_lost + share * abs(cut.total) for cut in cuts),
    )


def _lower_bound(program: MaxMarginProgram, lam: Floats, cuts: _Cuts) -> float:
    """Lower bound `(sum lam - total) / max_h ||B_h||`, rounded down; 0 where it says nothing."""
    design, like = program.design, program.design.X
    xp = array_namespace(like)
    multipliers = as_float64(lam, like=like)
    blocks = program.dual_blocks(multipliers) - as_float64(cuts.blocks, like=like)
    lost = rounding(program.n_samples + 3) * program.data_scale(multipliers) + TINY
    lost += norm_above(design, as_float64(cuts.blocks_lost, like=like), xp.max)
    largest = (norm_above(design, blocks, xp.max) * (1 + rounding(1)) + lost) * (1 + rounding(2))
    total = float(np.sum(lam)) - cuts.total
    total -= rounding(len(lam) + 2) * (float(np.sum(lam)) + abs(cuts.total)) + cuts.total_lost
    return max(total / largest * (1 - rounding(4)), 0.0)


def _above(
    program: MaxMarginProgram, zeta: cvxpy.Variable, point: Floats, others: list[Any]
) -> tuple[float, float, float]:
    """Norm of the point lengthened to its margins, the smallest of these before, the violation."""
    V = as_float64(point, like=program.design.X)
    longer, smallest, lost = upper_bound(program, V)
    floor = smallest - lost
    objective, factor = longer, 1 / floor if floor > 0 else 1.0
    if floor >= 1:  # long enough: shorter ones may violate what was added
        objective, factor = norm_above(program.design, V, array_namespace(V).sum), 1.0
    zeta.value = factor * point
    residuals = [float(np.max(constraint.residual)) for constraint in others]
    return objective, smallest, max(residuals, default=0.0)
