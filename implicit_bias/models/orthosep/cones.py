"""Two max-margin vectors, each inactive on the other class: beyond orthogonal separability."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import nnls

from ..._support.doors import door
from ..._support.solve import (
    ArrayLike,
    ConstrainedCertificate,
    Status,
    gap_between,
    require_tolerance,
    worst_status,
)
from ...data.arrays import Floats, checked_data
from ...limits.result import Result, proved

# Multipliers below this share of the largest are taken for zeros before the last solve.
_ZERO = 1e-10
# Cosines with the other class above this are no rounding: about 1e-15 is seen of solutions.
_INACTIVE = 1e-8


class ConePair(Result):
    """The solutions of `solve_cone_pair`; arrays are read-only.

    Attributes
    ----------
    w_plus, w_minus : (D,) arrays
        The solution of each program; NaN where none was found.
    multipliers : (2, n) array
        Dual variables of both programs, at block norm 1: `w / ||w||` is the sum of the samples of
        its own class times these, less that of the others. NaN where none was found.
    certificates : pair of ConstrainedCertificate
        Bounds of `||w_plus||` and of `||w_minus||`; `violation` is the largest product with a
        sample of the other class, at unit length of both. The gap is infinite without a solution.
    certificate : ConstrainedCertificate
        Both programs as one, whose optimum is the sum of theirs: the larger violation and the
        smaller margin.
    status : Status
        SOLVED, INACCURATE, or UNDECIDED where a vector was not found.
    tol : float
        The relative duality gap that was required.

    Examples
    --------
    >>> pair = ib.limits.solve_cone_pair([[1.0, 0.5], [0.5, 1.0]], [1, -1])
    >>> pair.status.name, round(pair.objective, 6)
    ('SOLVED', 2.981424)
    """

    ADVICE: ClassVar = {
        Status.UNDECIDED: "undecided: for one class at least no vector was found that gives its "
        "samples positive margins and is inactive on the others; that there is none is not proved. "
        "`is_separable` tells whether one hyperplane separates the classes"
    }
    RECORD = ("excess", "n_samples")

    w_plus: Floats
    w_minus: Floats
    multipliers: Floats
    certificates: tuple[ConstrainedCertificate, ConstrainedCertificate]
    certificate: ConstrainedCertificate
    status: Status
    tol: float

    objective = proved(
        "objective",
        "`||w_plus|| + ||w_minus||`: `1/2 ||theta||^2` of a network of these two neurons.",
    )

    @property
    def excess(self) -> float:
        """Distance of the pair from a KKT point of a network, 0 if it is one.

        The most by which the multiplier of a sample in the program of the other class exceeds that
        in its own, over the largest multiplier.
        """
        own, other = self.multipliers.max(axis=0), self.multipliers.min(axis=0)
        return float(np.maximum(np.max(-other - own) / np.max(own), 0.0)) + 0.0

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.multipliers.shape[1])


class _Solved(NamedTuple):
    w: Floats
    own: Floats
    other: Floats
    certificate: ConstrainedCertificate


@door()
def solve_cone_pair(X: ArrayLike, y: ArrayLike, *, tol: float = 1e-8) -> ConePair:
    r"""Solve for two max-margin vectors that are each inactive on the samples of the other class.

        w_plus  = argmin ||w||   s.t.  <w, x_i> >= 1 where y_i = +1,  <w, x_i> <= 0 where y_i = -1

    and `w_minus` with the classes exchanged. Two-layer ReLU networks that begin near zero were
    observed to converge to them on data that are separable, but not orthogonally. On orthogonally
    separable data the second condition holds by itself, and these are the two vectors of
    `solve_orthosep`.

    Parameters
    ----------
    X : (n, D) real array
        Inputs.
    y : (n,) array
        Labels -1 and +1; both must occur.
    tol : float
        Relative duality gap that is required, in (0, 1).

    Returns
    -------
    ConePair
        With a certificate for each program, which is solved in float64 by an active-set method;
        call `.require()` to raise unless the status is `SOLVED`.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, there is one class only, or `tol` is out of
        range.

    Notes
    -----
    The network `relu(<w_plus, x>) - relu(<w_minus, x>)`, balanced, is a KKT point of the margin
    problem of two-layer ReLU networks, in Clarke's sense, if `excess` is 0. Let lam be the
    multipliers of a sample in the program of its own class and mu in the other, both at block norm
    1. Stationarity of the first neuron reads

        w_plus / ||w_plus|| = sum_own lam_i x_i - sum_other s_j lam_j x_j,   s_j in [0, 1],

    where s_j may be other than 0 only at a kink, `<w_plus, x_j> = 0`: so `mu_j = s_j lam_j`, and
    the condition is mu <= lam. No theorem says that gradient flow converges to this point.

    Examples
    --------
    >>> pair = ib.limits.solve_cone_pair([[1.0, 0.5], [0.5, 1.0]], [1, -1])
    >>> np.round(pair.w_plus, 6).tolist(), pair.excess
    ([1.333333, -0.666667], 0.0)
    """
    require_tolerance(tol)
    X, y = checked_data(X, y)
    if len(set(y)) < 2:
        raise ValueError("`y` must hold both labels, -1 and +1: with one class see solve_orthosep")
    solved = [_solve(X[y == label], X[y != label]) for label in (1.0, -1.0)]
    multipliers = np.empty((2, len(y)))
    for row, (label, part) in enumerate(zip((1.0, -1.0), solved, strict=True)):
        multipliers[row, y == label], multipliers[row, y != label] = part.own, -part.other
    plus, minus = solved
    certificates = (plus.certificate, minus.certificate)
    return ConePair(
        w_plus=plus.w,
        w_minus=minus.w,
        multipliers=multipliers,
        certificates=certificates,
        certificate=_joined(*certificates),
        status=worst_status(_status(one, tol) for one in certificates),
        tol=tol,
    )


def _joined(a: ConstrainedCertificate, b: ConstrainedCertificate) -> ConstrainedCertificate:
    return _certificate(
        a.objective + b.objective,
        a.dual_objective + b.dual_objective,
        max(a.violation, b.violation),
        float(np.minimum(a.smallest_margin, b.smallest_margin)),
    )


def _status(certificate: ConstrainedCertificate, tol: float) -> Status:
    if not math.isfinite(certificate.objective):
        return Status.UNDECIDED
    solved = certificate.proves_optimality(tol, _INACTIVE)
    return Status.SOLVED if solved else Status.INACCURATE


def _solve(own: Floats, other: Floats) -> _Solved:
    """Solve the program of one class.

    Its dual is a least-squares problem: with `v = own' lam - other' mu`, minimise
    `||v||^2 + (1 - sum lam)^2` over nonnegative (lam, mu). There `<v, x> >= rho := 1 - sum lam`
    on own samples and `<= 0` on others, so that `v / rho` is the solution.
    """
    scale = float(np.max(np.linalg.norm(own, axis=1), initial=0.0)) or 1.0
    signed = np.concatenate([own, -other]) / scale
    asked = np.repeat([1.0, 0.0], [len(own), len(other)])
    target = np.append(np.zeros(own.shape[1]), 1.0)
    weights, _ = nnls(np.vstack([signed.T, asked]), target, maxiter=20 * len(asked))
    if not weights.any():
        return _none(own, other)
    tight = weights > _ZERO * weights.max()
    # The active samples at equality, the rest being slack: a solution to rounding.
    w = np.linalg.lstsq(signed[tight], asked[tight], rcond=None)[0]
    multipliers = np.zeros(len(asked))
    multipliers[tight] = np.clip(np.linalg.lstsq(signed[tight].T, w, rcond=None)[0], 0.0, None)
    length, block = float(np.linalg.norm(w)), float(np.linalg.norm(signed.T @ multipliers))
    products, norms = other @ w, np.linalg.norm(other, axis=1) * length
    cosines = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    smallest, violation = float(np.min(own @ w)) / scale, float(np.max(cosines, initial=0.0))
    # Where there is no such vector least squares splits the difference.
    if not (smallest > 0 and violation < _INACTIVE and block > 0):
        return _none(own, other)
    certificate = _certificate(
        length / smallest / scale, float(asked @ multipliers) / block / scale, violation, smallest
    )
    multipliers = multipliers / (block * scale)
    return _Solved(w / scale, multipliers[: len(own)], multipliers[len(own) :], certificate)


def _certificate(
    objective: float, dual_objective: float, violation: float, smallest: float
) -> ConstrainedCertificate:
    gap = gap_between(objective, dual_objective, dual_objective)
    return ConstrainedCertificate(objective, dual_objective, gap, violation, smallest)


def _none(own: Floats, other: Floats) -> _Solved:
    nothing = ConstrainedCertificate(math.inf, 0.0, math.inf, math.inf, math.nan)
    w, lam, mu = (np.full(size, math.nan) for size in (own.shape[1], len(own), len(other)))
    return _Solved(w, lam, mu, nothing)
