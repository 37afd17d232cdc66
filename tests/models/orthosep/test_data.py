"""Orthogonally separable data: the check and the generator."""

import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from implicit_bias.data import orthosep_dataset
from implicit_bias.datasets import is_orthogonally_separable, make_orthosep


def test_the_check_agrees_with_the_definition_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for trial in range(60):
        X, y = make_orthosep(8, 3, random_state=trial)
        X += 0.15 * rng.normal(size=X.shape)
        products = X @ X.T
        same = y[:, None] == y
        offends = np.where(same, products <= 0, products > 0)
        result = is_orthogonally_separable(X, y)
        verdicts.append(bool(result))
        assert bool(result) == (not offends.any())
        assert result.n_offending == np.triu(offends).sum()
        assert result.n_pairs == 36
        assert result.smallest_within == pytest.approx(products[same].min())
        assert result.largest_across == pytest.approx(products[~same].max(initial=-math.inf))
    assert 5 < sum(verdicts) < 55


def test_the_check_names_the_offending_pair_and_its_inner_product() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.5, 0.5], [-1.0, 0.1]])
    across = is_orthogonally_separable(X, np.array([1.0, 1.0, -1.0, -1.0]))
    # Pairs (0, 2), (1, 2) and (2, 3) offend; the first two have the same, largest cosine.
    assert not across
    assert across.pair == (0, 2)
    assert across.product == 0.5
    assert across.n_offending == 3
    assert "samples 0 and 2 have different labels but <x_0, x_2> = 0.5 > 0" in across.message
    within = is_orthogonally_separable(X[[0, 3]], np.array([1.0, 1.0]))
    assert within.pair == (0, 1)
    assert "samples 0 and 1 have equal labels but <x_0, x_1> = -1 <= 0" in within.message


def test_the_offending_pair_is_found_in_any_block_of_a_large_set() -> None:
    X, y = make_orthosep(2500, 4, random_state=0)
    assert is_orthogonally_separable(X, y)
    j = int(np.flatnonzero(y[1500:] == -y[2100])[0]) + 1500  # in a later block
    X[2100] *= -1.0  # on the wrong side: of its own class too
    result = is_orthogonally_separable(X, y)
    assert 2100 in result.pair
    own, other = int(np.sum(y == y[2100])), int(np.sum(y == -y[2100]))
    assert result.n_offending == own - 1 + other
    X[2100], y[2100] = X[j], -y[j]
    assert is_orthogonally_separable(X, y).pair == (min(j, 2100), max(j, 2100))


def test_a_zero_row_offends_with_itself() -> None:
    result = is_orthogonally_separable(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([1.0, -1.0]))
    assert result.pair == (1, 1)
    assert "sample 1 is zero" in result.message


def test_orthogonal_classes_are_separable_though_their_products_round_to_more_than_0() -> None:
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.normal(size=(40, 40)))
    X = np.vstack([Q[:, 0] + 0.3 * Q[:, 1], Q[:, 0], Q[:, 2], Q[:, 2] - 0.3 * Q[:, 3]])
    y = np.array([1.0, 1.0, -1.0, -1.0])
    X[2] += 2e-16 * X[0]
    assert 0 < (X[:2] @ X[2:].T).max() < 1e-15
    assert is_orthogonally_separable(X, y)
    X[2] += 1e-12 * X[0]
    assert not is_orthogonally_separable(X, y)


def test_separable_data_need_not_fit_into_opposite_orthants() -> None:
    # E3.6: a cone of half-angle 44 degrees around e has pairwise products above cos 88. Three
    # orthonormal vectors cannot all be within 46 degrees of +-e: their squared cosines sum to 1.
    angle = np.deg2rad(44)
    turns = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    X = np.stack([np.sin(angle) * np.cos(turns), np.sin(angle) * np.sin(turns),
                  np.full(48, np.cos(angle))], axis=1)  # fmt: skip
    assert is_orthogonally_separable(X, np.ones(48))
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(500)]
    assert max(np.max(np.min(X @ Q * np.sign(X.sum(0) @ Q), axis=(0, 1))) for Q in bases) < 0


@pytest.mark.parametrize("d", [2, 3])
def test_the_generator_has_the_law_of_rejection_from_a_gaussian(d) -> None:
    draws = np.random.default_rng(7).normal(size=(300_000, d))
    z = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    same_sign = np.all(draws > 0, axis=1) | np.all(draws < 0, axis=1)
    kept = draws[same_sign & (draws @ z >= 0)]
    X, y = make_orthosep(30_000, d, random_state=3)
    share = np.mean(kept[:, 0] > 0)
    assert abs(np.mean(y > 0) - share) < 4 * math.sqrt(0.25 * (1 / 30_000 + 1 / len(kept)))
    directions = np.random.default_rng(8).normal(size=(4, d))
    for v in [*np.eye(d), z, *directions]:
        assert ks_2samp(X @ v, kept @ v).pvalue > 1e-4
    assert np.all(X @ z >= 0)
    assert np.all(y[:, None] * X >= 0)


def test_generated_data_are_separable_and_come_from_random_state_alone() -> None:
    X, y = make_orthosep(random_state=5)
    assert X.shape == (500, 20)
    assert is_orthogonally_separable(X, y)
    np.random.seed(0)
    np.testing.assert_array_equal(make_orthosep(random_state=np.random.default_rng(5))[0], X)
    assert not np.array_equal(make_orthosep(random_state=6)[0], X)
    data = orthosep_dataset(n_train=30, n_val=20, d=5, random_state=5)
    assert data.X_train.shape == (30, 5)
    assert data.X_val.shape == (20, 5)
    everything = np.vstack([data.X_train, data.X_val])
    assert is_orthogonally_separable(everything, np.append(data.y_train, data.y_val))
    with pytest.raises(ValueError, match="`d` must be at least 1"):
        make_orthosep(3, 0)
