"""Bundles of paths of gated convolutions against sums over all weights and all paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from implicit_bias.kernels import bundle_kernel

D, SIZE, LAYERS, SIGMA = 5, 2, 3, 0.7
RNG = np.random.default_rng(8)
X, GATES = RNG.normal(size=(4, D)), RNG.uniform(size=(4, LAYERS, D))
FLAT = GATES.reshape(4, -1)


def outputs(weights: np.ndarray, X: np.ndarray, gates: np.ndarray) -> np.ndarray:
    """The forward pass as it is defined, position by position."""
    signal = X
    for theta, opened in zip(weights, np.moveaxis(gates, 1, 0), strict=True):
        ahead = [np.take(signal, (np.arange(D) + k) % D, axis=1) for k in range(len(theta))]
        signal = opened * sum(t * part for t, part in zip(theta, ahead, strict=True))
    return signal.mean(axis=1)


def every_sign():
    for signs in product((-SIGMA, SIGMA), repeat=LAYERS * SIZE):
        yield np.reshape(signs, (LAYERS, SIZE))


def test_the_kernel_is_the_second_moment_of_outputs_over_all_sign_patterns() -> None:
    found = [outputs(weights, X, GATES) for weights in every_sign()]
    moment = np.mean([np.outer(f, f) for f in found], axis=0)
    kernel = bundle_kernel(X, FLAT, kernel_size=SIZE)
    np.testing.assert_allclose(SIGMA ** (2 * LAYERS) * kernel, moment, atol=1e-8)
    np.testing.assert_allclose(SIGMA ** (2 * LAYERS) * kernel, moment, rtol=1e-12)
    other = bundle_kernel(X[:1], FLAT[:1], X[1:], FLAT[1:], kernel_size=SIZE)
    np.testing.assert_allclose(other, kernel[:1, 1:], rtol=1e-12)


def test_the_mean_tangent_kernel_is_the_same_one_a_weight_of_each_layer_less() -> None:
    # A score is linear in each weight: its derivative is the difference of scores at 1 and 0.
    mean = np.zeros((4, 4))
    for weights in every_sign():
        for at in np.ndindex(weights.shape):
            one, none = weights.copy(), weights.copy()
            one[at], none[at] = 1, 0
            slope = outputs(one, X, GATES) - outputs(none, X, GATES)
            mean += np.outer(slope, slope) / 2 ** (LAYERS * SIZE)
    kernel = bundle_kernel(X, FLAT, kernel_size=SIZE)
    np.testing.assert_allclose(LAYERS * SIGMA ** (2 * LAYERS - 2) * kernel, mean, rtol=1e-12)


def test_bundles_are_the_paths_of_equal_offsets() -> None:
    # Three positions, kernels of two, three convolutions: 8 bundles of 3 paths.
    X, gates = RNG.normal(size=(20, 3)), RNG.uniform(size=(20, 3, 3))
    features = []
    for offsets in product(range(2), repeat=3):
        total = np.zeros(20)
        for last in range(3):
            position, activity = last, np.ones(20)
            for layer, offset in zip((2, 1, 0), offsets[::-1], strict=True):
                activity = activity * gates[:, layer, position]
                position = (position + offset) % 3
            total += X[:, position] * activity
        features.append(total / 3)
    kernel = bundle_kernel(X, gates.reshape(20, -1), kernel_size=2)
    np.testing.assert_allclose(kernel, np.transpose(features) @ features, atol=1e-12)
    assert np.linalg.matrix_rank(kernel) == 8


def test_rotating_a_sample_changes_nothing_if_and_only_if_its_gates_rotate_with_it() -> None:
    kernel = bundle_kernel(X, FLAT, kernel_size=SIZE)
    turned, with_it = np.roll(X[:1], 2, axis=1), np.roll(GATES[:1], 2, axis=2).reshape(1, -1)
    same = bundle_kernel(turned, with_it, X, FLAT, kernel_size=SIZE)
    np.testing.assert_allclose(same, kernel[:1], rtol=1e-12)
    fixed = bundle_kernel(turned, FLAT[:1], X, FLAT, kernel_size=SIZE)
    assert np.abs(fixed - kernel[:1]).max() > 0.01 * kernel.max()


@pytest.mark.parametrize(
    ("gates", "kernel_size", "message"),
    [
        (FLAT[:, :7], 2, "a multiple of 5 columns"),
        (FLAT, 6, r"`kernel_size` must lie in 1 \.\. 5, got 6"),
        (FLAT[:3], 2, "a row a sample"),
    ],
)
def test_gates_that_are_no_layers_of_positions_are_refused(gates, kernel_size, message) -> None:
    with pytest.raises(ValueError, match=message):
        bundle_kernel(X, gates, kernel_size=kernel_size)
