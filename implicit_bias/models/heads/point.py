r"""Limits that are points: the minimum-norm interpolant of soft labels, and unique minimisers.

Gradient descent from zero keeps the head W in the span of the features, and its columns centred
over classes, since every slope in the logits sums to zero. There the loss is strictly convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._support.solve import Status, damped_newton, gap_between
from ...data.arrays import Floats
from ...limits.exact.split import distance_bound
from .limit import HeadCertificate, HeadLimit
from .losses import ExitLoss


@dataclass(frozen=True, eq=False)
class Span:
    """Features in coordinates of their span.

    Attributes
    ----------
    left : (n, r) array
        Orthonormal columns.
    sizes : (r,) array
        Singular values: `rows = left * sizes`.
    basis : (r, D) array
        Orthonormal rows.
    """

    left: Floats
    sizes: Floats
    basis: Floats

    @cached_property
    def rows(self) -> Floats:
        """(n, r) coordinates of the samples in `basis`."""
        return self.left * self.sizes

    @property
    def rank(self) -> int:
        """Rank of the features."""
        return len(self.basis)


def feature_span(features: Floats) -> Span:
    """Return singular vectors of singular values above `max(n, D) 2^-52` of the largest."""
    left, sizes, basis = np.linalg.svd(features, full_matrices=False)
    large = sizes > max(features.shape) * np.finfo(np.float64).eps * sizes[0]
    if not np.any(large):
        raise ValueError("`features` must not be zero: no head can distinguish samples")
    return Span(left[:, large], sizes[large], basis[large])


def point_limit(features: Floats, loss: ExitLoss, tol: float) -> HeadLimit:
    """Solve for the limit of gradient descent from zero, if it is finite.

    Parameters
    ----------
    features : (n, D) array
        Features of the samples.
    loss : ExitLoss
        The loss in the head's logits.
    tol : float
        Tolerance of the error bound.

    Returns
    -------
    HeadLimit
        An "interpolant" of soft labels, or a unique "minimiser".
    """
    used = loss.weighted
    span, loss = feature_span(features[used]), loss.subset(used)
    centred = _centred_basis(loss.n_classes)
    matched = loss.is_soft and span.rank == len(span.rows)
    start: Floats = np.zeros((loss.n_classes - 1, span.rank))
    if matched:
        # Soft labels of every temperature are matched where centred logits are the teacher's.
        start = centred @ loss.teacher.T @ span.left
    # On orthonormal columns, whose Hessian is as well conditioned as the labels let it be.
    coordinates = _newton(start, span.left, loss, centred) / span.sizes
    weights = centred.T @ coordinates @ span.basis
    certificate = _certify(coordinates, span, loss, centred)
    solved = certificate.error <= tol and math.isfinite(certificate.gap)
    unsolved = Status.NO_MINIMISER if loss.is_hard else Status.INACCURATE
    return HeadLimit(
        zeta=weights,
        kind="interpolant" if matched else "minimiser",
        rank=span.rank,
        excess=loss.value(span.rows @ coordinates.T @ centred) - loss.least,
        status=Status.SOLVED if solved else unsolved,
        certificate=certificate,
        tol=tol,
    )


def _centred_basis(n_classes: int) -> Floats:
    """Return Helmert's orthonormal rows (K - 1, K), orthogonal to the vector of ones."""
    rows = np.zeros((n_classes - 1, n_classes))
    for k in range(1, n_classes):
        rows[k - 1, :k], rows[k - 1, k] = 1.0, -k
        rows[k - 1] /= math.sqrt(k * (k + 1))
    return rows


def _derivatives(A: Floats, rows: Floats, loss: ExitLoss, centred: Floats) -> tuple[Floats, Floats]:
    """Return the gradient (K - 1, r) and the Hessian over its flattened entries."""
    logits = rows @ A.T @ centred
    slopes = loss.gradient(logits) @ centred.T
    blocks = centred @ loss.curvature(logits) @ centred.T
    k, r = A.shape
    hessian = np.empty((k, r, k, r))
    for i in range(k):
        for j in range(k):
            hessian[i, :, j] = (rows * blocks[:, i, j, None]).T @ rows
    return slopes.T @ rows, hessian.reshape(k * r, k * r)


def _newton(start: Floats, rows: Floats, loss: ExitLoss, centred: Floats) -> Floats:
    """Minimise over coordinates (K - 1, r)."""

    def value(w: Floats) -> float:
        return loss.value(rows @ w.reshape(start.shape).T @ centred)

    def derivatives(w: Floats) -> tuple[Floats, Floats]:
        gradient, hessian = _derivatives(w.reshape(start.shape), rows, loss, centred)
        return gradient.ravel(), hessian

    return damped_newton(value, derivatives, start.ravel())[0].reshape(start.shape)


def _certify(A: Floats, span: Span, loss: ExitLoss, centred: Floats) -> HeadCertificate:
    """Bound error and gap of A, from gradient and Hessian there."""
    gradient, hessian = _derivatives(A, span.rows, loss, centred)
    size = float(np.linalg.norm(gradient))
    curvature = float(np.linalg.eigvalsh(hessian)[0])
    # Logits of two classes part by at most sqrt(2) ||phi_n|| a unit of weight; the soft term sees
    # them divided by the temperature.
    scales = [1.0] * (not loss.is_soft) + [1 / loss.temperature] * (not loss.is_hard)
    decay = math.sqrt(2) * max(scales) * float(np.linalg.norm(span.rows, axis=1).max())
    logits = span.rows @ A.T @ centred
    slopes = loss.gradient(logits)
    bound = loss.dual_value(logits, -span.left @ (span.left.T @ slopes))
    error = distance_bound(size, curvature, decay) / max(1.0, float(np.linalg.norm(A)))
    return HeadCertificate(error, size, curvature, gap_between(loss.value(logits), bound, 1.0))
