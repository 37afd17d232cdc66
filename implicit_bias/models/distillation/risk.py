"""How well a student imitates its teacher: risk on new inputs, its bounds, and angles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._solve import require_count, require_fraction, require_positive, to_numpy
from ...data.arrays import Floats
from ...quantities.formatting import degrees
from ...quantities.measured import Measured, quantity

__all__ = [
    "AngleTail",
    "LearningCurve",
    "RiskBound",
    "angle",
    "angle_tail",
    "error_angle",
    "learning_curve",
    "polynomial_risk_bound",
    "polynomial_tail",
    "risk_bound",
    "transfer_risk",
]

Tail = Callable[[Floats], Floats]
# Every beta gives a bound, so the least over a grid is one too: fine enough that a second one finds
# the least to 1e-6 of itself.
_ANGLES = 2001


def angle(u: ArrayLike, v: ArrayLike) -> float:
    """The angle between two vectors (D,) in radians, 0 to pi; NaN where one of them is 0."""
    a, b = (np.asarray(to_numpy(w), dtype=np.float64) for w in (u, v))
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not all(size > 0 for size in sizes):
        return math.nan
    a, b = a / sizes[0], b / sizes[1]
    # Kahan's formula: right to rounding for small angles, where an arc cosine has half the digits.
    return float(2 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def transfer_risk(w: ArrayLike, teacher: ArrayLike, X: ArrayLike) -> float:
    """Share of inputs X (m, D) that student and teacher put into different classes.

    The class is whether the score is at least 0; of K classes, weights (K, D), the largest score's.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (5.4), on a sample of inputs.
    """
    inputs = np.asarray(to_numpy(X), dtype=np.float64)
    labels = [_classes(inputs @ np.asarray(to_numpy(v), dtype=np.float64).T) for v in (w, teacher)]
    return float(np.mean(labels[0] != labels[1]))


def _classes(scores: Floats) -> Any:
    return scores >= 0 if scores.ndim == 1 else scores.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class AngleTail:
    """`p(theta)`, the share of inputs at an unsigned angle of at least theta with the teacher.

    Attributes
    ----------
    angles : (m,) array
        Those of the inputs, ascending, in [0, pi/2].
    """

    angles: Floats

    def __call__(self, theta: ArrayLike) -> Floats:
        """(...) shares at angles (...)."""
        return np.asarray(1 - np.searchsorted(self.angles, theta, side="left") / len(self.angles))


def angle_tail(X: ArrayLike, teacher: ArrayLike) -> AngleTail:
    """The empirical `p(theta)` of inputs (m, D) and a teacher (D,).

    An input of 0, which has no angle and teaches nothing, counts as one at a right angle.

    Raises
    ------
    ValueError
        If there is no input, or the teacher is 0.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (5.17).
    """
    inputs, w = (np.asarray(to_numpy(a), dtype=np.float64) for a in (X, teacher))
    if not len(inputs) or not w.any():
        raise ValueError("`X` must have a row and `teacher` must not be 0: there is no angle")
    along = np.abs(inputs @ w) / np.linalg.norm(w)
    across = np.sqrt(np.maximum((inputs * inputs).sum(axis=1) - along**2, 0.0))
    angles = np.where(inputs.any(axis=1), np.arctan2(across, along), math.pi / 2)
    return AngleTail(np.sort(angles))


def polynomial_tail(kappa: float) -> Tail:
    """`p(theta) = (1 - 2 theta / pi)^kappa`, the angular alignment of degree kappa > 0."""
    require_positive("kappa", kappa)
    return lambda theta: np.clip(1 - 2 * np.asarray(theta) / math.pi, 0.0, 1.0) ** kappa


class RiskBound(Measured, eq=True):
    """Upper bounds of the expected transfer risk of a student on n samples."""

    value: float = quantity(
        "bound of the expected risk, as printed",
        ".2%",
        doc="Least value of `p(beta) + p(pi/2 - delta - beta)^n`, as it is printed.",
    )
    beta: float = quantity("at beta, degrees", degrees, doc="The beta of `value`, in radians.")
    sharper: float = quantity(
        "  as its proof gives it",
        column="risk_bound",
        doc="Least value of `p(beta) + (1 - p(beta)) p(pi/2 - delta - beta)^n`, which the proof "
        "gives.",
    )


def risk_bound(p: Tail, n: int, *, delta: float = 0.0) -> RiskBound:
    """Bound the transfer risk that students on n samples, fewer than inputs, have on average.

    Parameters
    ----------
    p : callable
        `p(theta)` of arrays of angles in [0, pi/2]: `angle_tail` of a sample, which makes the
        bound an estimate of itself, or a tail that is known, as `polynomial_tail`.
    n : int
    delta : float
        By how much students are off the projection `w_hat(X)` at most, as an angle in
        [0, pi/2): `error_angle` of a relative error.

    Raises
    ------
    ValueError
        If `n` or `delta` is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem 5.3, and its last line of proof for
    the sharper one; theorem D.4, where the error has to be a share of ||w_hat(X)||: a length that
    is the same for all X is no such share, since ||w_hat(X)|| comes as near to 0 as one likes.
    """
    require_count("n", n)
    if not 0 <= delta < math.pi / 2:
        raise ValueError(f"`delta` must lie in [0, pi/2), got {delta}")
    quarter = math.pi / 2 - delta

    def terms(beta: Floats) -> Floats:
        """Return both terms of the bound at an angle."""
        return np.stack([p(beta), p(quarter - beta) ** n])

    beta = _least(lambda b: terms(b).sum(axis=0), p, quarter)
    far, near = terms(_least(lambda b: _sharper(*terms(b)), p, quarter))
    return RiskBound(float(terms(beta).sum()), float(beta), float(_sharper(far, near)))


def _sharper(far: Floats, near: Floats) -> Floats:
    return far + (1 - far) * near


def _least(bound: Tail, p: Tail, largest: float) -> Floats:
    """() where a bound is least in [0, largest]: on a grid, then on one between its neighbours."""
    betas = np.linspace(0.0, largest, _ANGLES)
    if isinstance(p, AngleTail):
        # Right after a jump of p(beta), and where that of the other term is still to come.
        after = np.nextafter(p.angles, math.pi)
        jumps = np.concatenate([after, largest - after])
        betas = np.sort(np.concatenate([betas, jumps[(jumps >= 0) & (jumps <= largest)]]))
    best = int(np.argmin(bound(betas)))
    below, above = betas[max(best - 1, 0)], betas[min(best + 1, len(betas) - 1)]
    near = np.append(np.linspace(below, above, _ANGLES), betas[best])
    return np.asarray(near[np.argmin(bound(near))])


def polynomial_risk_bound(kappa: float, n: int) -> float:
    """`(1 + (log n)^kappa) / n^kappa`, the weaker bound for `polynomial_tail(kappa)`.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", corollary 5.2, at beta = pi/2 n^(-1/n).
    """
    require_count("n", n)
    return float((1 + math.log(n) ** kappa) / n**kappa)


def error_angle(share: float) -> float:
    """The largest angle between w and v with `||w - v|| <= share ||w||`, share below 1.

    It is arcsin(share), where v touches the cone; sqrt(2 pi share), as lemma D.3 prints, is above.

    Raises
    ------
    ValueError
        If `share` is not in [0, 1): beyond, v may point anywhere.
    """
    require_fraction("share", share, "v may point anywhere beyond")
    return math.asin(share)


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Students from an infinitesimal start on the first 1, ..., n samples.

    Attributes
    ----------
    angles, risks : (n,) arrays
        With the teacher, in radians, and on further inputs.
    """

    angles: Floats
    risks: Floats

    @property
    def rises(self) -> tuple[int, int]:
        """Number of the n - 1 further samples that made the angle, and the risk, larger."""
        # Angles near 0 are known to rounding of cosines: 1e-8.
        return int((np.diff(self.angles) > 1e-8).sum()), int((np.diff(self.risks) > 0).sum())


def learning_curve(X: ArrayLike, teacher: ArrayLike, X_val: ArrayLike) -> LearningCurve:
    """Angles and risks of the projection `w_hat` as samples X (n, D) are added one by one.

    Angles never increase, since `cos = ||P_k w_*|| / ||w_*||`. The risk on `X_val` (m, D) may: it
    weighs directions by the inputs' distribution.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", lemma 5.1; what is said of the risk after it
    does not hold.
    """
    inputs, w, others = (np.asarray(to_numpy(a), dtype=np.float64) for a in (X, teacher, X_val))
    directions = _new_directions(inputs)
    parts = directions @ w
    inside = np.cumsum(parts**2)
    outside = np.maximum(w @ w - inside, 0.0)
    scores = np.cumsum((others @ directions.T) * parts, axis=1)
    wrong = (scores >= 0) != (others @ w >= 0)[:, None]
    return LearningCurve(np.arctan2(np.sqrt(outside), np.sqrt(inside)), wrong.mean(axis=0))


def _new_directions(X: Floats) -> Floats:
    """(n, D) what each sample adds to the span of those before it: unit vectors, or 0."""
    found = np.zeros_like(X)
    for k, x in enumerate(X):
        left = x
        for _ in range(2):  # twice is enough: what rounding leaves of the first goes
            left = left - (found[:k] @ left) @ found[:k]
        size = float(np.linalg.norm(left))
        if size > 10 * max(X.shape) * np.finfo(float).eps * float(np.linalg.norm(x)):
            found[k] = left / size
    return found
