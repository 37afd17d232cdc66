"""Estimated limits beside those of constructed series and of runs that were taken ten times on."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import t as student

from implicit_bias import DeepLinear, Status, TrainingSettings, solve_linear_svm, train
from implicit_bias.dynamics import extrapolate, extrapolate_direction
from implicit_bias.measures import OTHERS, fit_series, inverse_log_loss
from tests.long import some_of

# log(1/loss) at the checkpoints of runs under constant and normalised steps.
PACES = {
    "constant": np.log(np.geomspace(10, 1e5, 40)),
    "normalised": np.geomspace(1, 2000, 40),
    "short": np.linspace(1, 7, 25),
}
FORMS = {
    "cubic": lambda u, a, b, c: a * u + b * u**2 + c * u**3,
    "logarithm": lambda u, a, b, c: a * u + 0.3 * b * u * np.log(1 / u),
    # Margin over norm of weights with a converging bounded part: (1 + c u) / ||w + u v||.
    "bounded part": lambda u, a, b, c: (
        1 - (1 + c * u) / np.sqrt(1 + 2 * (c + a) * u + (2 + (c + a) ** 2) * u**2)
    ),
    "iterated logarithm": lambda u, a, b, c: a * u + 0.2 * b * u * np.log(1 + np.log(1 + 1 / u)),
}

U, Y = 1 / np.linspace(1, 7, 25), np.linspace(0.5, 0.9, 25)


@pytest.mark.parametrize("noise", some_of([1e-3, 0.0, 1e-4], one_in=3))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pace", PACES)
def test_the_true_limit_lies_within_the_bar_in_nine_cases_of_ten(pace, form, noise) -> None:
    u, held, bars, gaps = 1 / PACES[pace], [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        limit, a, b, c = rng.uniform(0.8, 1), rng.uniform(0.2, 1.5), rng.normal(), rng.normal()
        y = limit - FORMS[form](u, a, b, c) + noise * rng.normal(size=len(u))
        found = extrapolate(u, y)
        held.append(abs(found.value - limit) <= found.error)
        bars.append(found.error)
        gaps.append(abs(y[-1] - limit))
    assert np.mean(held) >= 0.9
    # Not vacuous: smaller than the way left to go, unless that is lost in the noise.
    assert np.median(bars) < max(0.6 * np.median(gaps), 100 * noise)


def test_a_series_of_the_believed_form_is_continued_exactly() -> None:
    u = 1 / PACES["constant"]
    found = extrapolate(u, 0.97 - 0.5 * u - 0.3 * u**2)
    assert found.value == pytest.approx(0.97, abs=1e-12)
    assert found.predict(u[-1] / 3).value == pytest.approx(
        0.97 - 0.5 * u[-1] / 3 - 0.3 * u[-1] ** 2 / 9, abs=1e-12
    )
    assert found.residual < 1e-12
    assert found.model == "quadratic"
    # Reaches back to twice the last u.
    assert found.window == np.sum(u <= 2 * u[-1])


def test_the_bar_grows_with_the_distance_from_the_data_and_with_noise() -> None:
    u, rng = 1 / PACES["constant"], np.random.default_rng(0)
    y = 0.97 - 0.5 * u - 0.3 * u**2 - 0.2 * u**3
    found = extrapolate(u, y)
    errors = [found.predict(x).error for x in (u[-1], u[-1] / 2, 0)]
    assert np.all(np.diff(errors) > 0)
    assert errors[-1] == found.error
    noisy = extrapolate(u, y + 3e-3 * rng.normal(size=len(u)))
    assert noisy.error > 3 * found.error


def test_the_bar_is_the_confidence_interval_and_the_disagreement_of_the_fits() -> None:
    u, rng = 1 / PACES["constant"], np.random.default_rng(0)
    y = 0.97 - 0.5 * u + 1e-3 * rng.normal(size=len(u))
    found = extrapolate(u, y)
    # The interval of the constant of a parabola, by NumPy's covariances.
    _, covariance = np.polyfit(u[-found.window :], y[-found.window :], 2, cov=True)
    half = student.ppf(0.975, found.window - 3) * math.sqrt(covariance[-1, -1])
    fits = fit_series(u, y[:, None], OTHERS)[1]
    apart = max(abs(fit.at(0.0)[0][0] - found.value) for fit in fits)
    assert found.error == pytest.approx(half + 1.5 * apart, rel=1e-6)
    assert half > 1e-3


def test_directions_converge_within_their_cone() -> None:
    rng, held, errors, left = np.random.default_rng(0), [], [], []
    for _ in range(50):
        w, v, x = rng.normal(size=(3, 30)) / math.sqrt(30)
        u = 1 / PACES["constant"]
        weights = w / u[:, None] + v + u[:, None] * x
        found = extrapolate_direction(u, weights * rng.uniform(0.1, 10, size=(len(u), 1)))
        assert np.linalg.norm(found.direction) == pytest.approx(1)
        held.append(found.angle(w) <= found.error)
        errors.append(found.error)
        left.append(found.angle(weights[-1]))
        assert found.moved == pytest.approx(left[-1])
    assert np.mean(held) >= 0.9
    assert np.median(errors) < 0.5 * np.median(left)


def test_angles_are_exact_for_vectors_of_any_size() -> None:
    u = 1 / PACES["constant"]
    fixed = extrapolate_direction(u, np.tile([3.0, 4.0], (len(u), 1)) * 1e200)
    np.testing.assert_allclose(fixed.direction, [0.6, 0.8])
    assert fixed.error < 1e-12
    assert fixed.angle([-4e-300, 3e-300]) == pytest.approx(math.pi / 2)
    assert fixed.angle([0.6 - 8e-9, 0.8 + 6e-9]) == pytest.approx(1e-8, rel=1e-6)


def test_an_estimate_that_still_moves_says_so() -> None:
    # 1 - y falls like a root of u: polynomials are sure of a limit that is too low, and raise it
    # from checkpoint to checkpoint.
    u = 1 / PACES["normalised"]
    y = 1 - 0.5 * u**0.3
    then = u >= 1.4 * u[-1]
    found, before = extrapolate(u, y), extrapolate(u[then], y[then])
    assert before.value < found.value < 1
    assert found.error >= 1.5 * (found.value - before.value)
    # In directions the degree of the network warns of it.
    angles = 0.8 * u**0.35
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    linear, deep = (extrapolate_direction(u, directions, degree=d) for d in (1, 2))
    assert linear.error < linear.angle([1, 0]) <= deep.error


@pytest.fixture(scope="module", params=[0])
def run(request):
    """A linear predictor under constant steps for T and ten times T."""
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(40, 20))
    y = np.sign(X @ rng.normal(size=20))
    limit = solve_linear_svm(X, y, tol=1e-11).require()
    network = DeepLinear(20, init_scale=1e-3)
    rows, directions = [], []

    def go(steps: int) -> None:
        settings = TrainingSettings(
            batch_size=None, schedule=((steps, 2.5),), n_checkpoints=2
        )  # fmt: skip
        trajectory = train(network, X, y, None, settings=settings)
        ratio = trajectory.normalised_margin[-1] * limit.dual_objective
        rows.append((trajectory.log_loss[-1], ratio))
        directions.append(network.zeta().detach().numpy().copy())

    done = 0
    for step in [*np.unique(np.geomspace(1, 4000, 50).round().astype(int)), 40000]:
        go(int(step) - done)
        done = int(step)
    log_loss, ratio = np.array(rows).T
    return limit, inverse_log_loss(log_loss), ratio, np.array(directions)


@pytest.mark.long
def test_a_run_predicts_itself_ten_times_on_and_the_certified_optimum(run) -> None:
    limit, u, ratio, directions = run
    found = extrapolate(u[:-1], ratio[:-1])
    bar = found.predict(u[-1])
    assert bar.contains(ratio[-1])
    # It went on, and the bar is smaller than by how much.
    assert ratio[-1] - ratio[-2] > 0.02
    assert bar.error < ratio[-1] - ratio[-2]
    assert abs(1 - found.value) <= found.error < 0.3
    direction = extrapolate_direction(u[:-1], directions[:-1])
    assert direction.angle(limit.zeta) <= direction.error < 0.5
    assert direction.angle(limit.zeta) < 0.95 * extrapolate_direction(
        u[:-1], np.tile(directions[-2], (len(u) - 1, 1))
    ).angle(limit.zeta)


@pytest.mark.parametrize(
    ("u", "values", "status"),
    [
        (U[-7:], Y[-7:], Status.TOO_FEW),
        # Enough to fit, not to fit what was known earlier.
        (U[-10:], Y[-10:], Status.TOO_FEW),
        (np.where(np.arange(25) < 18, np.nan, U), Y, Status.TOO_FEW),
        (np.append(U[:-1], np.nan), Y, Status.NOT_SEPARATING),
        (U, np.append(Y[:-1], np.nan), Status.NOT_SEPARATING),
        (np.empty(0), np.empty(0), Status.NOT_SEPARATING),
        (U[::-1], Y, Status.NOT_MONOTONE),
        (np.append(U[:-1], U[-2]), Y, Status.NOT_MONOTONE),
    ],
)
def test_series_that_cannot_be_extrapolated_are_refused_with_advice(u, values, status) -> None:
    found = extrapolate(u, values)
    assert found.status is status
    assert math.isnan(found.value) and math.isnan(found.error)
    assert str(found) == f"no estimate: {status.advice}"
    assert math.isnan(found.predict(0.0).value)
    direction = extrapolate_direction(u, np.stack([values, 1 + 0 * values], axis=1))
    assert direction.status is status
    assert np.isnan(direction.direction).all()


def test_checkpoints_before_separation_are_left_out() -> None:
    y = 0.9 - 0.5 * U
    early = np.concatenate([[np.nan, np.nan], U]), np.concatenate([[-3.0, np.nan], y])
    assert extrapolate(*early).value == extrapolate(U, y).value


def test_u_is_the_inverse_of_the_logarithm_of_the_inverse_loss() -> None:
    np.testing.assert_array_equal(inverse_log_loss([0.3, 0.0, -1.0, -2000.0]),
                                  [np.nan, np.nan, 1, 1 / 2000])  # fmt: skip


def test_malformed_series_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`values` must have shape \(25,\), got \(24,\)"):
        extrapolate(U, Y[1:])
    with pytest.raises(ValueError, match=r"`directions` must have shape \(25, P\) .*, got \(25,\)"):
        extrapolate_direction(U, Y)
    with pytest.raises(ValueError, match="`u` must be at least 0"):
        extrapolate(U, Y).predict(-1.0)


def test_results_are_ready_for_json() -> None:
    found = extrapolate(U, Y)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["status"] == "ESTIMATED"
    assert (record["value"], record["low"]) == (found.value, found.value - found.error)
    assert str(found).startswith(f"{found.value:.6g} +- ")
    record = extrapolate_direction(U, np.stack([Y, Y**2], axis=1)).to_dict()
    assert json.loads(json.dumps(record))["window"] == found.window
