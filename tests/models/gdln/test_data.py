"""Ring data: moments of both generators, their limits, their symmetry, and what they refuse."""

import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import erf

from implicit_bias.datasets import make_nlgp, make_single_pulse
from implicit_bias.models.gdln import RingData, ring_kernel
from tests.oracles import nlgp_covariance, single_pulse_second_moment

D = 12


def distance(n_inputs: int) -> np.ndarray:
    return np.array([[min((i - j) % n_inputs, (j - i) % n_inputs) for j in range(n_inputs)]
                     for i in range(n_inputs)])  # fmt: skip


def circulant(row: np.ndarray) -> np.ndarray:
    return np.array([np.roll(row, i) for i in range(len(row))])


@pytest.mark.parametrize(("n_inputs", "xi"), [(12, 1.0), (13, 2.0), (40, 5.0), (2, 0.4), (1, 1.0)])
def test_kernel_falls_like_a_gaussian_of_the_shorter_way_around(n_inputs, xi) -> None:
    expected = np.exp(-((distance(n_inputs)[0] / xi) ** 2))
    np.testing.assert_allclose(ring_kernel(n_inputs, xi), expected, atol=1e-7)


@pytest.mark.parametrize("xi", [0.5, 3.0, 9.0])
def test_kernel_is_a_covariance_of_unit_variance(xi) -> None:
    covariance = circulant(ring_kernel(40, xi))
    assert np.linalg.eigvalsh(covariance).min() > -1e-12
    np.testing.assert_allclose(np.diag(covariance), 1.0, atol=1e-12)
    assert np.abs(covariance[0] - np.exp(-((distance(40)[0] / xi) ** 2))).max() < 0.01


@pytest.mark.parametrize("gain", [0.3, 3.0])
@pytest.mark.parametrize("xi", [1.0, 2.0])
def test_covariance_formula_is_the_gaussian_integral_of_the_squashed_process(gain, xi) -> None:
    nodes, weights = hermegauss(150)
    weights = weights / weights.sum()
    Z = math.sqrt(weights @ erf(gain * nodes / math.sqrt(2)) ** 2)
    expected = []
    for r in np.exp(-((distance(D)[0] / xi) ** 2)):
        other = r * nodes[:, None] + math.sqrt(max(1 - r * r, 0)) * nodes[None, :]
        product = erf(gain * nodes / math.sqrt(2))[:, None] * erf(gain * other / math.sqrt(2))
        expected.append(weights @ product @ weights / Z**2)
    np.testing.assert_allclose(nlgp_covariance(D, xi, gain), circulant(np.array(expected)),
                               atol=2e-4)  # fmt: skip


@pytest.mark.parametrize("gain", [0.1, 3.0, 1e4])
def test_sample_moments_are_the_populations_in_both_classes(gain) -> None:
    n = 40_000
    data = make_nlgp(n, n_inputs=D, xi_1=2.0, xi_0=0.7, gain=gain, random_state=1)
    for label, xi in ((1.0, 2.0), (0.0, 0.7)):
        X = data.X[data.y == label]
        second = X.T @ X / len(X)
        # An entry averages n/2 products of variance at most 3 (Gaussian): five deviations.
        bound = 5 * math.sqrt(3 / len(X))
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=bound)
        np.testing.assert_allclose(np.diag(second), 1.0, atol=bound)
        np.testing.assert_allclose(second, nlgp_covariance(D, xi, gain), atol=bound)


def test_small_gain_gives_the_gaussian_process_and_large_gain_its_signs() -> None:
    small, large = (make_nlgp(500, n_inputs=D, xi_1=2.0, gain=g).X for g in (1e-4, 1e8))
    # Between the two limits only the squashing differs: the same draws lie behind both.
    np.testing.assert_allclose(np.abs(large), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(np.sign(large), np.sign(small))
    middle = make_nlgp(500, n_inputs=D, xi_1=2.0, gain=3.0).X
    Z = math.sqrt(2 / math.pi * math.asin(0.9))
    np.testing.assert_allclose(middle, erf(3.0 * small / math.sqrt(2)) / Z, atol=1e-6)


def test_longer_scales_correlate_farther() -> None:
    correlations = [nlgp_covariance(40, xi, 3.0)[0, 3] for xi in (1.0, 2.0, 4.0, 8.0)]
    assert (np.diff(correlations) > 0.05).all()
    for xi in (2.0, 5.0):
        assert (np.diff(nlgp_covariance(40, xi, 3.0)[0, :21]) <= 1e-9).all()


@pytest.mark.parametrize("length", range(1, D + 1))
def test_pulse_moments_are_the_average_over_all_rotations(length) -> None:
    pulse = (np.arange(D) < length).astype(float)
    every = np.array([np.roll(pulse, s) for s in range(D)])
    np.testing.assert_allclose(
        single_pulse_second_moment(D, length), every.T @ every / D, atol=1e-15
    )


def test_every_sample_is_one_circular_run_of_its_class_length() -> None:
    data = make_single_pulse(2000, n_inputs=D, xi_1=5, xi_0=2)
    assert set(np.unique(data.X)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.X.sum(axis=1), np.where(data.y == 1, 5, 2))
    # A run has one edge up and one down, wherever it wraps.
    np.testing.assert_array_equal(np.abs(data.X - np.roll(data.X, 1, axis=1)).sum(axis=1), 2)


def test_pulses_start_anywhere_with_equal_chance() -> None:
    data = make_single_pulse(24_000, n_inputs=D, xi_1=5, xi_0=2, random_state=2)
    for label, length in ((1.0, 5), (0.0, 2)):
        X = data.X[data.y == label]
        bound = 5 * math.sqrt(0.25 / len(X))
        np.testing.assert_allclose(X.mean(axis=0), length / D, atol=bound)
        expected = single_pulse_second_moment(D, length)
        np.testing.assert_allclose(X.T @ X / len(X), expected, atol=bound)


@pytest.mark.parametrize("make", [make_nlgp, make_single_pulse])
def test_classes_are_balanced_shuffled_and_reproducible(make) -> None:
    data = make(1000, random_state=5)
    assert data.y.sum() == 500
    assert 400 < data.y[::2].sum() + (1 - data.y[1::2]).sum() < 600
    assert make(7).y.sum() == 4
    np.testing.assert_array_equal(data.X, make(1000, random_state=5).X)
    same = make(1000, random_state=np.random.default_rng(5))
    np.testing.assert_array_equal(data.X, same.X)
    assert not np.array_equal(data.X, make(1000, random_state=6).X)
    assert "y = 1" in data.description
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_nlgp(1), "`n_samples` must be at least 2"),
        (lambda: make_nlgp(10, gain=0.0), "`gain` must be positive"),
        (lambda: make_nlgp(10, n_inputs=0), "`n_inputs` must be at least 1"),
        (lambda: make_nlgp(10, xi_1=-1.0), "length scales must be positive"),
        (lambda: make_nlgp(10, xi_0=20.0), "too large for a ring of 40 points"),
        (lambda: make_nlgp(10, gain=math.nan), "`gain` must be finite"),
        (lambda: make_single_pulse(10, xi_1=41), r"must lie in 1 \.\. 40"),
        (lambda: make_single_pulse(10, n_inputs=0), r"must lie in 1 \.\. 0"),
        (lambda: make_single_pulse(10, xi_0=0), r"must lie in 1 \.\. 40"),
        (lambda: RingData(np.ones(3), np.ones(3), ""), "`X` must be finite"),
        (lambda: RingData(np.ones((3, 2)), np.ones(2), ""), "`y` must hold 3 targets"),
        (lambda: RingData(np.ones((3, 2)), -np.ones(3), ""), r"targets in \{0, 1\}"),
    ],
)
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
