"""The two losses of a student beside its teacher, as functions of both their scores.

In terms of the teacher's logits nothing is lost where a soft label rounds to 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.special import expit

from ...data.arrays import Floats

__all__ = ["LOSSES", "StudentLoss", "get_student_loss", "mean_loss"]


@dataclass(frozen=True)
class StudentLoss:
    """A loss of scores that is 0 exactly where they are the teacher's, elementwise.

    Attributes
    ----------
    value, slope : callable
        Of scores and teacher's scores: the loss, and its derivative in the score.
    """

    value: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]


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


LOSSES: Mapping[str, StudentLoss] = MappingProxyType(
    {
        "cross-entropy": StudentLoss(_divergence, _divergence_slope),
        "squared": StudentLoss(_half_square, _difference),
    }
)


def get_student_loss(name: str) -> StudentLoss:
    """Look a loss up in `LOSSES`; raises ValueError for a name that is not there."""
    if name not in LOSSES:
        raise ValueError(f"`loss` must be one of {sorted(LOSSES)}, got {name!r}")
    return LOSSES[name]


def mean_loss(X: Floats, w: Floats, teacher: Floats, loss: str) -> float:
    """The mean loss of a linear student w (D,) beside its teacher (D,) on inputs (n, D)."""
    return float(get_student_loss(loss).value(X @ w, X @ teacher).mean())
