"""Non-negative least squares beside SciPy's active sets, and on matrices without full rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from solvers import nonnegative_fit


def fit(A: np.ndarray, b: np.ndarray, **how: int) -> np.ndarray:
    return nonnegative_fit(torch.tensor(A.T @ A), torch.tensor(A.T @ b), **how).numpy()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", [(80, 40), (40, 40), (200, 150)])
def test_it_is_the_least_squares_solution_of_an_active_set_method(seed, shape) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3, size=shape[1])
    b = A @ np.maximum(rng.normal(size=shape[1]), 0) / np.abs(A).max() + rng.normal(size=shape[0])
    expected, _ = nnls(A, b)
    lam = fit(A, b)
    assert 0 < (lam > 0).sum() < shape[1]
    # In units of unit columns: the matrix is square, hence ill-conditioned, in one case.
    sizes = np.linalg.norm(A, axis=0)
    np.testing.assert_allclose(lam * sizes, expected * sizes, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_without_full_rank_the_fit_is_as_good(seed) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(10, 30))
    A[:, 20:] = A[:, :10]  # every one of ten columns twice
    A[:, 5] = 0
    b = rng.normal(size=10) + 0.1 * A.sum(axis=1)
    lam, (_, residual) = fit(A, b), nnls(A, b)
    assert lam.min() >= 0
    assert lam[5] == 0
    assert np.linalg.norm(A @ lam - b) <= residual * (1 + 1e-6) + 1e-6 * np.linalg.norm(b)


def test_nothing_is_fitted_where_every_column_points_away() -> None:
    A = np.array([[1.0, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(fit(A, np.array([-1.0, -1.0])), [0, 0])


@pytest.mark.parametrize("most", [0, 1])
def test_exchanges_that_do_not_converge_are_left_to_an_active_set_method(most) -> None:
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(40, 20)), rng.normal(size=40)
    np.testing.assert_allclose(fit(A, b, max_exchanges=most), fit(A, b), rtol=1e-8, atol=1e-10)


def test_no_guess_changes_the_answer() -> None:
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(200, 150)), rng.normal(size=200)
    gram, target = torch.tensor(A.T @ A), torch.tensor(A.T @ b)
    alone = nonnegative_fit(gram, target)
    for guess in (alone, 1 - (alone > 0).double()):
        torch.testing.assert_close(nonnegative_fit(gram, target, guess), alone)
    # The answer as a guess takes one round, bit for bit that of as many rounds as it likes.
    once = nonnegative_fit(gram, target, alone, max_exchanges=1)
    assert torch.equal(once, nonnegative_fit(gram, target, alone))


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_exchanges_that_leave_no_fewer_wrong_signs_are_given_up_early(seed, monkeypatch) -> None:
    # Many samples, few weights, a little complementarity: the KKT fit of a linear network.
    rng = np.random.default_rng(seed)
    w, X = rng.normal(size=5), rng.normal(size=(100, 5))
    margins = np.abs(X @ w)
    A = np.vstack([(X * np.sign(X @ w)[:, None]).T, 1e-3 * (margins / margins.min() - 1)])
    b, factorised, cholesky = np.append(w, 0), [], torch.linalg.cholesky_ex
    monkeypatch.setattr(
        torch.linalg, "cholesky_ex", lambda block: factorised.append(0) or cholesky(block)
    )
    lam, (_, residual) = fit(A, b), nnls(A, b)
    assert len(factorised) <= 30
    assert np.linalg.norm(A @ lam - b) == pytest.approx(residual, rel=1e-6)
