"""Losses of a student as functions of its own and its teacher's scores.

In terms of the teacher's logits nothing is lost where a soft label rounds to 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import expit, logsumexp, softmax

from ...data.arrays import Floats


@dataclass(frozen=True)
class StudentLoss:
    """A loss of scores that is 0 exactly where student and teacher agree.

    Attributes
    ----------
    value, slope : callable
        Of scores and teacher's scores, elementwise or (n, K) of K classes: the loss of each sample,
        and its derivative in the scores.
    sees_mean : bool
        Whether it sees the mean of scores over classes, which a softmax does not.
    """

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    sees_mean: bool = True


def _divergence(scores: Floats, teacher: Floats) -> Floats:
    # KL(p, q) of p = sigmoid(t), q = sigmoid(s): log(1 + p (e^u - 1)) - p u with u = s - t, which
    # loses u^2 / 2 to rounding nowhere; beyond 1 the plain difference is exact enough and finite.
    difference, p = scores - teacher, expit(teacher)
    near = np.clip(difference, -1.0, 1.0)
    close = np.log1p(p * np.expm1(near)) - p * near
    far = np.logaddexp(0.0, scores) - np.logaddexp(0.0, teacher) - p * difference
    value = np.where(np.abs(difference) <= 1.0, close, far)
    return np.asarray(np.maximum(value, 0.0))


def _divergence_slope(scores: Floats, teacher: Floats) -> Floats:
    return np.asarray(expit(scores) - expit(teacher))


def _half_square(scores: Floats, teacher: Floats) -> Floats:
    return np.asarray(0.5 * (scores - teacher) ** 2)


def _difference(scores: Floats, teacher: Floats) -> Floats:
    return np.asarray(scores - teacher)


def _classes_divergence(scores: Floats, teacher: Floats) -> Floats:
    # KL(p, q) = log sum_k p_k e^(v_k) with v = s - t less its mean by p, whose first order is 0:
    # log(1 + sum_k p_k (e^(v_k) - 1 - v_k)) has no terms that cancel.
    p = softmax(teacher, axis=-1)
    u = scores - teacher
    v = u - (p * u).sum(axis=-1, keepdims=True)
    near = np.clip(v, -1.0, 1.0)
    close = np.log1p((p * (np.expm1(near) - near)).sum(axis=-1))
    far = logsumexp(v, b=p, axis=-1)
    value = np.where(np.abs(v).max(axis=-1) <= 1.0, close, far)
    return np.asarray(np.maximum(value, 0.0))


def _classes_slope(scores: Floats, teacher: Floats) -> Floats:
    return np.asarray(softmax(scores, axis=-1) - softmax(teacher, axis=-1))


def _half_squares(scores: Floats, teacher: Floats) -> Floats:
    return np.asarray(0.5 * ((scores - teacher) ** 2).sum(axis=-1))


LOSSES: Mapping[str, StudentLoss] = MappingProxyType(
    {
        "cross-entropy": StudentLoss(_divergence, _divergence_slope),
        "squared": StudentLoss(_half_square, _difference),
    }
)


CLASS_LOSSES: Mapping[str, StudentLoss] = MappingProxyType(
    {
        "cross-entropy": StudentLoss(_classes_divergence, _classes_slope, sees_mean=False),
        "squared": StudentLoss(_half_squares, _difference),
    }
)


def get_student_loss(name: str, *, of_classes: bool = False) -> StudentLoss:
    """Return the loss of this name, for one score or K; raise ValueError for an unknown name."""
    if name not in LOSSES:
        raise ValueError(f"`loss` must be one of {sorted(LOSSES)}, got {name!r}")
    return (CLASS_LOSSES if of_classes else LOSSES)[name]


def mean_loss(X: Floats, w: Floats, teacher: Floats, loss: str) -> float:
    """Return the mean loss of a linear student w (D,) or (K, D) on inputs (n, D)."""
    known = get_student_loss(loss, of_classes=w.ndim == 2)
    return float(known.value(X @ w.T, X @ teacher.T).mean())


def centred(w: Floats, loss: str) -> Floats:
    """Return the part of weights (D,) or (..., K, D) that a loss sees; softmax drops the mean."""
    if w.ndim == 1 or get_student_loss(loss, of_classes=True).sees_mean:
        return w
    return np.asarray(w - w.mean(axis=-2, keepdims=True))
