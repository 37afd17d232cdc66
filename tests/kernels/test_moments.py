"""Moments of the tangent kernel against sums over all weights, and what is printed of them."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from implicit_bias import DGN
from implicit_bias.gates import SoftGates
from implicit_bias.kernels import (
    activation_kernel,
    delta,
    empirical_ntk,
    ntk_moments,
    path_overlap,
)
from implicit_bias.networks import initial_variance

RNG = np.random.default_rng(5)
SIGNS = [(-1.0, 0.5), (1.0, 0.5)]
# Gauss and Hermite's three points have the moments of a Gaussian up to the fifth. An entry of the
# kernel has degree two in a weight, its square degree four.
GAUSSIAN = [(-(3**0.5), 1 / 6), (0.0, 2 / 3), (3**0.5, 1 / 6)]


def over_all_weights(points, shapes, deviations, measure):
    """Mean and variance of `measure(network)` over independent weights on these points."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    first = second = 0.0
    for chosen in product(points, repeat=sum(sizes)):
        values, chances = np.array(chosen).T
        parts = np.split(values, np.cumsum(sizes)[:-1])
        weights = [s * p.reshape(q) for s, p, q in zip(deviations, parts, shapes, strict=True)]
        found, chance = measure(DGN.from_weights(*weights)), chances.prod()
        first, second = first + chance * found, second + chance * found**2
    return first, second - first**2


@pytest.mark.parametrize(
    ("points", "kurtosis", "n_inputs", "widths"),
    [(SIGNS, 1.0, 2, (2, 1)), (SIGNS, 1.0, 1, (2, 2)), (GAUSSIAN, 3.0, 2, (1, 1)),
     (GAUSSIAN, 3.0, 1, (2,)), (SIGNS, 1.0, 2, ())],
)  # fmt: skip
def test_moments_are_those_over_all_weights(points, kurtosis, n_inputs, widths) -> None:
    X, gates = RNG.normal(size=(3, n_inputs)), RNG.uniform(size=(3, sum(widths)))
    shapes = [(b, a) for a, b in zip((n_inputs, *widths), (*widths, 1), strict=True)]
    variance = RNG.uniform(0.3, 2, size=len(shapes))
    mean, spread = over_all_weights(
        points, shapes, np.sqrt(variance), lambda network: empirical_ntk(network, X, gates)
    )
    moments = ntk_moments(X, gates, widths=widths, variance=variance, kurtosis=kurtosis)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(moments.variance, spread, rtol=1e-9, atol=1e-12)
    other = ntk_moments(
        X[:1], gates[:1], X[1:], gates[1:], widths=widths, variance=variance, kurtosis=kurtosis
    )
    np.testing.assert_allclose(other.variance, spread[:1, 1:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [9, 1000])  # 1000: more than one block of rows
def test_one_variance_for_all_layers_gives_the_mean_of_the_theorem_in_blocks_too(n) -> None:
    widths, rate = (20, 30, 25), 0.5
    X, gates = RNG.normal(size=(n, 4)), (RNG.random((n, 75)) < rate).astype(float)
    s2 = initial_variance(widths=widths, gate_rate=rate)
    moments = ntk_moments(X, gates, widths=widths, variance=s2, kurtosis=1.0)
    expected = 4 * s2**3 * (X @ X.T) * path_overlap(gates, widths=widths)
    np.testing.assert_allclose(moments.mean, expected, rtol=1e-12, atol=1e-12 * abs(expected).max())
    # Behind as many open gates as are expected the diagonal is depth times the squared input.
    exact = ntk_moments(X, np.ones((n, 75)), widths=widths, variance=rate * s2, kurtosis=1.0)
    np.testing.assert_allclose(exact.mean.diagonal(), 4 * np.sum(X**2, axis=1), rtol=1e-12)


def deep_linear(depth: int, width: int, kurtosis: float) -> float:
    gates = np.ones((1, width * (depth - 1)))
    moments = ntk_moments(
        [[1.0]], gates, widths=(width,) * (depth - 1), variance=1 / width, kurtosis=kurtosis
    )
    return float(moments.variance[0, 0])


def test_the_variance_grows_like_the_cube_of_the_depth_over_the_width_not_as_printed() -> None:
    width = 4000
    for depth in (4, 8, 16):
        leading = 2 / 3 * (depth - 1) * (depth - 2) * (2 * depth - 3)
        assert width * deep_linear(depth, width, 1.0) == pytest.approx(leading, rel=0.01)
        gaussian = leading + 4 * (depth - 1) ** 2
        assert width * deep_linear(depth, width, 3.0) == pytest.approx(gaussian, rel=0.01)
    # Printed: of the order max(d^2 / w, d^3 / w^2), whose ratio to the variance would be bounded.
    printed = [
        deep_linear(d, width, 1.0) / max(d**2 / width, d**3 / width**2) for d in (4, 8, 16, 32)
    ]
    assert all(later > 1.8 * sooner for sooner, later in pairwise(printed))


def soft() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = RNG.normal(size=(3, 2))
    gating = SoftGates([RNG.normal(size=(2, 2)), RNG.normal(size=(1, 2))], 1.5, 0.1).fit(X)
    return X, gating.transform(X), gating.jacobian(X)


def test_delta_is_the_sum_over_paths_of_the_overlaps_of_their_derivatives() -> None:
    _, gates, slopes = soft()
    expected = np.zeros((3, 3))
    for i, j in product(range(2), (2,)):
        moved = slopes[:, i] * gates[:, j, None] + gates[:, i, None] * slopes[:, j]
        expected += moved @ moved.T
    np.testing.assert_allclose(delta(gates, slopes, widths=(2, 1)), expected, rtol=1e-12)
    other = delta(gates[:1], slopes[:1], gates[1:], slopes[1:], widths=(2, 1))
    np.testing.assert_allclose(other, expected[:1, 1:], rtol=1e-12)


def test_means_of_both_parts_of_the_kernel_at_random_signs() -> None:
    X, gates, slopes = soft()
    sigma, depth, shapes = 0.8, 3, [(2, 2), (1, 2), (1, 1)]
    strength, _ = over_all_weights(
        SIGNS, shapes, [sigma] * 3, lambda network: empirical_ntk(network, X, gates)
    )
    activation, _ = over_all_weights(
        SIGNS, shapes, [sigma] * 3, lambda network: activation_kernel(network, X, gates, slopes)
    )
    paths = sigma ** (2 * (depth - 1)) * (X @ X.T) * path_overlap(gates, widths=(2, 1))
    # The printed lemma lacks the depth in front.
    np.testing.assert_allclose(strength, depth * paths, rtol=1e-11)
    moved = sigma ** (2 * depth) * (X @ X.T) * delta(gates, slopes, widths=(2, 1))
    np.testing.assert_allclose(activation, moved, rtol=1e-11)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variance": 0.0}, "`variance` must be a positive number or 2 of them"),
        ({"variance": [1.0, 1.0, 1.0]}, "2 of them"),
        ({"kurtosis": 0.9}, "`kurtosis` must be at least 1"),
        ({"widths": (2,)}, r"shape \(2, 2\)"),
        ({"X2": np.ones((1, 1))}, "go together"),
    ],
)
def test_moments_of_no_weights_are_refused(changes, message) -> None:
    given = {"widths": (3,), "variance": 1.0, "kurtosis": 1.0} | changes
    with pytest.raises(ValueError, match=message):
        ntk_moments(np.ones((2, 1)), np.ones((2, 3)), **given)
    with pytest.raises(ValueError, match="the derivatives of the same gates"):
        delta(np.ones((2, 3)), np.ones((2, 2, 4)), widths=(3,))


def test_a_path_that_meets_only_itself_has_the_same_kernel_at_all_signs() -> None:
    # One unit a layer: K = d sigma^(2(d-1)) whatever the signs, and not so with other weights.
    options = {"widths": (1, 1, 1), "variance": 0.5}
    signs = ntk_moments([[1.0]], np.ones((1, 3)), kurtosis=1.0, **options)
    assert signs.mean[0, 0] == pytest.approx(4 * 0.5**3)
    assert signs.variance[0, 0] == pytest.approx(0, abs=1e-15)
    for seed in range(4):
        network = DGN(1, widths=(1, 1, 1), init="sign", random_state=seed)
        sigma = abs(network.layers[0].item())
        found = empirical_ntk(network, [[1.0]], np.ones((1, 3)))
        assert found[0, 0] == pytest.approx(4 * sigma**6)
    assert ntk_moments([[1.0]], np.ones((1, 3)), kurtosis=3.0, **options).variance[0, 0] > 0.1
