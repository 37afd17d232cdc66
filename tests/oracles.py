"""Statements that the tests hold the library against: slow, plain, and of their own making."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from implicit_bias.models.gdln import RingData, ring_kernel
from implicit_bias.models.gln import MainEffects

Floats = NDArray[np.float64]


def hard_margin(A: Floats) -> Floats:
    """argmin ||w|| s.t. A w >= 1, by Lawson and Hanson's reduction to non-negative least squares.

    With E = [A^T; 1^T] and r = E u - e_last at the least-squares u >= 0: w = -r[:-1] / r[-1].
    """
    E = np.vstack([A.T, np.ones(len(A))])
    f = np.append(np.zeros(A.shape[1]), 1.0)
    r = E @ nnls(E, f, maxiter=100 * len(A))[0] - f
    return np.asarray(-r[:-1] / r[-1])


def frelu_kernels(X: Floats, gates: NDArray[np.int64]) -> Floats:
    """(H, n, n) kernels of units behind gates: `K_h(n, m) = g_h(n) g_h(m) <x_n, x_m>`.

    In their terms the dual program is

        maximise  sum_n lam[n]   s.t.  lam >= 0,  (y lam)^T K_h (y lam) <= 1  for every h.
    """
    opened = np.asarray(gates, dtype=float).T
    return opened[:, :, None] * opened[:, None, :] * (X @ X.T)


def l2_gate_kernel(
    contexts: NDArray[np.int64], others: NDArray[np.int64], n_contexts: int
) -> NDArray[np.int64]:
    """(n, m) gate part of the SVM-L2 kernel, `C agree - H + 1`, times `C^H`.

    `agree` counts the units in which both samples have the same context. The kernel of the plain
    norm is `<x, x'>` times this over `C^H`, that of the root mean square `<x, x'>` times this.
    """
    agree = (contexts[:, None, :] == others[None, :, :]).sum(axis=2)
    return np.asarray(n_contexts * agree - contexts.shape[1] + 1)


def gln_problem(
    n_units: int, n_contexts: int, *, n: int = 40, D: int = 6, seed: int = 0
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Labels of a random network with units of unequal size: separable by construction."""
    rng = np.random.default_rng(seed)
    X, contexts = rng.normal(size=(n, D)), rng.integers(0, n_contexts, size=(n, n_units))
    zeta = rng.normal(size=(n_units, n_contexts, D)) * np.logspace(0, -1, n_units)[:, None, None]
    f = np.einsum("nhd,nd->n", zeta[np.arange(n_units), contexts], X)
    return X, np.where(f > 0, 1.0, -1.0), contexts


def all_contexts(n_units: int, n_contexts: int) -> NDArray[np.int64]:
    """(C^H, H): every combination of contexts."""
    return np.array(list(np.ndindex(*(n_contexts,) * n_units)))


def membership(n_units: int, n_contexts: int) -> Floats:
    """The C^H x H C matrix that takes zeta to its predictors."""
    return np.eye(n_contexts)[all_contexts(n_units, n_contexts)].reshape(-1, n_units * n_contexts)


def l2_norm(zeta: Floats) -> float:
    """`||beta||_2` of the predictors of zeta (H, C, D): by its main effects, inf beyond float64."""
    n_units, n_contexts, _ = zeta.shape
    with np.errstate(over="ignore"):
        factor = float(np.exp(0.5 * n_units * math.log(n_contexts)))
    rms = MainEffects.of_coefficients(zeta).rms_norm()
    return factor * rms if rms > 0 else 0.0


def nlgp_covariance(n_inputs: int, xi: float, gain: float) -> Floats:
    """(D, D) covariance of one class of `make_nlgp`, with ones on the diagonal.

    <x_i x_j> = arcsin(s Sigma_ij) / arcsin(s),   s = gain^2 / (1 + gain^2)
    """
    s = gain**2 / (1 + gain**2)
    row = np.arcsin(s * np.clip(ring_kernel(n_inputs, xi), -1.0, 1.0)) / np.arcsin(s)
    index = np.arange(n_inputs)
    return np.asarray(row[(index[:, None] - index[None, :]) % n_inputs])


def single_pulse_population(n_inputs: int, xi_1: int, xi_0: int) -> RingData:
    """All 2 D single pulses, each once: averages over these rows are the population's moments."""
    pulses = [np.roll(np.arange(n_inputs) < xi, s) for xi in (xi_1, xi_0) for s in range(n_inputs)]
    return RingData(np.array(pulses), np.repeat([1.0, 0.0], n_inputs), "every pulse once")


def single_pulse_second_moment(n_inputs: int, length: int) -> Floats:
    """(D, D) moments `<x_i x_j>` of one class; the mean is `length / D` everywhere.

    A run covers both ends of the shorter way d around if it starts in one of `length - d`
    places, and both ends of the longer way, D - d, in `length - (D - d)`.
    """
    index = np.arange(n_inputs)
    d = np.abs(index[:, None] - index[None, :])
    counts = np.maximum(length - d, 0) + np.maximum(length - (n_inputs - d), 0)
    return np.where(d == 0, length, counts) / n_inputs


# Closed forms

A, B = 2.0, 1.0


def quadrants() -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Exclusive or on (+-A, +-B), unit h gated by the sign of coordinate h.

    In one context of unit 1 the signed inputs y x cancel in the second coordinate and add up in
    the first, in unit 0 the other way round; equal multipliers give ||v_1|| = sqrt(8) lam A and
    ||v_0|| = sqrt(8) lam B. So unit 0 is dead, with dual norm B / A, the optimum is
    4 lam = sqrt(2) / A, and zeta[1, c] = (-+1 / A, 0).
    """
    X = np.array([[A, B], [-A, -B], [-A, B], [A, -B]])
    return X, np.array([1.0, 1.0, -1.0, -1.0]), (X >= 0).astype(np.int64)


def quadrants_zeta(unit: int) -> Floats:
    """Coefficients of margin 1 that use one unit alone: the better one (1) or the worse (0)."""
    zeta = np.zeros((2, 2, 2))
    zeta[unit, :, 1 - unit] = np.array([-1.0, 1.0]) / (B if unit == 0 else A)
    return zeta


def rays() -> tuple[Floats, Floats, NDArray[np.int64]]:
    """H = 1, C = 2: one hard-margin SVM a context, (1/2, 0) and (1, 0); row 1 has slack."""
    X = np.array([[2.0, 0.0], [-3.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    return X, np.array([1.0, -1.0, 1.0, -1.0]), np.array([[0], [0], [1], [1]])


RAYS_ZETA = np.array([[[0.5, 0.0], [1.0, 0.0]]])

# Orthogonally separable: w_plus = (1/3, 1/3) = 1/9 (2, 1) + 1/9 (1, 2) and w_minus = (-1, 0)
# = 5/7 (-1, 0.4) + 2/7 (-1, -1), each with two support examples, which span the plane.
PLANE = np.array([[2, 1], [1, 2], [3, 2], [-1, 0.4], [-1, -1], [-2, -0.5]])
PLANE_LABELS = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
