r"""The norm of coefficients as unit weights times a matrix, which Muon on both layers induces.

.. math:: N(B) = \min \{ \|a\| \, \|W\|_{op} : B = \mathrm{diag}(a) W \}, \qquad
          N^*(V) = \max_{\|a\| \le 1} \|\mathrm{diag}(a) V\|_*

Weights are found here, by interior points in as many unknowns as there are rows; what they prove
is for `Norm.above`, whoever found them. With t the squares of a, the ball is a cone of matrices,
`[[diag t, B], [B', I]] >= 0`, sum t = 1, and N* = max h(t) with `h(t) = tr (V' diag(t) V)^(1/2)`
concave: multipliers of its cone are factors `V = Y L'`, with N*(V) <= max_h |y_h| |L|.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..numerics.step_length import longest_in_cone, longest_step, symmetric

Floats = NDArray[np.float64]

ITERATIONS = 60
# Share of the longest step that is taken.
INNER = 0.95
# Gap between the bounds of a norm at which its weights are good enough.
ACCURACY = 1e-12
# Singular values below this share of the largest are rounding, of B and of weighted rows: these
# may be graded, and only their squares disturb the factors.
RANK = 1e-14
WEIGHTED_RANK = 1e-18
# Rows below this share of the longest weigh nothing: bounds charge them by themselves.
NEGLIGIBLE = 1e-13


def least_spectral(B: Floats) -> tuple[Floats, Floats]:
    """Find the weights of least norm of coefficients.

    Parameters
    ----------
    B : (H, Q) array

    Returns
    -------
    weights : (H,) array
        Squares t of a, of sum 1; zero at rows that are zero.
    slope : (H, Q) array
        V with N*(V) = 1 and <V, B> = N(B), to the accuracy of the interior point.
    """
    t, V = np.zeros(len(B)), np.zeros_like(B)
    lengths = np.linalg.norm(B, axis=1)
    live = lengths > NEGLIGIBLE * lengths.max(initial=0.0)
    if not live.any():
        return t, V
    basis = _row_basis(B[live])
    C = B[live] @ basis
    size = float(np.linalg.norm(C, 2))
    t[live], corner = _least_weights(C / size)
    V[live] = corner @ basis.T
    return t / t.sum(), V


def _row_basis(B: Floats) -> Floats:
    """(Q, r) orthonormal columns that span the rows of B."""
    _, s, W = np.linalg.svd(B, full_matrices=False)
    return np.asarray(W[s > RANK * s[0]].T)


def _least_weights(B: Floats) -> tuple[Floats, Floats]:
    """Least sum of t with `[[diag t, B], [B', I]] >= 0`, and its slope, of an (H, r) matrix."""
    p, r = B.shape
    order, rows = p + r, np.arange(p)
    lengths = np.linalg.norm(B, axis=1)
    t = 2 * lengths * float(np.linalg.norm(B / np.sqrt(lengths)[:, None], 2)) ** 2
    Z = np.diag(np.concatenate([np.ones(p), np.full(r, float(t.mean()))]))

    def matrix(diagonal: Floats, corner: Floats, rest: float) -> Floats:
        return np.block([[np.diag(diagonal), corner], [corner.T, rest * np.eye(r)]])

    zero = np.zeros_like(B)
    for _ in range(ITERATIONS):
        S = matrix(t, B, 1.0)
        inner = float(np.sum(S * Z))
        if inner <= ACCURACY * float(t.sum()):
            break
        try:
            P = _cone_inverse(t, B)
            K = P[:p, :p] * Z[:p, :p]

            def step(
                mu: float, correction: Floats | float, P: Floats = P, K: Floats = K, Z: Floats = Z
            ) -> tuple[Floats, Floats]:
                target = mu * P - correction
                dt: Floats = np.asarray(np.linalg.solve(K, target[rows, rows] - 1), dtype=float)
                return dt, np.asarray(target - Z - symmetric(P @ matrix(dt, zero, 0.0) @ Z))

            dt, dZ = step(0.0, 0.0)
            longest = longest_in_cone(S, matrix(dt, zero, 0.0)), longest_in_cone(Z, dZ)
            moved = matrix(t + min(1.0, longest[0]) * dt, B, 1.0)
            reached = float(np.sum(moved * (Z + min(1.0, longest[1]) * dZ)))
            sigma = min(max(reached / inner, 0.0), 1.0) ** 3
            dt, dZ = step(sigma * inner / order, symmetric(P @ matrix(dt, zero, 0.0) @ dZ))
            primal = min(1.0, INNER * longest_in_cone(S, matrix(dt, zero, 0.0)))
            dual = min(1.0, INNER * longest_in_cone(Z, dZ))
        except np.linalg.LinAlgError:
            break
        t, Z = t + primal * dt, Z + dual * dZ
    return t, -2 * Z[:p, p:]


def largest_nuclear(V: Floats) -> tuple[Floats, Floats, Floats]:
    """Find the weights of the largest nuclear norm, and the factors that bound it.

    Parameters
    ----------
    V : (H, Q) array

    Returns
    -------
    weights : (H,) array
        Squares t of a, of sum 1; zero at rows that are zero.
    Y : (H, r) array
    L : (Q, r) array
        V = Y L' but for rounding, and for rows that are next to zero.
    """
    t, live = np.zeros(len(V)), np.linalg.norm(V, axis=1)
    live = live > NEGLIGIBLE * live.max(initial=0.0)
    if not live.any():
        return t, np.zeros((len(V), 1)), np.zeros((V.shape[1], 1))
    basis = _row_basis(V[live])
    own = V[live] @ basis
    t[live] = _largest_weights(own / np.linalg.norm(own, 2))
    s, W = _decomposed(t[live], own)[1:]
    Y = np.zeros((len(V), len(s)))
    Y[live] = own @ W.T / np.sqrt(s)
    return t, Y, basis @ (W.T * np.sqrt(s))


def _decomposed(t: Floats, V: Floats) -> tuple[Floats, Floats, Floats]:
    """Singular value decomposition of diag(t)^(1/2) V, on its range."""
    U, s, W = np.linalg.svd(np.sqrt(t)[:, None] * V, full_matrices=False)
    kept = s > WEIGHTED_RANK * s[0]
    return U[:, kept], s[kept], W[kept]


def _largest_weights(V: Floats) -> Floats:
    """Weights t of sum 1 with the largest h(t)."""
    p = len(V)
    t, best, narrowest = np.full(p, 1 / p), np.full(p, 1 / p), np.inf
    z, nu = np.ones(p), 0.0
    for iteration in range(ITERATIONS):
        U, s, _ = _decomposed(t, V)
        value, slopes = float(s.sum()), 0.5 * (U**2 @ s) / t
        # Of a concave h of degree 1/2, value/2 + the largest slope is an upper bound.
        gap = float(slopes.max()) - value / 2
        if gap < narrowest:
            narrowest, best = gap, t
        if gap <= ACCURACY * value:
            break
        if iteration == 0:
            nu = float(slopes.max()) + gap
            z = nu - slopes
        pairs = U[:, :, None] * U[:, None, :] * np.sqrt(np.outer(s, s) / np.add.outer(s, s))
        Y = pairs.reshape(p, -1) / t[:, None]
        K = 0.5 * (Y @ Y.T)
        K[np.arange(p), np.arange(p)] += z / t
        mu = float(z @ t) / p
        try:
            t, z, nu = _towards(t, z, nu, slopes, K, mu)
        except np.linalg.LinAlgError:
            break
    return best


def _towards(
    t: Floats, z: Floats, nu: float, slopes: Floats, K: Floats, mu: float
) -> tuple[Floats, Floats, float]:
    """One step, predicted and corrected, to slopes + z = nu, z t = mu, sum t = 1."""
    one = np.linalg.solve(K, np.ones(len(t)))

    def step(wanted: Floats) -> tuple[Floats, Floats, float]:
        first = np.linalg.solve(K, slopes - nu + wanted / t)
        dnu = (float(first.sum()) - (1 - float(t.sum()))) / float(one.sum())
        dt = first - dnu * one
        return dt, wanted / t - z - z / t * dt, dnu

    dt, dz, _ = step(np.zeros(len(t)))
    a, b = min(1.0, longest_step(t, dt)), min(1.0, longest_step(z, dz))
    sigma = min(max(float((t + a * dt) @ (z + b * dz)) / float(t @ z), 0.0), 1.0) ** 3
    dt, dz, dnu = step(np.maximum(sigma * mu - dt * dz, 0.1 * sigma * mu))
    length = min(1.0, INNER * longest_step(t, dt), INNER * longest_step(z, dz))
    t = t + length * dt
    return t / t.sum(), z + length * dz, nu + length * dnu


def _cone_inverse(t: Floats, B: Floats) -> Floats:
    """Inverse of `[[diag t, B], [B', I]]`, from the singular values of diag(t)^(-1/2) B."""
    p, r = B.shape
    U, s, W = np.linalg.svd(B / np.sqrt(t)[:, None], full_matrices=True)
    share = np.zeros(max(p, r))
    k = len(s)
    if not s[0] < 1:
        raise np.linalg.LinAlgError("the weights leave the cone")
    share[:k] = 1 / ((1 - s) * (1 + s))
    outer = np.where(np.arange(max(p, r)) < k, share, 1.0)
    P = np.empty((p + r, p + r))
    P[:p, :p] = (U * outer[:p]) @ U.T
    P[p:, p:] = (W.T * outer[:r]) @ W
    P[:p, p:] = -(U[:, :k] * (s * share[:k])) @ W[:k]
    scale = np.concatenate([1 / np.sqrt(t), np.ones(r)])
    P[p:, :p] = P[:p, p:].T
    return np.asarray(P * scale[:, None] * scale)
