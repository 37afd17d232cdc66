"""Transfer risk: share of inputs on which student and teacher disagree, bounds of it, angles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._support.doors import door, result
from ..._support.kinds import count, floats
from ..._support.solve import Array, require_count, require_fraction, require_positive, to_numpy
from ...data.arrays import Floats
from ...quantities.formatting import degrees
from ...quantities.measured import Measured, quantity

Tail = Callable[[Floats], Floats]
# Every beta gives a bound, so the least over a grid is one too: fine enough that a second one finds
# the least to 1e-6 of itself.
_ANGLES = 2001


def angle(u: Array, v: Array) -> float:
    """Return the angle between two vectors (D,) in radians, 0 to pi; NaN if one of them is 0."""
    a, b = (np.asarray(to_numpy(w), dtype=np.float64) for w in (u, v))
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not all(size > 0 for size in sizes):
        return math.nan
    a, b = a / sizes[0], b / sizes[1]
    # Kahan's formula: right to rounding for small angles, where an arc cosine has half the digits.
    return float(2 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


@door(
    w=floats("D | _K D"),
    teacher=floats("D | _K D: as `w` has"),
    X=floats("m D: as the weights have"),
)
def transfer_risk(w: Array, teacher: Array, X: Array) -> float:
    """Measure the share of inputs that student and teacher put into different classes.

    Parameters
    ----------
    w, teacher : (D,) or (K, D) arrays
        Weights. With one score the class is whether it is at least 0, with K scores the largest's.
    X : (m, D) array
        Inputs.

    Returns
    -------
    float
        Share in [0, 1].

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (5.4), on a sample of inputs.

    Examples
    --------
    >>> ib.distillation.transfer_risk([1.0, 1.0], [1.0, 0.0], [[1.0, 0.0], [1.0, -2.0]])
    0.5
    """
    return float(np.mean(_classes(X @ w.T) != _classes(X @ teacher.T)))


def _classes(scores: Floats) -> Any:
    return scores >= 0 if scores.ndim == 1 else scores.argmax(axis=1)


@dataclass(frozen=True, eq=False)
class AngleTail:
    """Tail `p(theta)`: share of inputs at an unsigned angle of at least theta with the teacher.

    Attributes
    ----------
    angles : (m,) array
        Angles of the inputs in radians, ascending, in [0, pi/2].
    """

    angles: Floats

    def __call__(self, theta: Array) -> Floats:
        """Return the shares (...) at angles (...)."""
        return np.asarray(1 - np.searchsorted(self.angles, theta, side="left") / len(self.angles))


@door(X=floats("m D"), teacher=floats("D: one weight a column of X"))
def angle_tail(X: Array, teacher: Array) -> AngleTail:
    """Measure the share of inputs beyond each angle with the teacher.

    An input of 0, which has no angle and carries no information, counts as one at a right angle.

    Parameters
    ----------
    X : (m, D) array
        Inputs.
    teacher : (D,) array
        The teacher's weights.

    Returns
    -------
    AngleTail
        The empirical `p(theta)`; call it with angles in radians.

    Raises
    ------
    ValueError
        If there is no input, or the teacher is 0.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", (5.17).

    Examples
    --------
    >>> p = ib.distillation.angle_tail([[1.0, 0.0], [-1.0, 1.0]], [1.0, 0.0])
    >>> p([0.0, 0.5, 1.0]).tolist()
    [1.0, 0.5, 0.0]
    """
    if not teacher.any():
        raise ValueError("`teacher` must not be 0: there is no angle")
    along = np.abs(X @ teacher) / np.linalg.norm(teacher)
    across = np.sqrt(np.maximum((X * X).sum(axis=1) - along**2, 0.0))
    angles = np.where(X.any(axis=1), np.arctan2(across, along), math.pi / 2)
    return AngleTail(np.sort(angles))


def polynomial_tail(kappa: float) -> Tail:
    """Return the tail `p(theta) = (1 - 2 theta / pi)^kappa` of angular alignment kappa > 0."""
    require_positive("kappa", kappa)
    return lambda theta: np.clip(1 - 2 * np.asarray(theta) / math.pi, 0.0, 1.0) ** kappa


@result()
class RiskBound(Measured, eq=True):
    """Upper bounds of the expected transfer risk of a student on n samples.

    Examples
    --------
    >>> bound = ib.distillation.risk_bound(lambda theta: np.where(theta > 0.1, 0.0, 1.0), 20)
    >>> isinstance(bound, ib.distillation.RiskBound), bound.sharper <= bound.value
    (True, True)
    """

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


@door(n=count(1))
def risk_bound(p: Tail, n: int, *, delta: float = 0.0) -> RiskBound:
    """Bound the expected transfer risk of students on n samples, fewer than input dimensions.

    Parameters
    ----------
    p : callable
        `p(theta)` for arrays of angles in [0, pi/2]: a known tail, or `angle_tail` of a sample,
        which makes the bound an estimate.
    n : int
        Number of samples.
    delta : float
        Largest angle between a student and the projection `w_hat(X)`, in radians in [0, pi/2).

    Returns
    -------
    RiskBound
        The bound as published (`value`, at `beta`), and the sharper one of its proof.

    Raises
    ------
    ValueError
        If `n` or `delta` is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem 5.3, and its last line of proof for
    the sharper one; theorem D.4, where the error has to be a share of ||w_hat(X)||: a length that
    is the same for all X is no such share, since ||w_hat(X)|| may be arbitrarily near to 0.

    Examples
    --------
    >>> bound = ib.distillation.risk_bound(lambda theta: (1 - 2 * theta / np.pi) ** 3, 5)
    >>> round(bound.value, 4), round(bound.sharper, 4)
    (0.0285, 0.0283)
    """
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
    """Minimise a bound over [0, largest]: on a grid, then on a finer one around the best point."""
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
    """Return `(1 + (log n)^kappa) / n^kappa`, a weaker bound for `polynomial_tail(kappa)`.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", corollary 5.2, at beta = pi/2 n^(-1/n).
    """
    require_count("n", n)
    return float((1 + math.log(n) ** kappa) / n**kappa)


def error_angle(share: float) -> float:
    """Return the largest angle between w and v with `||w - v|| <= share ||w||`, share below 1.

    It is arcsin(share), where v touches the cone; sqrt(2 pi share), as lemma D.3 prints, is larger.

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
        Angle with the teacher in radians, and transfer risk on held-out inputs.
    """

    angles: Floats
    risks: Floats

    @property
    def rises(self) -> tuple[int, int]:
        """Numbers of samples after the first that made the angle, and the risk, larger."""
        # Angles near 0 are known to rounding of cosines: 1e-8.
        return int((np.diff(self.angles) > 1e-8).sum()), int((np.diff(self.risks) > 0).sum())


@door(
    X=floats("n D"),
    teacher=floats("D: one weight a column of X"),
    X_val=floats("m>=0 D: as X has"),
)
def learning_curve(X: Array, teacher: Array, X_val: Array) -> LearningCurve:
    """Measure angle and risk of the projection `w_hat` as samples are added one by one.

    Angles never increase, since `cos = ||P_k w_*|| / ||w_*||`. The risk may: it weighs directions
    by the distribution of inputs.

    Parameters
    ----------
    X : (n, D) array
        Samples, in the order in which they are added.
    teacher : (D,) array
        The teacher's weights.
    X_val : (m, D) array
        Held-out inputs, on which the risk is measured.

    Returns
    -------
    LearningCurve
        Angles and risks (n,).

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", lemma 5.1; the statement about the risk that
    follows it does not hold.

    Examples
    --------
    >>> curve = ib.distillation.learning_curve(np.eye(2), [1.0, 1.0], [[2.0, -1.0], [-1.0, 1.5]])
    >>> curve.angles.round(4).tolist(), curve.risks.tolist()
    ([0.7854, 0.0], [0.5, 0.0])
    """
    directions = _new_directions(X)
    parts = directions @ teacher
    inside = np.cumsum(parts**2)
    outside = np.maximum(teacher @ teacher - inside, 0.0)
    scores = np.cumsum((X_val @ directions.T) * parts, axis=1)
    wrong = (scores >= 0) != (X_val @ teacher >= 0)[:, None]
    return LearningCurve(np.arctan2(np.sqrt(outside), np.sqrt(inside)), wrong.mean(axis=0))


def _new_directions(X: Floats) -> Floats:
    """Return the direction (n, D) that each sample adds to the span of those before it, or 0."""
    found = np.zeros_like(X)
    for k, x in enumerate(X):
        left = x
        for _ in range(2):  # twice is enough: what rounding leaves of the first goes
            left = left - (found[:k] @ left) @ found[:k]
        size = float(np.linalg.norm(left))
        if size > 10 * max(X.shape) * np.finfo(float).eps * float(np.linalg.norm(x)):
            found[k] = left / size
    return found
