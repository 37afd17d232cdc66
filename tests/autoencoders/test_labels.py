"""Codes of labels: the bound by its definition, and theorem 4.2 on codes that say something."""

import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp
from scipy.stats import norm

from implicit_bias.autoencoders import LabelCode, quantile_code


def code(seed, n_labels=6) -> LabelCode:
    rng = np.random.default_rng(seed)
    return LabelCode(rng.normal(size=n_labels), rng.uniform(0.3, 1.2, size=n_labels))


def bound(of: LabelCode, log_decoder) -> float:
    """E log p(x|z) - E KL(q(z|x) || p(z)), with the divergence of two normals in closed form."""
    points, weights = hermegauss(150)
    weights = weights / weights.sum()
    total = 0.0
    for x, (m, s) in enumerate(zip(of.means, of.deviations, strict=True)):
        total += weights @ log_decoder(m + s * points)[x] - 0.5 * (m**2 + s**2 - 1) + math.log(s)
    return total / len(of.means)


def posterior(of: LabelCode, power=1.0):
    def log_decoder(z):
        terms = power * norm.logpdf(z, of.means[:, None], of.deviations[:, None])
        return terms - logsumexp(terms, axis=0)

    return log_decoder


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_its_definition_at_the_posterior_and_less_at_other_decoders(seed) -> None:
    one = code(seed)
    assert one.elbo == pytest.approx(bound(one, posterior(one)), abs=1e-6)
    assert bound(one, posterior(one, power=0.8)) < one.elbo - 1e-4
    assert 0 < one.information < math.log(6)


def test_theorem_4_2_only_the_code_that_says_nothing_has_the_largest_bound() -> None:
    silent = LabelCode(np.zeros(10), np.ones(10))
    assert silent.divergence == pytest.approx(0, abs=1e-13)
    assert silent.information == pytest.approx(0, abs=1e-13)
    assert silent.elbo == pytest.approx(-math.log(10), abs=1e-13)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        size = 10.0 ** -rng.uniform(0.5, 3)
        near = LabelCode(size * rng.normal(size=10), np.exp(size * rng.normal(size=10)))
        assert near.elbo < silent.elbo - 1e-13


@pytest.mark.parametrize(("deviation", "divergence"), [(0.5, 0.0072), (0.3, 0.0246), (0.1, 0.198)])
def test_codes_of_ten_labels_miss_what_their_sharpness_costs(deviation, divergence) -> None:
    assert quantile_code(10, deviation).divergence == pytest.approx(divergence, rel=0.01)


def test_narrow_codes_tell_all_and_a_shift_costs_half_its_square() -> None:
    assert quantile_code(10, 1e-3).information == pytest.approx(math.log(10), abs=1e-12)
    assert LabelCode(np.full(3, 2.0), np.ones(3)).divergence == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize(
    ("means", "deviations", "message"),
    [
        ([0.0], [1.0, 1.0], "shape"),
        ([], [], "shape"),
        ([math.nan], [1.0], "finite"),
        ([0.0], [0.0], "positive"),
        ([0.0, 1.0], [1e-9, 1.0], "widen"),
    ],
)
def test_codes_that_are_none_are_refused(means, deviations, message) -> None:
    with pytest.raises(ValueError, match=message):
        LabelCode(np.array(means), np.array(deviations))


@pytest.mark.parametrize(
    ("n_labels", "deviation", "wrong"),
    [(0, 0.5, "n_labels"), *((3, value, "deviation") for value in (0.0, 1.5, 1.01))],
)
def test_quantile_codes_out_of_range_are_refused(n_labels, deviation, wrong) -> None:
    with pytest.raises(ValueError, match=f"`{wrong}` must"):
        quantile_code(n_labels, deviation)


def test_a_deviation_that_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match="`deviation` must be finite, got nan"):
        quantile_code(3, math.nan)
