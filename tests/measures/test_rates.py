"""Exponents of constructed power laws, and of runs whose rates are proved."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from implicit_bias import DeepLinear, Status, TrainingSettings, solve_linear_svm, train
from implicit_bias.dynamics import measure_rates
from implicit_bias.measures import ANGLE, MARGIN, WEIGHTS, fit_rate, proved_method

T = np.geomspace(1, 1e6, 40)


@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.5, 0.5, 1.0])
def test_the_exponent_of_a_power_law_is_found_exactly(exponent) -> None:
    rate = fit_rate(T, 3 * T**exponent)
    assert rate.exponent == pytest.approx(exponent, abs=1e-12)
    assert rate.error < 1e-7
    assert rate.window == 20


def test_the_error_is_that_of_the_slope_under_noise() -> None:
    rng = np.random.default_rng(0)
    rates = [fit_rate(T, T**-1.0 * np.exp(0.1 * rng.normal(size=40))) for _ in range(200)]
    off = np.array([abs(rate.exponent + 1) for rate in rates])
    errors = np.array([rate.error for rate in rates])
    # Standard deviation of a least-squares slope over the last 20 points.
    x = np.log(T[-20:])
    expected = 0.1 / math.sqrt(np.sum((x - x.mean()) ** 2))
    assert np.sqrt(np.mean(off**2)) == pytest.approx(expected, rel=0.15)
    assert np.mean(off <= 2 * errors) > 0.95
    assert np.median(errors) < 4 * expected


def test_an_exponent_that_still_drifts_has_an_error_that_says_so() -> None:
    # 1 / (1 + log t) has no power of t: its local exponent is -1 / (1 + log t).
    rate = fit_rate(T, 1 / (1 + np.log(T)))
    local = 1 / (1 + np.log(T[-20:]))
    assert rate.error > 0.25 * (local.max() - local.min())
    assert rate.error > 0.005


def test_early_checkpoints_without_a_distance_are_left_out() -> None:
    distance = np.where(T < 10, np.nan, T**-1.0)
    distance[8] = -1.0
    assert fit_rate(T, distance).exponent == pytest.approx(-1, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "status"),
    [
        (T[:7], T[:7], Status.TOO_FEW),
        (T, np.append(T[:-1], 0.0), Status.NOT_SEPARATING),
        (T[::-1], T, Status.NOT_MONOTONE),
        (np.empty(0), np.empty(0), Status.NOT_SEPARATING),
    ],
)
def test_what_has_no_rate_is_refused(x, y, status) -> None:
    rate = fit_rate(x, y)
    assert rate.status is status
    assert math.isnan(rate.exponent)
    assert rate.row()[1] == "no estimate"


LOG_INVERSE = np.log(T) + 2
CLOSE = {MARGIN: 1 / LOG_INVERSE, ANGLE: T**-2.0, "another distance": 1 / T}


def known(**run) -> dict[tuple[str, str], float]:
    rates = measure_rates(T, -LOG_INVERSE, CLOSE, weight_norm=LOG_INVERSE**0.5, **run)
    assert len(rates) == 3 * 3 + 2
    json.dumps([rate.to_dict() for rate in rates])
    return {(r.quantity, r.variable): r.known.exponent for r in rates if r.known is not None}


def test_exponents_stand_beside_theorems_about_that_quantity_and_that_method_alone() -> None:
    linear = {(of, x): -1 for of in (MARGIN, ANGLE) for x in ("log t", "log(1/loss)")}
    growth = {(WEIGHTS, "log t"): 0.5, (WEIGHTS, "log(1/loss)"): 0.5}
    assert known(trainer="constant") == linear | dict.fromkeys(growth, 1)
    assert known(trainer="constant", degree=2) == growth
    assert known(trainer="normalised") == {
        (of, x): -1 for of in (MARGIN, ANGLE) for x in ("t", "log(1/loss)")
    }
    assert known(trainer="dual") == {(MARGIN, "t"): -2}
    for other in ({"trainer": "normalised", "degree": 2}, {"trainer": "annealed"}, {}):
        assert known(**other) == {}


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({"trainer": "constant", "batch_size": 0}, "constant"),
        ({"trainer": "constant"}, None),
        ({"trainer": "constant", "batch_size": 0, "momentum": 0.9}, None),
        ({"trainer": "normalised", "schedule": ((9, 0.1),)}, "normalised"),
        ({"trainer": "normalised", "batch_size": 0, "schedule": ((9, None),)}, None),
        ({"trainer": "dual", "batch_size": 0, "schedule": ((9, None),)}, "dual"),
    ],
)
def test_rates_are_proved_of_full_batches_without_momentum_at_given_rates(settings, method) -> None:
    assert proved_method(TrainingSettings(**settings)) == method


def test_rows_say_what_was_measured_and_what_is_proved() -> None:
    rates = measure_rates(T, -LOG_INVERSE, {MARGIN: T**-2.0}, trainer="dual")
    rows = {rate.variable: rate.row() for rate in rates}
    assert rows["t"][1].startswith("-2.000") and rows["t"][2] == "-2"
    assert rows["log t"][2:] == ("-", "-")
    with pytest.raises(ValueError, match="lbfgs"):
        measure_rates(T, T, {}, trainer="lbfgs")
    with pytest.raises(ValueError, match=r"`values` must have shape \(40,\), got \(39,\)"):
        measure_rates(T, T, {"angle": T[1:]})


@pytest.fixture(scope="module")
def separable():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 12))
    y = np.sign(X @ rng.normal(size=12))
    return X, y, solve_linear_svm(X, y, tol=1e-12).require()


def rates_of(separable, steps: int, rate: float, trainer: str):
    X, y, limit = separable
    settings = TrainingSettings(
        trainer=trainer, batch_size=None, schedule=((steps, rate),), n_checkpoints=60
    )
    trajectory = train(DeepLinear(12, init_scale=1e-2), X, y, None, settings=settings)
    return measure_rates(
        trajectory.step,
        trajectory.log_loss,
        {MARGIN: 1 - trajectory.normalised_margin * limit.dual_objective},
        trainer=trainer,
    )


def test_linear_predictors_under_normalised_steps_go_at_their_proved_rates(separable) -> None:
    known = [r for r in rates_of(separable, 4000, 0.3, "normalised") if r.known is not None]
    assert [r.variable for r in known] == ["t", "log(1/loss)"]
    for rate in known:
        assert rate.exponent == pytest.approx(rate.known.exponent, abs=0.1)


def test_under_constant_steps_exponents_come_to_theirs_as_slowly_as_logarithms_do(
    separable,
) -> None:
    runs = [rates_of(separable, steps, 2.0, "constant") for steps in (200, 6000)]
    for short, long in zip(*runs, strict=True):
        if long.known is not None:
            off = [abs(r.exponent - r.known.exponent) for r in (short, long)]
            assert off[1] < 0.9 * off[0]
            assert off[1] < 0.6
