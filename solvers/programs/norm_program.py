"""Margin programs of any norm, with equalities: bounds that any points prove, rounding included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..certificates.max_margin import CLOSE, Certificate, certificate_of
from ..certificates.solution import Solution, feasible, status_of
from ..certificates.status import Status
from ..norms.norm import Norm
from ..numerics.checks import require_instance, require_shape
from ..numerics.summation import (
    TINY,
    Enclosure,
    enclose_adjoint,
    enclose_scores,
    power_of_two,
    rounding,
)
from .design import GatedDesign
from .images import Floats, Image, Rows, dense_rows


@dataclass(frozen=True, eq=False)
class NormProgram:
    r"""Least norm of coefficients whose margins are at least one, and some exactly zero.

    .. math:: \min N(B) \quad \text{s.t.} \quad A(B) \ge 1, \; E(B) = 0

    Its dual, with N* the dual norm and multipliers nu of any sign:

    .. math:: \max \sum_i \lambda_i \quad \text{s.t.} \quad \lambda \ge 0, \;
              N^*(A'\lambda + E'\nu) \le 1

    Parameters
    ----------
    image : Image
        A: `Rows`, `GatedRows` or `RelativeMargins`, on NumPy arrays.
    norm : Norm
    equalities : Rows, optional
        E, on coefficients of the same shape.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, section 5.1.6 (duals of norms).

    Examples
    --------
    The least largest entry of w with <w, (3, 1)> >= 1:

    >>> import numpy as np
    >>> from solvers import Norm, NormProgram, Rows, certify_norm
    >>> program = NormProgram(Rows(np.array([[3.0, 1.0]])), Norm.of("linf"))
    >>> proved = certify_norm(program, np.array([1.0, 1.0]), np.ones(1))
    >>> round(proved.objective, 9), round(proved.dual_objective, 9)
    (0.25, 0.25)
    """

    image: Image
    norm: Norm
    equalities: Rows | None = None

    def __post_init__(self) -> None:
        require_instance("norm", self.norm, Norm)
        if self.equalities is not None:
            require_instance("equalities", self.equalities, Rows)
            shape = (self.equalities.n_rows, *self.image.shape)
            require_shape("equalities", self.equalities.matrix, shape, "coefficients as the image")

    @property
    def n_equalities(self) -> int:
        """Number of rows of E."""
        return 0 if self.equalities is None else self.equalities.n_rows

    def dual_point(self, lam: Floats, nu: Floats | None = None) -> Floats:
        """Coefficients `A' lam + E' nu`, whose dual norm is to be at most one."""
        point = self.image.adjoint(lam)
        return (
            point if self.equalities is None or nu is None else point + self.equalities.adjoint(nu)
        )


class NormPoint(NamedTuple):
    """What a solver found at any scale: coefficients B, multipliers, and its iterations."""

    B: Floats | None
    lam: Floats | None
    nu: Floats | None = None
    iterations: int = 0


@dataclass(frozen=True, eq=False)
class NormSolution(Solution):
    """Answer to a `NormProgram`, scaled to feasibility and certified.

    Attributes
    ----------
    primal : array
        Coefficients in the image's shape, of smallest margin 1 if they separate.
    dual : (m,) array
        Multipliers lam, of dual norm 1; with sum 1 if they prove inseparability.
    equality_dual : (e,) array
        Multipliers nu.
    status : Status
    certificate : Certificate
        Recomputed from these.
    tol, iterations, seconds, solver
        The gap asked for and how the solve went.
    """

    primal: Floats
    dual: Floats
    equality_dual: Floats = field(kw_only=True)


def certify_norm(
    program: NormProgram,
    primal: Floats | None = None,
    dual: Floats | None = None,
    equality_dual: Floats | None = None,
) -> Certificate:
    r"""Bound the optimum of a program by any points, whoever found them.

    .. math:: \frac{\sum \lambda}{N^*(A'\lambda + E'\nu)} \le \text{optimum}
              \le \frac{N(B)}{\min A(B)}

    A proof of inseparability does not mention the norm: one serves all. Equalities that B violates
    are charged: some B' with E(B') = 0 lies within `||E(B)|| / sigma`, sigma the least singular
    value of independent rows of E; rows dependent to 1e-10 of the largest count as dependent.

    Parameters
    ----------
    program : NormProgram
    primal : array of the image's shape, optional
        Coefficients at any scale.
    dual : (m,) array, optional
        Multipliers at any scale, none negative.
    equality_dual : (e,) array, optional
        Multipliers of the equalities, at the scale of `dual`.

    Returns
    -------
    Certificate
        With infinite gap where a point is missing, not finite, not positive or proves nothing.

    Raises
    ------
    ValueError
        If a point has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Norm, NormProgram, Rows, certify_norm
    >>> rows = Rows(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    >>> certify_norm(NormProgram(rows, Norm.of("linf")), dual=np.ones(2)).proves_inseparability()
    True
    """
    require_instance("program", program, NormProgram)
    return certificate_of(_upper_bound(program, primal), _lower_bound(program, dual, equality_dual))


def best_point(program: NormProgram, points: Sequence[NormPoint]) -> NormPoint:
    """Return the coefficients and the multipliers of the best bounds, whichever points have them.

    Parameters
    ----------
    program : NormProgram
    points : sequence of NormPoint
        Of solvers of this program.

    Returns
    -------
    NormPoint
        With the iterations of all. Where none separates, with the best proof of it.
    """
    proved = [certify_norm(program, one.B, one.lam, one.nu) for one in points]
    above = min(range(len(points)), key=lambda k: proved[k].objective)
    separated = proved[above].proves_separability()
    below = max(
        range(len(points)),
        key=lambda k: proved[k].dual_objective if separated else -proved[k].separation_bound,
    )
    iterations = sum(one.iterations for one in points)
    return NormPoint(points[above].B, points[below].lam, points[below].nu, iterations)


def conclude_norm(
    program: NormProgram,
    primal: Floats | None,
    dual: Floats | None,
    equality_dual: Floats | None = None,
    *,
    tol: float,
    iterations: int,
    seconds: float,
    solver: str,
) -> NormSolution:
    """Scale points to feasibility, certify them and derive the status that they prove.

    Parameters
    ----------
    program : NormProgram
    primal : array or None
        Coefficients at any scale.
    dual : (m,) array or None
        Multipliers at any scale, clipped at zero.
    equality_dual : (e,) array or None
    tol, iterations, seconds, solver
        The gap asked for and how the points were found.

    Returns
    -------
    NormSolution
    """
    failed = primal is None and dual is None
    primal = np.zeros(program.image.shape) if primal is None else primal
    dual = np.zeros(program.image.n_rows) if dual is None else np.clip(dual, 0.0, None)
    nu = np.zeros(program.n_equalities) if equality_dual is None else equality_dual
    margin, total, scaled = feasible(
        lambda margin, total: certify_norm(program, primal / margin, dual / total, nu / total),
        certify_norm(program, primal, dual, nu),
        float(dual.sum()),
        tol,
    )
    return NormSolution(
        primal=primal / margin,
        dual=dual / total,
        equality_dual=nu / total,
        status=Status.FAILED if failed else status_of(scaled, tol),
        certificate=scaled,
        tol=tol,
        iterations=iterations,
        seconds=seconds,
        solver=solver,
    )


def _upper_bound(program: NormProgram, B: Floats | None) -> tuple[float, float, float]:
    """Upper bound of the optimum by B, its smallest margin and what that may lack."""
    if B is None:
        return math.inf, -math.inf, 0.0
    image = program.image
    require_shape("primal", B, image.shape)
    if not np.all(np.isfinite(B)):
        return math.inf, -math.inf, 0.0
    unit = power_of_two(float(np.abs(B).max()))
    B = B / unit
    margins, lost = _margins(image, B)
    off = _distance_to_equalities(program.equalities, B)
    norm = program.norm.above(B)
    if off > 0:
        # Some B' within `off`: its norm and margins by the largest that each can change.
        kappa = math.sqrt(B.size)  # no norm of the table is above kappa times the Frobenius one
        norm += kappa * off
        lost = lost + off * _row_sizes(image) * (1 + rounding(4))
    smallest, floor = float(margins.min()), float((margins - lost).min())
    objective = norm / floor * (1 + rounding(6)) if floor > 0 else math.inf
    return objective, unit * smallest, unit * (smallest - floor)


def _margins(image: Image, B: Floats) -> tuple[Floats, Floats]:
    """(m,) margins of B, no entry above one, and what rounding may have added to each."""
    margins = image.scores(B)
    lost = rounding(image.n_roundings[0]) * image.absolute().scores(np.abs(B)) + TINY
    ceiling = float((margins + lost).min())
    if not (ceiling > 0 and float((margins - lost).min()) < (1 - CLOSE) * ceiling):
        return margins, lost
    rows = np.flatnonzero(margins - lost <= ceiling)
    part = image.taken(rows).standard()
    exact = enclose_scores(part.design, B.reshape(int(part.design.Z.shape[1]), -1))
    margins, lost = margins.copy(), lost.copy()
    margins[rows], lost[rows] = part.y * exact.value, exact.radius
    return margins, lost


def _row_sizes(image: Image) -> Floats:
    """Upper bounds (m,) of the Frobenius norms of the rows of an image."""
    design = image.standard().design
    whole = np.sqrt((design.X**2).sum(axis=1) * (design.Z**2).sum(axis=1))
    return np.asarray(whole * (1 + rounding(sum(design.X.shape) + sum(design.Z.shape))))


# Singular values of E below this share of the largest are those of dependent rows.
DEPENDENT = 1e-10


def _distance_to_equalities(equalities: Rows | None, B: Floats) -> float:
    """Upper bound of the Frobenius distance of B to the zeros of E's independent rows."""
    if equalities is None:
        return 0.0
    E, b = equalities.flat, B.ravel()
    length = rounding(E.shape[1] + 2) * (np.abs(E) @ np.abs(b)) + np.abs(E @ b)
    d = float(np.linalg.norm(length)) * (1 + rounding(E.shape[0] + 4)) + TINY
    s = np.linalg.svd(E, compute_uv=False)
    kept = s[s > DEPENDENT * s[0]]
    if len(kept) == 0:
        return 0.0
    # A computed singular value is off by rounding of the largest at most.
    least = float(kept[-1]) - rounding(8 * sum(E.shape)) * float(s[0])
    return d / least * (1 + rounding(4)) if least > 0 else math.inf


def _lower_bound(
    program: NormProgram, lam: Floats | None, nu: Floats | None
) -> tuple[float, float]:
    """Lower bound of the optimum by multipliers, and the separation bound."""
    if lam is None:
        return 0.0, math.inf
    image, m = program.image, program.image.n_rows
    require_shape("dual", lam, (m,))
    nu = np.zeros(program.n_equalities) if nu is None else nu
    require_shape("equality_dual", nu, (program.n_equalities,))
    peak = max(float(lam.max()), float(np.abs(nu).max(initial=0.0)))
    if not (float(lam.min()) >= 0 and float(lam.max()) > 0 and peak < math.inf):
        return 0.0, math.inf
    unit = power_of_two(peak)
    lam, nu = lam / unit, nu / unit
    total = float(lam.sum()) * (1 - rounding(m))
    dual = program.norm.dual
    steps = image.n_roundings[1] + program.n_equalities + 2
    terms = image.absolute().adjoint(lam)
    if program.equalities is not None:
        terms = terms + program.equalities.absolute().adjoint(np.abs(nu))
    point, lost = program.dual_point(lam, nu), rounding(steps) * terms + TINY
    largest = dual.above(point, lost)
    if largest - dual.value(point) <= CLOSE * largest:
        return total / largest * (1 - rounding(4)), 1.0
    exact = _enclosed_point(program, lam, nu)
    sizes = np.abs(exact.value) + exact.radius
    # Terms that underflow leave a radius of `TINY`, and so a share of one.
    share = float(np.max(sizes / np.maximum(terms, TINY))) * (1 + rounding(m + 8))
    if not np.any(sizes):
        return math.inf, share
    return total / dual.above(exact.value, exact.radius) * (1 - rounding(4)), share


def _enclosed_point(program: NormProgram, lam: Floats, nu: Floats) -> Enclosure:
    """Enclose `A' lam + E' nu` as if in twice the precision."""
    held = np.flatnonzero(lam)
    standard = program.image.taken(held).standard()
    design, weights = standard.design, lam[held] * standard.y
    if program.equalities is not None:
        rows = np.concatenate([dense_rows(program.image), program.equalities.flat])
        design = GatedDesign(rows, np.ones((len(rows), 1)), np.zeros(1, dtype=np.int64))
        weights = np.concatenate([lam, nu])
    found = enclose_adjoint(design, weights)
    shape = program.image.shape
    return Enclosure(found.value.reshape(shape), found.radius.reshape(shape))
