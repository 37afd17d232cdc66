"""Least speed at which a student of one layer learns: restricted strong convexity of its loss."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from ..._support.doors import door
from ..._support.kinds import floats, positive
from ..._support.solve import Array
from .closed_form import INPUTS, sample_span
from .losses import get_student_loss


@door(X=INPUTS, teacher=floats("D: one weight a column of X"), level=positive)
def restricted_convexity(X: Array, teacher: Array, level: float) -> float:
    """Return the modulus mu of restricted strong convexity, for students of bounded loss.

    With g the gradient, P the projection on the span of the samples, and students w and v of loss
    at most `level`,

        loss(v) >= loss(w) + <g(w), v - w> + mu / 2 ||P (v - w)||^2          (theorem D.3)
        ||g(w)||^2 >= 2 mu loss(w)                                           (corollary D.1)

    so that along the flow of one layer `loss(t) <= loss(0) exp(-2 mu t)` and
    `||w(t) - w(inf)||^2 <= 2 loss(t) / mu` (theorem 5.1), with the level of its start.

    Parameters
    ----------
    X : (n, D) array
        Inputs of the transfer set.
    teacher : (D,) array
        The teacher's weights.
    level : float
        Bound of the loss, the mean cross-entropy divergence from the teacher's soft labels;
        positive.

    Returns
    -------
    float
        mu, a lower bound of the curvature on the span; 0 if it underflows. It is tiny if a soft
        label is near 0 or 1, since the loss then hardly bounds the score.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, `level` is not positive, or the teacher has K
        classes.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem D.3, with the 1/n that (D.8) lacks,
    and a weight for each sample in place of the least of all.

    Examples
    --------
    At a teacher of weights 0 the logistic loss of two orthonormal samples has curvature 1/8:

    >>> round(ib.distillation.restricted_convexity(np.eye(2), [0.0, 0.0], 1e-9), 6)
    0.125
    """
    # A sample's share of the mean loss is at most the whole: its own is at most n times the level.
    largest = [_largest_score(t, len(X) * level) for t in (X @ teacher).tolist()]
    slopes = expit(largest) * expit(np.negative(largest))
    basis = sample_span(X).basis
    rows = X @ basis * np.sqrt(slopes / len(X))[:, None]
    return float(np.linalg.svd(rows, compute_uv=False)[basis.shape[1] - 1] ** 2)


def _largest_score(teacher: float, most: float) -> float:
    """Return the largest absolute score whose divergence from the teacher's is at most this."""
    value = get_student_loss("cross-entropy").value

    def over(score: float) -> float:
        """Return the divergence at a score, less the bound."""
        return float(value(np.array(score), np.array(teacher))) - most

    ends = []
    for sign in (1.0, -1.0):
        far = 1.0
        while over(teacher + sign * far) < 0:
            far *= 2
        ends.append(brentq(over, teacher, teacher + sign * far, xtol=1e-12))
    return float(max(abs(end) for end in ends))
