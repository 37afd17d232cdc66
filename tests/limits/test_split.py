"""Classes that are separable in part: the split, its proof, the direction and the finite part."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
import solvers
from implicit_bias.limits import solve_multiclass_svm


def planted() -> tuple[np.ndarray, np.ndarray]:
    """Twenty samples that three directions separate, ten that contradict each other in two."""
    rng = np.random.default_rng(3)
    U, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    X2 = np.hstack([rng.normal(size=(10, 2)), np.zeros((10, 4))])
    y2 = np.sign(rng.normal(size=10))
    X1 = rng.normal(size=(20, 6))
    y1 = np.sign(X1 @ np.concatenate([[0, 0], rng.normal(size=4)]))
    return np.vstack([X1, X2]) @ U.T, np.concatenate([y1, y2])


def test_the_planted_split_is_found_and_proved() -> None:
    X, y = planted()
    limit = solve_multiclass_svm(X, (y > 0).astype(int), inseparable="split").require()
    own = (y > 0).astype(int)
    separable = limit.separable[np.arange(30), 1 - own]
    assert separable[:20].all() and not separable[20:].any()
    assert limit.split_bound <= 2.0**-52
    w, beside = limit.zeta[1] - limit.zeta[0], limit.finite[1] - limit.finite[0]
    # One half of the square of the norm: of two rows that are opposite.
    assert limit.objective == pytest.approx(13.98077158 / np.sqrt(2), rel=1e-7)
    assert (y * (X @ w))[:20].min() == pytest.approx(1)
    assert np.abs(X[20:] @ w).max() < 1e-9
    # The finite part: in the span of the ten, where their loss is stationary.
    p = 1 / (1 + np.exp(y * (X @ beside)))[20:]
    assert np.abs((p * y[20:]) @ X[20:]).max() < 1e-10
    basis = np.linalg.svd(X[20:])[2][:2]
    assert basis.T @ (basis @ beside) == pytest.approx(beside, abs=1e-10)
    assert limit.finite_error < 1e-10
    # The proof: positive multipliers at the ten, under which their rows cancel.
    lam = limit.split_dual[np.arange(30), 1 - own]
    assert (lam[20:] > 0).all() and not lam[:20].any()
    assert np.abs((lam * y) @ X).max() < 1e-12 * lam.max()


def test_gradient_descent_comes_near_both_parts() -> None:
    X, y = planted()
    limit = solve_multiclass_svm(X, (y > 0).astype(int), inseparable="split").require()
    w, step = np.zeros(6), 4 / np.linalg.norm(X, 2) ** 2
    for _ in range(100_000):
        w += step * (y / (1 + np.exp(y * (X @ w)))) @ X
    basis = np.linalg.svd(X[20:])[2][:2]
    finite = basis.T @ (basis @ w)
    beside, direction = (one[1] - one[0] for one in (limit.finite, limit.zeta))
    assert finite == pytest.approx(beside, abs=0.03)
    out = w - finite
    assert out @ direction / np.linalg.norm(out) / np.linalg.norm(direction) > 0.995


def test_data_that_separate_throughout_have_no_finite_part() -> None:
    rng = np.random.default_rng(5)
    X, B = rng.normal(size=(24, 9)), rng.normal(size=(3, 9))
    labels = np.argmax(X @ B.T, axis=1)
    for norm in ("l2", "linf"):
        limit = solve_multiclass_svm(X, labels, norm=norm, inseparable="split").require()
        whole = solve_multiclass_svm(X, labels, norm=norm).require()
        assert limit.separable.sum() == 48 and not limit.finite.any()
        assert limit.objective == pytest.approx(whole.objective, rel=1e-8)


def test_data_that_contradict_each_other_throughout_have_no_direction() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    limit = solve_multiclass_svm(X, [0, 1, 1, 0], inseparable="split")
    assert limit.status is ib.Status.SOLVED
    assert not limit.separable.any() and not limit.zeta.any() and limit.finite.any()
    # Cross-entropy is stationary at the finite part.
    shares = np.exp(X @ limit.finite.T)
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.abs((shares - np.eye(2)[[0, 1, 1, 0]]).T @ X).max() < 1e-10


@pytest.mark.parametrize("norm", ["l2", "spectral", "linf"])
def test_several_classes_split_by_pairs(norm) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 8))
    labels = np.argmax(X[:, :3], axis=1)
    mixed = np.flatnonzero(labels < 2)[:8]
    X[mixed, 3:], X[mixed, 2], X[mixed, :2] = 0, -5, rng.normal(size=(8, 2))
    labels[mixed] = rng.integers(0, 2, 8)
    limit = solve_multiclass_svm(X, labels, norm=norm, inseparable="split").require()
    assert limit.separable.sum() == 52
    if norm == "l2":
        assert limit.objective == pytest.approx(32.266440, rel=1e-7)
    scores, finite = X @ limit.zeta.T, X @ limit.finite.T
    relative = scores[np.arange(30), labels][:, None] - scores
    assert relative[limit.separable].min() == pytest.approx(1)
    other = (np.arange(3) != labels[:, None]) & ~limit.separable
    assert np.abs(relative[other]).max() < 1e-8
    # The loss of the pairs that contradict each other is stationary in their span.
    logits = np.where(other, finite - finite[np.arange(30), labels][:, None], -np.inf)
    p = np.exp(logits) / (1 + np.exp(logits).sum(axis=1, keepdims=True))
    p[np.arange(30), labels] = -p.sum(axis=1)
    assert np.abs(p.T @ X).max() < 1e-8


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_labels_of_two_signs_have_the_split_of_two_classes_in_one_vector(norm) -> None:
    X, y = planted()
    limit = ib.solve_linear_svm(X, y, norm=norm, inseparable="split").require()
    classes = (y > 0).astype(int)
    pairs = solve_multiclass_svm(X, classes, norm=norm, inseparable="split").require()
    factor = {"l2": 0.5**0.5, "linf": 0.5}[norm]
    assert pairs.objective == pytest.approx(factor * limit.objective, rel=1e-7)
    assert limit.separable.tolist() == pairs.separable[np.arange(30), 1 - classes].tolist()
    assert limit.finite == pytest.approx(pairs.finite[1] - pairs.finite[0], abs=1e-9)
    assert limit.zeta.shape == (6,) and limit.dual.shape == limit.split_dual.shape == (30,)
    assert (y * limit.predictor(X))[:20].min() == pytest.approx(1)
    assert np.abs((limit.split_dual * y) @ X).max() < 1e-12 * limit.split_dual.max()
    if norm == "l2":
        assert limit.objective == pytest.approx(13.98077158, rel=1e-7)
        # The direction is the sum of its margins' rows, less their part in the span of the others.
        assert (limit.dual * y) @ X == pytest.approx(limit.zeta / limit.objective, abs=1e-6)


def test_equalities_take_part_in_a_split_and_in_its_proof() -> None:
    rng = np.random.default_rng(6)
    A, E = rng.normal(size=(8, 7)), rng.normal(size=(3, 7))
    A[4:] = [[-1.0], [2.0], [1.0], [-1.0]] * A[:4] + rng.normal(size=(4, 3)) @ E
    found = solvers.split_rows(solvers.Rows(A), solvers.Rows(E))
    # On the zeros of E, two rows are opposite to others, and two are parallel.
    ends = [False, True, True, False]
    assert found.separable.tolist() == [*ends, *ends]
    assert found.bound <= 2.0**-52 and (A @ found.B)[found.separable].min() > 0.99
    assert np.abs(E @ found.B).max() < 1e-9 and np.abs((A @ found.B)[~found.separable]).max() < 1e-9
    lam, nu = found.multipliers, found.equality_multipliers
    assert (lam > 0).tolist() == (~found.separable).tolist() and nu.min() < 0 < nu.max()
    assert np.abs(lam @ A + nu @ E).max() < 1e-14 * lam.max()


def test_limits_that_nothing_separates_name_the_way_out() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    for limit, function in (
        (ib.solve_linear_svm(X, [1, 1, -1]), "solve_linear_svm"),
        (solve_multiclass_svm(X, [0, 0, 1]), "solve_multiclass_svm"),
    ):
        assert limit.status is ib.Status.NOT_SEPARABLE
        assert f'{function}(..., inseparable="split")' in limit.advice
    with pytest.raises(ValueError, match="`inseparable` must be"):
        ib.solve_linear_svm(X, [1, 1, -1], inseparable="drop")  # type: ignore[call-overload]
