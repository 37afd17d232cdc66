"""Ridge regression on gated inputs, the fallback on inseparable data."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsmr

from .._solve import MaxMarginProgram
from ..data.arrays import Floats

__all__ = ["RIDGE", "ridge_coefficients"]

# Large enough to bound the condition number, small relative to the data's own curvature.
RIDGE = 1e-3


def ridge_coefficients(program: MaxMarginProgram, weights: Floats) -> Floats:
    r"""Solve the ridge regression of the labels on the gated inputs of `program`: (J, D).

    .. math:: \min_V \tfrac1W \sum_n w_n (y_n - f_V(x_n))^2 + \alpha r^2 \|V\|_F^2,
              \qquad r^2 = \tfrac1W \sum_n w_n \|x_n\|^2 \|z_n\|^2

    Weights w (n,) are positive, W is their sum. Here alpha is `RIDGE`; with r^2 the predictions
    do not depend on the scale of the inputs. By LSMR from zero, which needs products with the
    design only: deterministic, and no n x n or J D x J D matrix.
    """
    design = program.design
    n, shape = design.n_samples, (design.Z.shape[1], design.X.shape[1])
    weights = weights / np.max(weights)  # they count beside each other alone
    roots = np.sqrt(weights)
    squares = np.asarray((design.X * design.X).sum(axis=1)) * np.sum(design.Z**2, axis=1)
    r2 = float(np.average(squares, weights=weights))
    if r2 == 0:
        return np.zeros(shape)
    unit = math.sqrt(r2)
    operator = LinearOperator(
        (n, math.prod(shape)),
        matvec=lambda V: roots * design.scores(V.reshape(shape)) / unit,
        rmatvec=lambda rows: design.adjoint(roots * rows.ravel()).ravel() / unit,
        dtype=np.float64,
    )
    # With this damping the condition number is at most RIDGE^(-1/2): a few hundred steps at most.
    damping = math.sqrt(weights.sum() * RIDGE)
    V = lsmr(operator, roots * program.y, damp=damping, atol=1e-12, btol=1e-12, maxiter=1000)[0]
    return np.asarray(V.reshape(shape) / unit)
