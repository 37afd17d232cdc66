"""Claims that are false, each with a counterexample in which the ratio must differ."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import implicit_bias as ib
from implicit_bias.limits import solve_adamw, solve_fit

Floats = NDArray[np.float64]


def gated(seed: int) -> tuple[Floats, Floats, Floats]:
    """Ten samples of three inputs under six gates, which interpolate them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 3))
    gates = (X @ rng.normal(size=(3, 6)) > 0).astype(float)
    gates[:, 0] = 1
    return X, rng.normal(size=10), gates


def trained_norm(X: Floats, y: Floats, gates: Floats, log_start: float) -> tuple[float, float]:
    """sum_h ||zeta_h|| of a balanced frozen-gate network after descent, and its loss."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(gates.shape[1], 3))
    W *= np.exp(-log_start / 2) / np.linalg.norm(W, axis=1, keepdims=True)
    a = np.linalg.norm(W, axis=1) * np.sign(rng.normal(size=len(W)))
    for _ in range(60000):
        hidden = gates * (X @ W.T)
        error = hidden @ a - y
        slope_a, V = hidden.T @ error, (gates * error[:, None]).T @ X
        rate = 0.02 / (1 + np.abs(slope_a).max() / (np.abs(a).max() + 1e-300)) ** 0.5
        a, W = a - rate * slope_a, W - rate * a[:, None] * V
        if error @ error < 1e-12:
            break
    norms = np.abs(a) * np.linalg.norm(W, axis=1)
    return float(norms.sum()), float(error @ error)


def test_small_balanced_starts_do_not_interpolate_with_the_least_group_norm() -> None:
    X, y, gates = gated(0)
    least = solve_fit(X, y, gates, loss="squared").require().objective
    ratios = []
    for log_start in (10, 24):
        norm, loss = trained_norm(X, y, gates, log_start)
        assert loss < 1e-6
        ratios.append(least / norm)
    assert max(ratios) < 0.95 and ratios[1] < ratios[0]  # and a smaller start is no better


def test_matrix_factorisation_does_not_end_at_the_least_trace() -> None:
    """Of positive semidefinite 4 x 4 matrices with w12 = w34 = 3, w13 = 1 the least trace is 12."""
    seen, wanted = ([0, 2, 0], [1, 3, 2]), np.array([3.0, 3.0, 1.0])
    traces = []
    for alpha in (0.1, 1e-3, 1e-6):
        U = alpha * np.eye(4)
        for _ in range(60000):
            error = np.zeros((4, 4))
            error[seen] = (U @ U.T)[seen] - wanted
            if np.abs(error).max() < 1e-9:
                break
            U = U - 0.01 * (error + error.T) @ U
        assert np.abs(error).max() < 1e-8
        traces.append(float(np.trace(U @ U.T)))
    assert traces == pytest.approx([12.14, 13.88, 17.43], abs=0.1)
    assert 12 / traces[1] < 0.95


def linear() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4)
    return rng.normal(size=(6, 20)), rng.normal(size=6)


@pytest.mark.parametrize("step", [0.05, 0.005])
def test_sign_descent_on_squared_errors_does_not_end_at_the_least_largest_entry(step) -> None:
    X, y = linear()
    m = X.shape[1]
    # Variables w and t: the largest entry.
    both = np.vstack([np.hstack([np.eye(m), -np.ones((m, 1))]),
                      np.hstack([-np.eye(m), -np.ones((m, 1))])])  # fmt: skip
    least = linprog(
        np.r_[np.zeros(m), 1.0], A_ub=both, b_ub=np.zeros(2 * m),
        A_eq=np.hstack([X, np.zeros((6, 1))]), b_eq=y, bounds=(None, None),
    ).fun  # fmt: skip
    w = np.zeros(m)
    for t in range(6000):  # steps fall once they only swing
        w = w - step / (1 + max(0, t - 1000) / 100) * np.sign(X.T @ (X @ w - y))
    assert np.abs(X @ w - y).max() < 0.02
    assert least / np.abs(w).max() < 0.8
    # What is true: with decoupled decay just above 1 / least the ball binds, and its optimum is
    # nearly the interpolant of least largest entry.
    ball = solve_fit(X, y, loss="squared", radius=least / 1.001, norm="linf").require()
    assert ball.binds and ball.mean_loss < 1e-4 * ball.mean_loss_at_zero


def test_polar_steps_end_at_the_interpolant_of_least_norm_in_every_norm() -> None:
    """Muon's spectral interpolant is every optimiser's that stays in the row space."""
    rng = np.random.default_rng(4)
    X, Y = rng.normal(size=(5, 12)), rng.normal(size=(5, 3))
    W = np.zeros((3, 12))
    for t in range(20000):
        G = (W @ X.T - Y.T) @ X
        left, _, right = np.linalg.svd(G, full_matrices=False)
        W = W - 0.05 / (1 + t / 30) * left @ right
    out = W - W @ np.linalg.pinv(X) @ X
    assert np.abs(out).max() < 1e-10
    np.testing.assert_allclose(W, (np.linalg.pinv(X) @ Y).T, atol=5e-3)


def test_adamw_is_not_adam_with_an_l2_penalty() -> None:
    X, y = separable()
    adamw = solve_adamw(X, y, weight_decay=0.1, eps=1e-8).require().zeta
    ridge = solve_fit(X, y, penalty=0.1, norm="ridge").require().zeta
    assert cosine(adamw, ridge) < 0.97
    largest = [(y * (X @ w)).min() / np.abs(w).max() for w in (adamw, ridge)]
    assert largest[0] > 1.5 * largest[1] > 0


def test_adamw_of_a_fixed_eps_has_the_margin_of_l2_as_the_decay_goes_to_0() -> None:
    """Slopes fall below eps, where the barrier is a ridge; without eps the margin is l_inf's."""
    X, y = separable()
    margin = ib.solve_linear_svm(X, y).zeta
    decays = (0.1, 1e-3, 1e-5)
    found = [solve_adamw(X, y, weight_decay=lam, eps=1e-8).require().zeta for lam in decays]
    near = [cosine(w, margin) for w in found]
    assert near == sorted(near) and near[0] < 0.99 < 0.997 < near[-1]
    assert np.abs(found[-1]).max() * 1e-5 < 1e-3  # far inside of the box
    box = solve_fit(X, y, radius=10.0, norm="linf").require().zeta
    assert cosine(box, margin) < near[0] + 0.005 and np.abs(box).max() == pytest.approx(10)


def separable() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 20)), np.sign(rng.normal(size=12))


def cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
