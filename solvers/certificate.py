"""Certificates: what a primal and a dual point prove about a program, whoever found them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from .arrays import Array, array_namespace, float_of, matmul
from .programs import MaxMarginProgram

__all__ = ["Certificate", "certify"]

# Rounding of the products that a margin or a block norm is summed from, relative to the sum of
# their absolute values. Blocked summation stays within a few units of the last place of that sum;
# 64 of them is a bound that no product of the sizes used here has been seen to exceed.
ROUNDING = 64 * 2.0**-52


@dataclass(frozen=True)
class Certificate:
    """What is proved about the optimum of a `MaxMarginProgram`.

    The optimum lies in `[dual_objective, objective]` (weak duality; THEORY: hard-margin programs
    of group norms), so that `gap = objective / dual_objective - 1` bounds the relative error of
    both. All numbers are floats computed from the arrays handed to `certify` alone.

    Attributes
    ----------
    objective : float
        Group norm of the primal point divided by its smallest margin; `inf` if that is not
        safely above rounding.
    dual_objective : float
        `sum(lam) / max_g ||v_g(lam)||`; a lower bound of the optimum; 0 without a dual point;
        `inf` if the blocks vanish exactly.
    gap : float
        `objective / dual_objective - 1`, at least 0; `inf` if either bound is missing.
    smallest_margin : float
        Smallest margin of the primal point as it was given.
    margin_rounding : float
        Bound of the rounding error in `smallest_margin`.
    separation_bound : float
        `max_g ||v_g(lam)||` over the size of the data that lam weighs. No coefficients of norm 1
        have a margin above this share of the data's scale; (near) zero proves that the data are
        not separable.
    separation_rounding : float
        Rounding error of `separation_bound`: a bound at or below it is zero to the arithmetic.
    """

    objective: float
    dual_objective: float
    gap: float
    smallest_margin: float
    margin_rounding: float
    separation_bound: float
    separation_rounding: float

    def proves_optimality(self, tol: float) -> bool:
        """Whether both bounds agree to the relative tolerance `tol`; NaN proves nothing."""
        return self.gap <= tol

    def proves_separability(self) -> bool:
        """Whether the primal point has a margin that is positive beyond rounding."""
        return math.isfinite(self.objective)

    def proves_inseparability(self) -> bool:
        """Whether the dual point shows that no margin above rounding exists."""
        return not self.proves_separability() and self.separation_bound <= self.separation_rounding

    def to_dict(self) -> dict[str, float]:
        """The fields as a dictionary of floats."""
        return asdict(self)


def certify(
    program: MaxMarginProgram, primal: Array | None = None, dual: Array | None = None
) -> Certificate:
    """Compute what `primal` and `dual` prove about `program`.

    Parameters
    ----------
    program : MaxMarginProgram
    primal : (J, D) array, optional
        Coefficients, at any scale.
    dual : (n,) array, optional
        Multipliers, at any scale.

    Returns
    -------
    Certificate
        With infinite gap where a point is missing, not finite, not positive or proves nothing.

    Raises
    ------
    ValueError
        If a point has the wrong shape.
    """
    objective, margin, margin_rounding = _upper_bound(program, primal)
    dual_objective, bound, bound_rounding = _lower_bound(program, dual)
    gap = math.inf
    if math.isfinite(objective) and 0 < dual_objective < math.inf:
        # Rounding alone can push the quotient below one; below that by more than rounding
        # the two points contradict weak duality and NaN-like distrust is right.
        quotient = objective / dual_objective - 1
        gap = max(quotient, 0.0) if quotient > -1e-9 else math.inf
    return Certificate(
        objective=objective,
        dual_objective=dual_objective,
        gap=gap,
        smallest_margin=margin,
        margin_rounding=margin_rounding,
        separation_bound=bound,
        separation_rounding=bound_rounding,
    )


def _upper_bound(program: MaxMarginProgram, V: Array | None) -> tuple[float, float, float]:
    if V is None:
        return math.inf, -math.inf, 0.0
    design = program.design
    expected = (design.Z.shape[1], design.X.shape[1])
    if tuple(V.shape) != expected:
        raise ValueError(f"`primal` must have shape {expected}, got {tuple(V.shape)}")
    xp = array_namespace(design.X)
    if not bool(xp.all(xp.isfinite(V))):
        return math.inf, -math.inf, 0.0
    margins = program.margins(V)
    norm = float_of(xp.sum(design.group_norms(V)))
    smallest = float_of(xp.min(margins))
    # Cauchy-Schwarz bounds the absolute sums for little; a close call deserves the sums.
    rounding = ROUNDING * float_of(xp.max(design.sample_sizes)) * norm
    if not smallest > rounding:
        rounding = ROUNDING * float_of(
            xp.max(xp.sum(matmul(xp.abs(design.X), xp.abs(V).T) * xp.abs(design.Z), axis=1))
        )
    proved = smallest > rounding and math.isfinite(norm)
    return (norm / smallest if proved else math.inf), smallest, rounding


def _lower_bound(program: MaxMarginProgram, lam: Array | None) -> tuple[float, float, float]:
    if lam is None:
        return 0.0, math.inf, 0.0
    if tuple(lam.shape) != (program.n_samples,):
        raise ValueError(f"`dual` must have shape ({program.n_samples},), got {tuple(lam.shape)}")
    xp = array_namespace(program.design.X)
    peak = float_of(xp.max(lam))
    if not (float_of(xp.min(lam)) >= 0 and 0 < peak < math.inf):
        return 0.0, math.inf, 0.0
    lam = lam / peak  # the bounds do not depend on the scale, underflow does
    total = float_of(xp.sum(lam))
    largest = float_of(xp.max(program.design.group_norms(program.dual_blocks(lam))))
    scale = program.data_scale(lam)
    rounding = ROUNDING
    if largest == 0 or scale == 0:
        return math.inf, 0.0, rounding
    return total / largest, largest / scale, rounding
