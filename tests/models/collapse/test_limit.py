"""Unconstrained features: closed forms, bounds and stationary points."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
from experiments.collapse import row
from implicit_bias.limits import certify_collapse, solve_collapse


def root(matrix: np.ndarray) -> np.ndarray:
    """The root of a symmetric matrix, by its eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.where(values > 1e-9, values, 0))) @ vectors.T


def centred(K: int) -> np.ndarray:
    return np.eye(K) - 1 / K


@pytest.mark.parametrize("K", [2, 3, 5, 30])
def test_classes_of_one_size_are_a_simplex_equiangular_tight_frame(K) -> None:
    limit = solve_collapse(class_sizes=[7] * K).require()
    frame = (K * np.eye(K) - 1) / (K - 1)
    np.testing.assert_allclose(limit.feature_cosines, frame, atol=1e-9)
    np.testing.assert_allclose(limit.classifier_cosines, frame, atol=1e-9)
    # Self-dual: classifiers are features, but for one factor.
    unit = limit.features / limit.feature_norms[:, None]
    np.testing.assert_allclose(limit.classifiers / limit.classifier_norms[:, None], unit, atol=1e-9)
    assert limit.objective == pytest.approx((K - 1) * np.sqrt(7), rel=1e-12)
    assert limit.gap < 1e-10 and limit.residual < 1e-10


@pytest.mark.parametrize("sizes", [(10, 10, 1, 1), (100, 100, 100, 1, 1, 1), (7, 1, 3)])
def test_other_sizes_have_the_closed_form_of_simplex_encoded_labels(sizes) -> None:
    D, P = np.diag(np.array(sizes, dtype=float)), centred(len(sizes))
    limit = solve_collapse(np.repeat(np.arange(len(sizes)), sizes)).require()
    np.testing.assert_allclose(limit.scores, P, atol=1e-12)
    assert limit.objective == pytest.approx(np.trace(root(P @ D @ P)), rel=1e-9)
    np.testing.assert_allclose(limit.classifiers @ limit.classifiers.T, root(P @ D @ P), atol=1e-9)
    thin = np.diag(np.array(sizes) ** -0.5)
    products = thin @ root(np.sqrt(D) @ P @ np.sqrt(D)) @ thin
    np.testing.assert_allclose(limit.features @ limit.features.T, products, atol=1e-9)
    np.testing.assert_allclose(limit.features @ limit.classifiers.T, P, atol=1e-9)


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_one_column_a_class_has_the_optimum_of_all_samples(seed) -> None:
    found = row(seed)
    assert found["agrees"] and found["status"] == "SOLVED", found


def test_weight_decay_has_the_root_of_one_equation_for_classes_of_one_size() -> None:
    K, n, decay = 4, 5, 0.01
    limit = solve_collapse(class_sizes=[n] * K, weight_decay=decay).require()
    # Of scores a P the loss is log(1 + (K - 1) exp(-a)), the norm a sqrt(n) (K - 1).
    slope = decay * np.sqrt(n) * (K - 1)
    a = np.log((K - 1) * (1 - slope) / slope)
    np.testing.assert_allclose(limit.scores, a * centred(K), atol=1e-6)
    value = np.log1p((K - 1) * np.exp(-a)) + slope * a
    assert limit.objective == pytest.approx(value, rel=1e-9)
    again = certify_collapse(limit.scores, class_sizes=[n] * K, weight_decay=decay)
    assert again.status is ib.Status.SOLVED and again.residual < 1e-5
    worse = certify_collapse(1.1 * limit.scores, class_sizes=[n] * K, weight_decay=decay)
    assert worse.status is ib.Status.INACCURATE and worse.objective > limit.objective


def test_much_decay_leaves_no_features() -> None:
    limit = solve_collapse(class_sizes=[2, 2, 2], weight_decay=1.0).require()
    assert limit.rank == 0 and not limit.features.any() and np.isnan(limit.feature_cosines).all()


def test_depth_prefers_a_square_and_the_simplex_stays_a_strict_local_optimum() -> None:
    deep = solve_collapse(class_sizes=[1] * 4, depth=6, n_starts=1)
    # (2 (K / (2 - 2 cos(2 pi / K)))^(2/L))^(L/2) of the square, (K - 1)^(L/2) of the simplex.
    np.testing.assert_allclose(deep.costs, [16, 27], rtol=1e-9)
    assert deep.rank == 2 and deep.dual_objective == pytest.approx(3, rel=1e-9)
    assert deep.residual < 1e-8 and deep.status.severity < 3
    np.testing.assert_allclose(deep.features @ deep.classifiers.T, deep.scores, atol=1e-9)
    # Some margins are not active: first order is proved by its multipliers, and no more.
    again = certify_collapse(deep.scores, class_sizes=[1] * 4, dual=deep.dual, depth=6)
    assert again.status is ib.Status.STATIONARY and again.residual < 1e-8
    sizes = (9, 2, 1, 1, 4)
    seli = certify_collapse(centred(5), class_sizes=sizes, depth=5)
    assert seli.status is ib.Status.LOCAL_OPTIMUM and seli.residual < 1e-9
    # Of two classes scores have rank one, which costs the same at any depth.
    two = solve_collapse(class_sizes=[5, 3], depth=7).require()
    assert two.objective == pytest.approx(np.sqrt(8 / 2), rel=1e-12)


def test_fewer_dimensions_cost_no_less_than_the_bound_and_have_such_features() -> None:
    narrow = solve_collapse(class_sizes=[3, 3, 1, 1], dimension=2, n_starts=2)
    wide = solve_collapse(class_sizes=[3, 3, 1, 1])
    assert narrow.rank == 2 and narrow.features.shape == (4, 2)
    assert narrow.dual_objective == wide.dual_objective < narrow.objective
    assert narrow.residual < 1e-8
    again = certify_collapse(
        5 * narrow.scores, class_sizes=[3, 3, 1, 1], dual=narrow.dual, dimension=2
    )
    assert again.objective == pytest.approx(narrow.objective, rel=1e-9)
    assert again.status in (ib.Status.STATIONARY, ib.Status.LOCAL_OPTIMUM)


def test_scores_from_anywhere_are_certified_and_others_than_the_best_are_no_limit() -> None:
    sizes = (4, 1, 1)
    rng = np.random.default_rng(0)
    for shift in 0.2 * rng.normal(size=(5, 3, 3)):
        found = certify_collapse(centred(3) + shift, class_sizes=sizes)
        assert found.status is ib.Status.INACCURATE and found.gap > 1e-4 and found.residual > 1e-3
    assert certify_collapse(3 * centred(3), class_sizes=sizes).status is ib.Status.SOLVED
    with pytest.raises(ValueError, match="`scores` have rank 3, more than features of"):
        certify_collapse(centred(4), class_sizes=[1] * 4, dimension=2)
    with pytest.raises(ValueError, match="`scores` must have the highest of every row"):
        certify_collapse(-centred(3), class_sizes=sizes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give `labels` (n,), or `class_sizes` (K,) in their place"),
        ({"labels": [0, 1], "class_sizes": [1, 1]}, "one of the two"),
        ({"class_sizes": [3, 0]}, "`class_sizes` must give every class whole numbers of samples"),
        ({"class_sizes": [3, np.nan]}, "got nan of class 1"),
        ({"class_sizes": [3, 1.5]}, "got 1.5 of class 1"),
        ({"class_sizes": [4]}, "`class_sizes` must be of two classes at least"),
        ({"labels": [0, 0]}, "`labels` must be of two classes at least"),
        ({"labels": [0, 2, 2]}, "got 0 of class 1"),
        ({"class_sizes": [1, 1], "dimension": 0}, "`dimension` must be at least 1"),
        ({"class_sizes": [1, 1, 1], "dimension": 1}, "`dimension` 1 separates no 3 classes"),
        ({"class_sizes": [1, 1], "depth": 1}, "`depth` must be at least 2"),
        ({"class_sizes": [1, 1], "weight_decay": 0.0}, "`weight_decay` must be positive"),
        ({"class_sizes": [1, 1], "weight_decay": np.nan}, "`weight_decay`"),
        ({"class_sizes": [1, 1, 1], "weight_decay": 0.1, "depth": 3}, "`depth` 2 and `dimension`"),
        ({"class_sizes": [1] * 4, "dimension": 2, "n_starts": 0}, "`n_starts` must be at least 1"),
        ({"class_sizes": [1, 1], "tol": 1.5}, "`tol` must lie strictly between 0 and 1"),
    ],
)
def test_what_is_malformed_is_refused_by_its_name(given, message) -> None:
    with pytest.raises(ValueError) as refused:
        solve_collapse(**given)
    assert message in str(refused.value)
