"""Two vectors that are silent on the other class: against cvxpy, a network, and the theorem's."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias.datasets import make_orthosep
from implicit_bias.models.orthosep import halving_phases
from implicit_bias.networks import BalancedReLU


def positive_data(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features as they come out of a ReLU: two classes around two directions, all positive."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.abs(rng.normal(size=(n, d))) + np.where(y[:, None] > 0, [2.0, 0.5], [0.5, 2.0]).repeat(
        d // 2, axis=1
    )
    return X, y


@pytest.mark.parametrize("seed", range(4))
def test_it_solves_the_programs_that_cvxpy_solves_with_their_duals(seed) -> None:
    X, y = positive_data(14, 6, seed)
    pair = ib.limits.solve_cone_pair(X, y)
    own, other = np.empty(14), np.empty(14)
    for row, (label, w) in enumerate(((1.0, pair.w_plus), (-1.0, pair.w_minus))):
        v = cp.Variable(6)
        margins, silent = X[y == label] @ v >= 1, X[y != label] @ v <= 0
        problem = cp.Problem(cp.Minimize(cp.norm(v)), [margins, silent])
        problem.solve(solver=cp.CLARABEL)
        certificate = pair.certificates[row]
        assert certificate.objective == pytest.approx(problem.value, rel=1e-6)
        assert certificate.proves_optimality(1e-9, 1e-12)
        np.testing.assert_allclose(w, v.value, atol=1e-3 * problem.value)
        assert (X[y == label] @ w).min() > 1 - 1e-9 and (X[y != label] @ w).max() < 1e-9
        lam = pair.multipliers[row]
        assert np.all(lam * np.where(y == label, 1, -1) >= 0)
        np.testing.assert_allclose(lam @ X, w / np.linalg.norm(w), atol=1e-9)
        own[y == label], other[y != label] = margins.dual_value, silent.dual_value
    assert pair.require().objective == pytest.approx(sum(c.objective for c in pair.certificates))
    for tol in (1e-8, 1e-300):
        solved = max(certificate.gap for certificate in pair.certificates) <= tol
        status = ib.limits.solve_cone_pair(X, y, tol=tol).status
        assert status is (ib.Status.SOLVED if solved else ib.Status.INACCURATE)
    # A sample's multiplier at a kink is a share of what it has in its own program.
    assert pair.excess == pytest.approx(max(0.0, np.max(other - own)) / np.max(own), abs=1e-3)


def test_on_orthogonally_separable_data_it_is_the_pair_of_theorem_3_1() -> None:
    X, y = make_orthosep(60, 6, random_state=1)
    pair, limit = ib.limits.solve_cone_pair(X, y), ib.solve_orthosep(X, y).require()
    np.testing.assert_allclose(pair.w_plus, limit.w_plus, atol=1e-6)
    np.testing.assert_allclose(pair.w_minus, limit.w_minus, atol=1e-6)
    assert pair.objective == pytest.approx(limit.objective, rel=1e-7)
    assert pair.excess == 0


def test_in_the_plane_it_is_known_in_closed_form() -> None:
    # <(1, -s), (s, 1)> = 0, and at length 1 / (1 - s^2) the product with (1, s) is 1.
    s = 0.3
    pair = ib.limits.solve_cone_pair([[1.0, s], [s, 1.0]], [1, -1])
    expected = np.array([1.0, -s]) / (1 - s**2)
    np.testing.assert_allclose(pair.w_plus, expected, atol=1e-12)
    np.testing.assert_allclose(pair.w_minus, expected[::-1], atol=1e-12)
    unit = np.linalg.solve([[1.0, s], [s, 1.0]], expected / np.linalg.norm(expected))
    np.testing.assert_allclose(pair.multipliers[0], unit, atol=1e-12)
    assert pair.excess == 0


def test_a_small_network_goes_to_the_pair_where_that_is_a_kkt_point() -> None:
    X, y = positive_data(20, 6, 3)
    assert not ib.datasets.is_orthogonally_separable(X, y)
    pair = ib.limits.solve_cone_pair(X, y)
    assert pair.excess == 0
    network = BalancedReLU(6, 20, init_scale=1e-3, random_state=0)
    settings = ib.TrainingSettings(
        trainer="normalised", batch_size=0, schedule=halving_phases(X, n_phases=5)
    )
    ib.train(network, X, y, None, settings=settings)
    W, a = network.W.detach().numpy(), network.a.detach().numpy()
    norms = np.linalg.norm(W, axis=1)
    live = norms > 1e-2 * norms.max()
    assert {1, -1} == set(np.sign(a[live]))
    with pytest.warns(UserWarning, match="not orthogonally separable"):
        limit = ib.solve_orthosep(X, y)
    for sign, own, theorem in ((1, pair.w_plus, limit.w_plus), (-1, pair.w_minus, limit.w_minus)):
        units = (W / norms[:, None])[live & (np.sign(a) == sign)]
        assert (units @ own).min() > 0.999 * np.linalg.norm(own)
        assert (units @ theorem).max() < 0.95 * np.linalg.norm(theorem)
    margin = float(np.min(y * (np.maximum(X @ W.T, 0) @ a)))
    assert margin / float(np.sum(np.abs(a) * norms)) * pair.objective == pytest.approx(1, abs=0.05)


def test_where_products_are_positive_the_two_norms_bound_every_network_from_below() -> None:
    X, y = positive_data(16, 6, 2)
    with pytest.warns(UserWarning, match="not orthogonally separable"):
        limit = ib.solve_orthosep(X, y)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(20000, 6))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    # Multipliers of the joint program at block norm 1: what one unit neuron gets of each class.
    lam = limit.dual / limit.dual_norms.max()
    for label in (1, -1):
        assert (np.maximum(V @ X[y == label].T, 0) @ lam[y == label]).max() <= 1 + 1e-9
    assert ib.limits.solve_cone_pair(X, y).objective > limit.objective * 1.01


def test_classes_that_no_vector_tells_apart_have_none_and_say_so() -> None:
    pair = ib.limits.solve_cone_pair([[1.0, 0.0], [0.0, 1.0], [0.0, -2.0]], [1, -1, -1])
    plus, minus = pair.certificates
    assert math.isinf(minus.gap) and np.isnan(pair.w_minus).all()
    np.testing.assert_allclose(pair.w_plus, [1.0, 0.0], atol=1e-12)
    assert plus.gap < 1e-12 and math.isinf(pair.objective) and math.isnan(pair.excess)
    with pytest.raises(ib.NotCertified, match=r"UNDECIDED: .* inactive on the others"):
        pair.require()
    # Of the smallest examples without a solution least squares makes one that satisfies nothing.
    neither = ib.limits.solve_cone_pair([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]], [1, -1, 1])
    assert all(math.isinf(certificate.gap) for certificate in neither.certificates)
    with pytest.raises(ValueError, match="both labels"):
        ib.limits.solve_cone_pair([[1.0]], [1])
