"""Points labelled by four tied predictors, the contexts that cut the plane into quadrants."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_bias import (
    HyperplaneContexts,
    HyperplaneGates,
    Status,
    solve_frelu_svm,
    solve_gln_svm,
    solve_linear_svm,
)
from implicit_bias.data import quadrant_dataset
from implicit_bias.datasets import make_quadrants

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_networks_with_these_gates_separate_the_points_and_one_predictor_does_not(seed) -> None:
    X, y = make_quadrants(150, random_state=seed)
    contexts = HyperplaneContexts(2, 2, cutoffs="axes").fit_transform(X)
    assert solve_gln_svm(X, y, contexts).status is Status.SOLVED
    gates = HyperplaneGates(2, cutoffs="axes").fit_transform(X)
    assert solve_frelu_svm(X, y, gates).status is Status.SOLVED
    assert solve_linear_svm(X, y).status is Status.NOT_SEPARABLE


@pytest.mark.parametrize("seed", SEEDS)
def test_both_classes_lie_along_either_axis_and_in_the_square(seed) -> None:
    X, y = make_quadrants(2000, random_state=seed)
    assert np.all(np.abs(X[:, :2]) <= 1)
    assert np.all(X[:, 2] == 1)
    # An hourglass: far out along x_1 they are +1, far out along x_2 they are -1.
    ends = np.abs(X[:, 1]) < 0.05
    assert np.mean(y[ends & (np.abs(X[:, 0]) > 0.9)]) > 0.5
    ends = np.abs(X[:, 0]) < 0.05
    assert np.mean(y[ends & (np.abs(X[:, 1]) > 0.9)]) < -0.5


def test_within_a_quadrant_the_classes_are_apart_by_twice_the_gap() -> None:
    X, y = make_quadrants(4000, gap=0.1, random_state=3)
    nearest = np.inf
    for s1 in (-1, 1):
        for s2 in (-1, 1):
            inside = (s1 * X[:, 0] > 0) & (s2 * X[:, 1] > 0)
            a, b = X[inside & (y > 0), :2], X[inside & (y < 0), :2]
            nearest = min(nearest, np.linalg.norm(a[:, None] - b, axis=2).min())
    assert 0.2 < nearest < 0.3


def test_one_seed_gives_one_data_set_in_two_disjoint_parts() -> None:
    data = quadrant_dataset(n_train=40, n_val=60, random_state=5)
    assert (data.X_train.shape, data.X_val.shape) == ((40, 3), (60, 3))
    assert data.digest() == quadrant_dataset(n_train=40, n_val=60, random_state=5).digest()
    assert data.digest() != quadrant_dataset(n_train=40, n_val=60, random_state=6).digest()
    assert len(np.unique(np.vstack([data.X_train, data.X_val]), axis=0)) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "`n` must be at least 1"),
        ({"n": 5, "gap": 1.0}, "`gap` must lie in"),
        ({"n": 5, "gap": np.nan}, "`gap` must be finite"),
        ({"n": 500, "gap": 0.99, "random_state": 3}, "leaves room for"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_quadrants(**arguments)


def test_contexts_of_the_axes_are_the_signs_of_the_coordinates(tmp_path) -> None:
    X = np.array([[1.0, -2.0, 3.0, -4.0], [-1.0, 2.0, 0.0, 4.0]])
    gating = HyperplaneContexts(2, 2, cutoffs="axes", random_state=7).fit(X)
    assert gating.transform(X).tolist() == [[1, 0], [0, 1]]
    # Hyperplane j of unit h is the coordinate k h + j, the first one the lowest bit.
    gating = HyperplaneContexts(2, 4, cutoffs="axes").fit(X)
    assert gating.transform(X).tolist() == [[1, 1], [2, 3]]
    gating.save(tmp_path / "gating.safetensors")
    loaded = HyperplaneContexts.load(tmp_path / "gating.safetensors")
    assert loaded.cutoffs == "axes"
    assert loaded.transform(X).tolist() == [[1, 1], [2, 3]]


def test_more_hyperplanes_than_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="one input for each of 4 hyperplanes, got 3"):
        HyperplaneContexts(2, 4, cutoffs="axes").fit(np.ones((2, 3)))
