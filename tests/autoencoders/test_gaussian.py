"""The Gaussian mutual autoencoder: its closed form against definitions, and training."""

import math

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import chi2, norm

from implicit_bias.autoencoders import (
    GaussianMAE,
    gaussian_mae,
    plot_gaussian_mae,
    train_gaussian_mae,
)
from tests.long import some_of

ENTROPY = 0.5 * math.log(2 * math.pi * math.e)


def expectation(of, nodes=20):
    """E f(u, v) of two independent standard normals, by quadrature."""
    points, weights = hermegauss(nodes)
    weights = weights / weights.sum()
    return float(np.sum(np.outer(weights, weights) * of(points[:, None], points[None, :])))


def model(seed) -> GaussianMAE:
    a, b, s, t = np.random.default_rng(seed).uniform(0.2, 1.2, size=4)
    return GaussianMAE(a if seed % 2 else -a, s, b, t)


@pytest.mark.parametrize("seed", range(4))
def test_elbo_and_information_are_their_definitions_by_quadrature(seed) -> None:
    m = model(seed)

    def bound(x, noise):
        z = m.encoder_slope * x + m.encoder_deviation * noise
        density = norm.logpdf(x, m.slope * z, m.deviation)
        return density + norm.logpdf(z) - norm.logpdf(z, m.encoder_slope * x, m.encoder_deviation)

    def ratio(z, noise):
        x = m.slope * z + m.deviation * noise
        marginal = norm.logpdf(x, 0, math.hypot(m.slope, m.deviation))
        return norm.logpdf(x, m.slope * z, m.deviation) - marginal

    assert m.elbo == pytest.approx(expectation(bound), abs=1e-12)
    assert m.information == pytest.approx(expectation(ratio), abs=1e-12)
    assert m.information == pytest.approx(-0.5 * math.log(1 - m.rho**2), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_infomax_bound_holds_and_is_tight_at_the_posterior_alone(seed) -> None:
    m, rng = model(seed), np.random.default_rng(seed)
    v = m.slope**2 + m.deviation**2
    posterior = m.slope / v, m.deviation / math.sqrt(v)
    assert m.infomax_bound(*posterior) == pytest.approx(m.information, abs=1e-12)
    for _ in range(20):
        c, d = posterior[0] + rng.normal(scale=0.3), posterior[1] * rng.uniform(0.5, 2)
        assert m.infomax_bound(c, d) < m.information


def posterior_of(a: float, s: float) -> tuple[float, float]:
    return a / (a**2 + s**2), s / math.hypot(a, s)


@pytest.mark.parametrize("along", [(1.0, 0.0), (0.0, 1.0)], ids=["slope", "deviation"])
def test_the_second_term_of_4_12_vanishes_at_the_posterior_and_at_no_other_critic(along) -> None:
    a, s, h = 0.7, 0.5, 1e-5
    ends = [(a + sign * h * along[0], s + sign * h * along[1]) for sign in (1, -1)]

    def slope(of) -> float:
        return (of(*ends[0]) - of(*ends[1])) / (2 * h)

    own = GaussianMAE(a, s, 0.3, 0.8)
    # The critic follows the model, whose mean stays: the term that algorithm 4.1 leaves out.
    assert slope(lambda *at: own.infomax_bound(*posterior_of(*at))) == pytest.approx(0, abs=1e-8)
    half = slope(lambda *at: own.infomax_bound(posterior_of(*at)[0] / 2, posterior_of(*at)[1]))
    assert abs(half) > 0.01
    # So the model alone, beside a critic that stays, has the slope of the information.
    found = slope(lambda *at: GaussianMAE(*at, 0.3, 0.8).infomax_bound(*posterior_of(a, s)))
    whole = slope(lambda *at: 0.5 * math.log(1 + (at[0] / at[1]) ** 2))
    assert found == pytest.approx(whole, rel=1e-7)


@pytest.mark.parametrize("information", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_the_closed_form_beats_every_perturbation_and_so_does_its_mirror_image(information) -> None:
    best = gaussian_mae(information)
    # 2 nats are more than H(x) = 1.419: for continuous x that is no upper limit.
    assert best.information == pytest.approx(information, abs=1e-12)
    assert best.elbo == pytest.approx(-ENTROPY, abs=1e-12)
    rng = np.random.default_rng(0)
    for penalty in (0.1, 1.0, 10.0):
        most = best.objective(information, penalty)
        mirror = GaussianMAE(-best.slope, best.deviation, -best.slope, best.deviation)
        assert mirror.objective(information, penalty) == pytest.approx(most, abs=1e-12)
        for size in (1e-3, 0.1, 1.0):
            factors = np.exp(size * rng.normal(size=4))
            shifts = size * rng.normal(size=2)
            other = GaussianMAE(
                best.slope * factors[0] + shifts[0],
                best.deviation * factors[1],
                best.encoder_slope * factors[2] + shifts[1],
                best.encoder_deviation * factors[3],
            )
            assert other.objective(information, penalty) < most


def test_without_a_penalty_every_correlation_reaches_the_largest_elbo() -> None:
    for rho in (0.0, 0.3, 0.9, 0.991):
        s = math.sqrt(1 - rho**2)
        assert GaussianMAE(rho, s, rho, s).elbo == pytest.approx(-1.418939, abs=1e-6)


@pytest.mark.parametrize(
    ("information", "sign"), some_of([(0.5, -1), (0.1, 1), (2.0, 1)], one_in=3)
)
def test_training_comes_to_the_closed_form_up_to_its_sign(information, sign) -> None:
    start = GaussianMAE(0.2 * sign, 0.8, 0.2 * sign, 0.8)
    run = train_gaussian_mae(information, n_steps=800, start=start)
    assert run.model.rho == pytest.approx(sign * gaussian_mae(information).rho, abs=1e-5)
    assert run.model.information == pytest.approx(information, abs=1e-4)
    assert 0 <= run.model.gap < 5e-3  # slowest where the decoder is narrow
    assert run.elbo[-1] == pytest.approx(run.model.elbo, abs=1e-9)
    assert run.information_bound[-1] <= run.model.information + 1e-9


def test_a_plain_variational_autoencoder_ends_where_its_start_leads() -> None:
    starts = [GaussianMAE(slope, 0.8, slope, 0.8) for slope in (0.2, 0.9)]
    ends = [train_gaussian_mae(1.0, penalty=0, n_steps=500, start=s).model for s in starts]
    assert all(end.gap < 1e-9 for end in ends)
    assert ends[1].information > 5 * ends[0].information
    assert ends[1].information < 0.5  # and not at the 1.0 asked for


def test_the_picture_has_a_curve_a_run() -> None:
    runs = [train_gaussian_mae(m, n_steps=5) for m in (0.5, 1.0)]
    information, missing, ends = plot_gaussian_mae(runs).axes
    assert len(missing.lines) == 2 and len(information.lines) == 4
    assert ends.lines[0].get_xdata() == pytest.approx([runs[0].model.information])
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_gaussian_mae([])


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, 40.0])
def test_impossible_information_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match="`information` must be"):
        gaussian_mae(wrong)


def test_a_deviation_that_is_none_and_a_rate_of_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        GaussianMAE(0.5, 0.0, 0.5, 1.0)
    with pytest.raises(ValueError, match="`learning_rate` must be positive"):
        train_gaussian_mae(1.0, learning_rate=0.0)


def test_more_information_than_the_entropy_of_a_continuous_variable_is_reached() -> None:
    # Printed in section 4.3: I(z, x) is at most H(x), which holds of discrete x.
    model = gaussian_mae(2.0)
    assert model.information == pytest.approx(2.0, abs=1e-12)
    assert model.information > ENTROPY + 0.5
    assert model.rho == pytest.approx(0.991, abs=5e-4) and model.gap == pytest.approx(0, abs=1e-12)


def test_an_unbiased_estimate_of_the_information_can_have_the_wrong_sign_on_average() -> None:
    # Printed in appendix C.3: wrong signs of I - M in single samples leave the mean gradient's
    # direction alone. One sample of H(z) + log r(z|x) at the posterior r is I + (1 - u^2) / 2.
    one = gaussian_mae(0.5)
    target = one.information + 0.1
    rng = np.random.default_rng(0)
    z, noise = rng.normal(size=(2, 400_000))
    x = one.slope * z + one.deviation * noise
    log_posterior = norm.logpdf(z, one.encoder_slope * x, one.encoder_deviation)
    estimate = ENTROPY + log_posterior
    assert estimate.mean() == pytest.approx(
        one.infomax_bound(one.encoder_slope, one.encoder_deviation), abs=5e-3
    )
    expected = 2 * chi2.cdf(1 - 2 * 0.1, df=1) - 1
    assert np.sign(estimate - target).mean() == pytest.approx(expected, abs=5e-3)
    assert one.information - target < 0 and f"{expected:.2f}" == "0.26"
