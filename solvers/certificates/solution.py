"""Solutions of max-margin programs, each with its certificate inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from ..numerics.arrays import Array, DenseArray, array_namespace, float_of
from ..numerics.summation import power_of_two
from ..programs.max_margin import MaxMarginProgram
from .answer import Answer
from .max_margin import Certificate, certify
from .status import Status


@dataclass(frozen=True, eq=False)
class Solution(Answer):
    """Answer of a solver, scaled to feasibility and certified.

    Attributes
    ----------
    primal : (J, D) array
        Coefficients with smallest margin 1 (if the data were separated), of the kind and on
        the device of the program's arrays.
    dual : (n,) array
        Multipliers with largest block norm 1; with sum 1 if they prove inseparability. Where the
        rounding of these scales would cost the status, both are scaled by powers of two instead:
        margins from 1 to 2, block norms or sum from 1/2 to 1.
    status : Status
    certificate : Certificate
        Recomputed from `primal` and `dual`.
    tol : float
        The gap that was asked for.
    iterations : int
        Iterations of the solver, summed over its inner runs; 0 if it does not tell.
    seconds : float
        Wall-clock time of the solve.
    solver : str
        Name under which the solver was called.
    """

    ADVICE: ClassVar[Mapping[Status, str]] = MappingProxyType(
        {
            Status.SOLVED: (
                "solved: the duality gap, recomputed from the returned arrays, is within tolerance"
            ),
            Status.INACCURATE: (
                "separable, but the certified gap is above the tolerance. The bounds hold as "
                "reported: raise `tol` to what they support, scale the features, or try another "
                "solver"
            ),
            Status.FAILED: (
                "failed: the solver returned no point that could be certified. "
                "Allow more iterations or use solver='interior-point'"
            ),
        }
    )

    primal: DenseArray
    dual: DenseArray
    status: Status
    certificate: Certificate
    tol: float
    iterations: int
    seconds: float
    solver: str


def conclude(
    program: MaxMarginProgram,
    primal: Array | None,
    dual: Array | None,
    *,
    tol: float,
    iterations: int,
    seconds: float,
    solver: str,
    known: Certificate | None = None,
) -> Solution:
    """Scale both points to feasibility, certify them and derive the status that they prove.

    Parameters
    ----------
    program : MaxMarginProgram
    primal : (J, D) array or None
        Coefficients at any scale; None, which becomes zeros, where there are none.
    dual : (n,) array or None
        Multipliers at any scale, clipped at zero: rounding may leave them slightly below.
    tol : float
        The gap that was asked for.
    iterations, seconds, solver
        How the points were found.
    known : Certificate, optional
        That of the points as given, if it is at hand; that of the scaled ones is computed here in
        any case.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If a point has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import GatedDesign, MaxMarginProgram, conclude
    >>> one, group = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    >>> program = MaxMarginProgram(GatedDesign(np.array([[3.0, 4.0]]), one, group), one[0])
    >>> found = conclude(program, np.array([[3.0, 4.0]]), np.ones(1), tol=1e-8,
    ...                  iterations=0, seconds=0.0, solver="by hand")
    >>> found.status.name, found.primal.round(6).tolist()
    ('SOLVED', [[0.12, 0.16]])
    """
    xp = array_namespace(program.y)
    failed = primal is None and dual is None
    if primal is None:
        primal = program.dual_blocks(xp.zeros_like(program.y))
    dual = xp.zeros_like(program.y) if dual is None else xp.clip(dual, min=0.0)
    margin, total, scaled = feasible(
        lambda margin, total: certify(program, primal / margin, dual / total),
        known or certify(program, primal, dual),
        float_of(xp.sum(dual)),
        tol,
    )
    return Solution(
        primal=primal / margin,
        dual=dual / total,
        status=Status.FAILED if failed else status_of(scaled, tol),
        certificate=scaled,
        tol=tol,
        iterations=iterations,
        seconds=seconds,
        solver=solver,
    )


# How far above 1 the smallest margin, and off the bound the sum of multipliers, of points may be
# that are left as they are.
FEASIBLE = 1e-12


def feasible(
    certified: Callable[[float, float], Certificate], known: Certificate, total: float, tol: float
) -> tuple[float, float, Certificate]:
    """Return divisors that bring points to feasibility, and the certificate of the scaled ones.

    Points that are feasible, and no larger than they need be, stay as they are.

    Parameters
    ----------
    certified : callable
        Certificate of the points over a divisor of the primal and one of the dual point.
    known : Certificate
        That of the points as they are.
    total : float
        The sum of the multipliers.
    tol : float
        The gap of the status that scaling must not cost.
    """
    margin, total = 1.0, total or 1.0
    if known.proves_separability():
        margin = known.smallest_margin
        if 0 < known.dual_objective < math.inf:
            total /= known.dual_objective
        if 1 <= margin <= 1 + FEASIBLE and abs(total - 1) <= FEASIBLE:
            return 1.0, 1.0, known
    scaled = certified(margin, total)
    if status_of(scaled, tol) is not status_of(known, tol):
        # Where terms cancel, the rounding of this scaling spoils what powers of two leave exact.
        margin, total = power_of_two(margin) / 2, power_of_two(total)
        scaled = certified(margin, total)
    return margin, total, scaled


def status_of(certificate: Certificate, tol: float) -> Status:
    """Status that a certificate proves at this tolerance."""
    if certificate.proves_optimality(tol):
        return Status.SOLVED
    if certificate.proves_inseparability():
        return Status.NOT_SEPARABLE
    if certificate.proves_separability():
        return Status.INACCURATE
    return Status.UNDECIDED


def support_vectors(program: MaxMarginProgram, primal: Array, dual: Array) -> Array:
    """Tell support vectors: samples whose multiplier over the largest one exceeds their slack.

    An interior point leaves every multiplier positive and every slack too. On the central path
    their product is the same for all samples, so the larger of the two, each in its own units
    (the largest multiplier, the smallest margin), says on which side a sample ends.

    Parameters
    ----------
    program : MaxMarginProgram
    primal : (J, D) array
        Coefficients.
    dual : (n,) array
        Multipliers, none negative.

    Returns
    -------
    (n,) array of bool

    References
    ----------
    S. J. Wright, "Primal-Dual Interior-Point Methods", 1997, chapter 5 (the central path).

    Examples
    --------
    <w, (1, 0)> >= 1 holds with margin 1, <w, (3, 0)> >= 1 with slack:

    >>> import numpy as np
    >>> from solvers import GatedDesign
    >>> design = GatedDesign(np.array([[1.0], [3.0]]), np.ones((2, 1)), np.zeros(1, dtype=np.int64))
    >>> program = MaxMarginProgram(design, np.ones(2))
    >>> support_vectors(program, np.ones((1, 1)), np.array([1.0, 1e-6])).tolist()
    [True, False]
    """
    return supports(program.margins(primal), dual)


def supports(margins: Array, dual: Array) -> Array:
    """Tell support vectors as `support_vectors` does, by margins that are at hand.

    Parameters
    ----------
    margins, dual : (n,) arrays
        Margins of the coefficients, and multipliers, none negative.

    Returns
    -------
    (n,) array of bool
    """
    xp = array_namespace(dual)
    size = float_of(xp.max(xp.abs(margins)))
    smallest = max(float_of(xp.min(margins)), 2.0**-52 * size)
    largest = float_of(xp.max(dual))
    if not (smallest > 0 and largest > 0):
        return dual > 0
    return dual / largest > margins / smallest - 1
