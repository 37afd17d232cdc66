"""Certificates of max-margin programs: bounds that primal and dual points prove, rounding included.

They are computed from the points alone, whoever found these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..numerics.arrays import Array, array_namespace, as_float64, float_of, matmul
from ..numerics.checks import (
    require_instance,
    require_number,
    require_positive,
    require_real,
    require_shape,
)
from ..numerics.summation import TINY, enclose_adjoint, enclose_scores, power_of_two, rounding
from ..programs.design import GatedDesign
from ..programs.max_margin import MaxMarginProgram
from .html import FloatRecord

# One unit in the last place: what the inputs and the multipliers lose of every term when each is
# rounded to float64 once.
RESOLUTION = 2.0**-52
# Sums are known well enough if their rounding takes no more than this share of a bound, which is
# a hundredth of the default tolerance. On MNIST digits plain sums lose 1e-12 to 1e-11; where
# margins or blocks cancel by more than two further digits they are summed again, compensated.
CLOSE = 1e-10
# Share of their scale by which bounds that do not contain their rounding may cross.
CROSSED = 1e-9
# Samples whose blocks are summed at once. With all at once the proven rounding of sets of 13,000
# digits was above `CLOSE`, and compensated sums took nearly half of the time of 60,000.
PIECE = 512


@dataclass(frozen=True)
class Certificate(FloatRecord):
    """Proved bounds of the optimum of a `MaxMarginProgram`.

    By weak duality the optimum lies in `[dual_objective, objective]`, so that
    `gap = objective / dual_objective - 1` bounds the relative error of both. All numbers are
    floats computed from the arrays handed to `certify` alone.

    Attributes
    ----------
    objective : float
        An upper bound: group norm of the primal point over its smallest margin, rounding errors
        of both at their worst; `inf` if the margin is not positive for certain.
    dual_objective : float
        A lower bound: `sum(lam) / max_g ||v_g(lam)||`, rounding errors at their worst; 0 without
        a dual point; `inf` if the blocks vanish exactly.
    gap : float
        `objective / dual_objective - 1`, rounded up; `inf` if either bound is missing.
    smallest_margin : float
        Smallest margin of the primal point as it was given.
    margin_rounding : float
        Most by which the smallest margin is below `smallest_margin` in exact arithmetic.
    separation_bound : float
        The largest entry of `v(lam)` relative to the sum of the absolute values of its terms,
        `max_jd |sum_n lam_n y_n Z_nj X_nd| / sum_n lam_n |Z_nj X_nd|`, rounded up; 1, which
        says nothing, if no blocks cancel. Whatever the coefficients V, some sample has

            y_n f(x_n) <= separation_bound * sum_jd |Z_nj X_nd V_jd|,

        as averaging over lam shows; 0 proves that no coefficients classify every sample correctly.
    separation_rounding : float
        The resolution of float64, 2^-52. A `separation_bound` at or below it counts as zero: to
        change every product Z_nj X_nd by this share of it, or less, makes data of these that no
        coefficients separate in exact arithmetic.
    """

    objective: float
    dual_objective: float
    gap: float
    smallest_margin: float
    margin_rounding: float
    separation_bound: float
    separation_rounding: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_number(name, value, finite=False)

    def proves_optimality(self, tol: float) -> bool:
        """True if both bounds agree to the relative tolerance `tol`; NaN proves nothing."""
        require_positive("tol", tol)
        return self.gap <= tol

    def proves_separability(self) -> bool:
        """True if every margin of the primal point is positive in exact arithmetic."""
        return math.isfinite(self.objective)

    def proves_inseparability(self) -> bool:
        """True if no coefficients have all margins above the resolution of their own terms."""
        return not self.proves_separability() and self.separation_bound <= self.separation_rounding


def certify(
    program: MaxMarginProgram, primal: Array | None = None, dual: Array | None = None
) -> Certificate:
    """Bound the optimum of `program` by any primal and dual point, whoever found them.

    With V scaled to smallest margin 1 and lam to largest block norm 1, weak duality says

        sum_n lam[n]  <=  optimum  <=  sum_g ||V_g||_F,

    and multipliers whose blocks `v_g(lam)` vanish prove that no coefficients separate. All three
    are computed with a bound of their rounding errors; sums that cancel are compensated.

    Parameters
    ----------
    program : MaxMarginProgram
    primal : (J, D) array, optional
        Coefficients V, at any scale.
    dual : (n,) array, optional
        Multipliers lam, at any scale.

    Returns
    -------
    Certificate
        With infinite gap where a point is missing, not finite, not positive or proves nothing.

    Raises
    ------
    ValueError
        If a point has the wrong shape.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, section 5.1 (weak duality);
    J. Farkas, "Theorie der einfachen Ungleichungen", 1902 (inseparability);
    N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1 (rounding).

    Examples
    --------
    <w, (3, 4)> >= 1 at the norm 1/5, for w = (3, 4) / 25:

    >>> import numpy as np
    >>> from solvers import GatedDesign, MaxMarginProgram, certify
    >>> one, group = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    >>> program = MaxMarginProgram(GatedDesign(np.array([[3.0, 4.0]]), one, group), one[0])
    >>> proved = certify(program, np.array([[3.0, 4.0]]), np.ones(1))
    >>> round(proved.objective, 9), round(proved.dual_objective, 9), proved.gap < 1e-14
    (0.2, 0.2, True)
    """
    require_instance("program", program, MaxMarginProgram)
    above = upper_bound(program, _point("primal", program, primal))
    return certificate_of(above, _lower_bound(program, _point("dual", program, dual)))


def certificate_of(above: tuple[float, float, float], below: tuple[float, float]) -> Certificate:
    """Return the certificate of a point and of multipliers.

    Parameters
    ----------
    above : (float, float, float)
        `objective`, `smallest_margin` and `margin_rounding`.
    below : (float, float)
        `dual_objective` and `separation_bound`.
    """
    gap = gap_between(above[0], below[0])
    return Certificate(above[0], below[0], gap, above[1], above[2], below[1], RESOLUTION)


def gap_between(upper: float, lower: float, scale: float | None = None) -> float:
    """Return the gap of two bounds of one optimum, over a scale.

    Infinite if either says nothing, and if the lower one is above the upper one beyond rounding:
    then one of them is wrong, and the two prove nothing.

    Parameters
    ----------
    upper, lower : float
    scale : float, optional
        Not negative, of bounds that do not contain their rounding: 0 for 0 / 0. By default the
        lower bound, which must be positive, of bounds that do; the gap is rounded up.

    Returns
    -------
    float

    Examples
    --------
    >>> gap_between(3.0, 2.0, 4.0), gap_between(2.0, 3.0, 4.0), gap_between(2.0, 3.0)
    (0.25, inf, inf)
    """
    if scale is None:
        known = upper < math.inf and 0 < lower < math.inf
        gap = upper / lower - 1 + rounding(4) if known else math.inf
        return gap if gap >= 0 else math.inf
    gap = upper - lower
    if not math.isfinite(gap) or gap < -CROSSED * scale or gap > 0 == scale:
        return math.inf
    return gap / scale if gap > 0 else 0.0


def _point(name: str, program: MaxMarginProgram, point: Array | None) -> Array | None:
    if point is None:
        return None
    require_real(name, point)
    return as_float64(point, like=program.y)


def upper_bound(program: MaxMarginProgram, V: Array | None) -> tuple[float, float, float]:
    """Upper bound of the optimum by V (J, D), its smallest margin and the error of the margin."""
    if V is None:
        return math.inf, -math.inf, 0.0
    design = program.design
    require_shape("primal", V, (int(design.Z.shape[1]), int(design.X.shape[1])))
    xp = array_namespace(design.Z)
    if not bool(xp.all(xp.isfinite(V))):
        return math.inf, -math.inf, 0.0
    unit = power_of_two(float_of(xp.max(xp.abs(V))))
    V = V / unit
    norm = norm_above(design, V, xp.sum)
    margins, lost = _enclosed_margins(program, V, norm)
    smallest, floor = float_of(xp.min(margins)), float_of(xp.min(margins - lost))
    objective = norm / floor * (1 + rounding(4)) if floor > 0 else math.inf
    return objective, unit * smallest, unit * (smallest - floor)


def _enclosed_margins(program: MaxMarginProgram, V: Array, norm: float) -> tuple[Array, Array]:
    """(n,) margins and what rounding may have added to each, as well as the smallest needs it."""
    design = program.design
    xp = array_namespace(design.Z)
    margins = program.margins(V)
    share = rounding(sum(V.shape) + 2)
    # |<x, V_j>| <= ||x|| ||V_j||: costs nothing and is enough for most.
    lost = share * norm * design.sample_sizes + TINY
    if _settled(margins, lost):
        return margins, lost
    # Of the samples alone that may have the smallest one.
    rows = xp.nonzero(margins - lost <= xp.min(margins + lost))[0]
    some = design.subset(rows)
    terms = matmul(abs(some.X), xp.abs(V).T) * xp.abs(some.Z)
    lost[rows] = share * xp.sum(terms, axis=1) + TINY
    if _settled(margins, lost):
        return margins, lost
    rows = xp.nonzero(margins - lost <= xp.min(margins + lost))[0]
    scores = enclose_scores(design.subset(rows), V)
    margins[rows], lost[rows] = program.y[rows] * scores.value, scores.radius
    return margins, lost


def _settled(margins: Array, lost: Array) -> bool:
    """True if the smallest margin is known to `CLOSE`, or known not to be positive."""
    xp = array_namespace(margins)
    ceiling = float_of(xp.min(margins + lost))
    return not (ceiling > 0 and float_of(xp.min(margins - lost)) < (1 - CLOSE) * ceiling)


def _lower_bound(program: MaxMarginProgram, lam: Array | None) -> tuple[float, float]:
    """Lower bound of the optimum by multipliers, and the separation bound."""
    if lam is None:
        return 0.0, math.inf
    require_shape("dual", lam, (program.n_samples,))
    xp = array_namespace(program.design.Z)
    peak = float_of(xp.max(lam))
    if not (float_of(xp.min(lam)) >= 0 and 0 < peak < math.inf):
        return 0.0, math.inf
    lam = lam / power_of_two(peak)  # the bounds do not depend on the scale, underflow does
    total = float_of(xp.sum(lam)) * (1 - rounding(program.n_samples))
    rows = xp.nonzero(lam > 0)[0]
    if 2 * rows.shape[0] <= program.n_samples:
        program, lam = program.subset(rows), lam[rows]
    largest, share = _cancellation(program, lam)
    if not math.isfinite(largest):
        return 0.0, share
    return (total / largest * (1 - rounding(4)) if largest > 0 else math.inf), share


def _cancellation(program: MaxMarginProgram, lam: Array) -> tuple[float, float]:
    """Largest block norm, rounded up, and the largest share of its terms that an entry keeps."""
    design, xp = program.design, array_namespace(lam)
    blocks, n_roundings = _blocks(program, lam)
    largest = norm_above(design, blocks, xp.max)
    # By the triangle inequality no block's norm is off by more than the norms of its terms are.
    lost = rounding(n_roundings) * program.data_scale(lam) + TINY
    if lost <= CLOSE * largest:
        return (largest + lost) * (1 + rounding(1)), 1.0
    enclosed = enclose_adjoint(design, lam * program.y)
    sizes = xp.abs(enclosed.value) + enclosed.radius
    terms = _absolute(design).adjoint(lam)
    # Terms that underflow leave a radius of `TINY`, and so a share of one.
    share = float_of(xp.max(sizes / xp.clip(terms, min=TINY)))
    return norm_above(design, sizes, xp.max), share * (1 + rounding(program.n_samples + 4))


def _blocks(program: MaxMarginProgram, lam: Array) -> tuple[Array, int]:
    """Blocks `v(lam)`, and the number of roundings between a term and its sum.

    Summed at once there may be one a sample, whatever the order; summed in pieces of `PIECE`
    samples there are no more than in a piece and in the sum over pieces.
    """
    n = program.n_samples
    if n <= 2 * PIECE:
        return program.dual_blocks(lam), n + 2
    xp = array_namespace(lam)
    total, n_pieces = 0.0, 0
    for start in range(0, n, PIECE):
        rows = xp.arange(start, min(start + PIECE, n), device=lam.device)
        total = total + program.subset(rows).dual_blocks(lam[rows])
        n_pieces += 1
    return total, PIECE + n_pieces + 2


def blocks_cancel(program: MaxMarginProgram, lam: Array) -> bool:
    """True if `lam`, non-negative, proves inseparability; quick where plain sums say no."""
    xp = array_namespace(lam)
    terms = _absolute(program.design).adjoint(lam)
    known = RESOLUTION + rounding(program.n_samples + 2)
    if bool(xp.any(xp.abs(program.dual_blocks(lam)) > known * terms + TINY)):
        return False
    return certify(program, dual=lam).proves_inseparability()


def _absolute(design: GatedDesign) -> GatedDesign:
    """Design of the absolute values, whose adjoint sums the sizes of the terms."""
    return replace(design, X=abs(design.X), Z=abs(design.Z))


def norm_above(design: GatedDesign, V: Array, reduce: Callable[[Array], Array]) -> float:
    """Sum or maximum of the group norms of `V`, rounded up."""
    n_operations = sum(V.shape) + design.n_groups + 6
    return float_of(reduce(design.group_norms(V))) * (1 + rounding(n_operations))
