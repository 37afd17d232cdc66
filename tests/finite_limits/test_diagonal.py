"""Diagonal networks from any start: oracles, ends, proofs, and what training really does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

import implicit_bias as ib
from implicit_bias.limits import EffectiveStart, solve_diagonal
from implicit_bias.networks import DiagonalLinear

Floats = NDArray[np.float64]


def task() -> tuple[Floats, Floats, Floats, Floats]:
    """The published task of 12 samples and 40 features, and a start drawn after it."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 40))
    y = features @ np.r_[1.0, -2.0, 1.5, np.zeros(37)]
    return features, y, rng.normal(size=40), rng.normal(size=40) / 2


PHI, Y, U, V = task()
SIGNS = np.sign(Y)


def uniform(alpha: float) -> Floats:
    """u0 of a network that is 0 at the start, with c = 2 alpha^2."""
    return np.full(40, np.sqrt(2) * alpha)


# Start: optimum, l1 and l2 norm of the limit, by an independent Newton of the dual in c and s.
KNOWN = {
    1e-4: (41.4450862, 4.58920345, 2.38473322),
    0.01: (19.9175988, 4.80037501, 1.90290770),
    0.1: (8.44210654, 5.27021182, 1.63419839),
    1.0: (-19.5370218, 6.99675038, 1.36781744),
    10.0: (-1999.99532, 7.03170032, 1.36771384),
}


@pytest.mark.parametrize("alpha", KNOWN)
def test_optima_and_norms_are_those_known(alpha) -> None:
    limit = solve_diagonal(PHI, Y, uniform(alpha)).require()
    optimum, l1, l2 = KNOWN[alpha]
    assert limit.objective == pytest.approx(optimum, rel=1e-8)
    assert np.abs(limit.zeta).sum() == pytest.approx(l1, rel=3e-9)
    assert np.linalg.norm(limit.zeta) == pytest.approx(l2, rel=3e-9)
    assert limit.gap < 1e-13 and limit.certificate.distance < 1e-5


def test_an_unbalanced_start_has_its_own_optimum() -> None:
    limit = solve_diagonal(PHI, Y, U, V).require()
    assert limit.objective == pytest.approx(-9.59036595, rel=1e-8)
    assert np.abs(limit.zeta).sum() == pytest.approx(11.94862234, rel=1e-9)
    assert np.linalg.norm(limit.zeta) == pytest.approx(2.82181381, rel=1e-8)


@pytest.mark.parametrize(("alpha", "l1"), [(0.3, 5.47955083), (1.0, 7.01168406)])
def test_three_layers_have_another_potential(alpha, l1) -> None:
    limit = solve_diagonal(PHI, Y, np.full(40, alpha), depth=3).require()
    assert np.abs(limit.zeta).sum() == pytest.approx(l1, rel=1e-8)
    z = PHI.T @ limit.dual
    assert np.abs(z).max() < 1 / (3 * alpha)
    b = (1 / alpha - 3 * z) ** -3.0 - (1 / alpha + 3 * z) ** -3.0
    np.testing.assert_allclose(limit.zeta, b, atol=1e-12)


def test_the_limit_has_the_least_potential_by_a_solver_that_knows_no_dual() -> None:
    """SciPy's trust region in the kernel of few features, on the printed formula."""
    features, y = PHI[:3, :6], Y[:3]
    u0, v0 = U[:6], V[:6]
    c, s = np.abs(u0**2 - v0**2), np.log(np.abs((u0 + v0) / (u0 - v0)))

    def phi(b: Floats) -> float:
        return float(np.sum(b * (np.arcsinh(2 * b / c) - s) - np.sqrt(b**2 + c**2 / 4)) / 2)

    limit = solve_diagonal(features, y, u0, v0).require()
    kernel = np.linalg.svd(features)[2][3:].T
    base = np.linalg.lstsq(features, y, rcond=None)[0]
    found = minimize(lambda t: phi(base + kernel @ t), np.zeros(3), method="BFGS", tol=1e-10)
    assert limit.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(limit.zeta, base + kernel @ found.x, atol=1e-5)
    assert phi(limit.zeta) == pytest.approx(limit.objective, rel=1e-12)


def test_small_starts_end_at_the_least_l1_norm_and_large_ones_next_to_themselves_in_l2() -> None:
    least = linprog(np.ones(80), A_eq=np.hstack([PHI, -PHI]), b_eq=Y).fun
    norms = [np.abs(solve_diagonal(PHI, Y, uniform(a)).zeta).sum() for a in (1e-8, 1e-30, 1e-70)]
    # Like 1 / log(1 / c) in general, faster where, as here, the least is unique and nondegenerate.
    assert norms == sorted(norms, reverse=True)
    np.testing.assert_allclose(norms[1:], least, rtol=1e-9)
    shift = np.linspace(-1, 1, 40)
    large = solve_diagonal(PHI, Y, np.full(40, 1e4), shift / 1e4).require()
    nearest = shift + np.linalg.lstsq(PHI, Y - PHI @ shift, rcond=None)[0]
    np.testing.assert_allclose(large.zeta, nearest, atol=1e-6)


def test_a_coefficient_whose_layers_begin_equal_keeps_its_sign() -> None:
    u0 = np.array([1.0, 0.5, 1.0])
    limit = solve_diagonal([[1.0, 1.0, 1.0]], [2.0], u0, u0).require()
    # The entropy with b(0) = u0^2: a multiple of the start.
    np.testing.assert_allclose(limit.zeta, 2 * u0**2 / np.sum(u0**2), rtol=1e-10)
    other = solve_diagonal([[1.0, -1.0, 0.0]], [2.0], u0, u0 * [1, -1, 0]).require()
    assert other.zeta[0] > 0 > other.zeta[1]
    dead = solve_diagonal([[1.0, 2.0, 1.0]], [2.0], [1.0, 0.0, 1.0], [0.5, 0.0, 0.5]).require()
    assert dead.zeta[1] == 0


@pytest.mark.parametrize(
    ("features", "y", "u0", "v0"),
    [
        ([[1.0, 1.0], [1.0, 2.0]], [-1.0, -2.0], [1.0, 1.0], [1.0, 1.0]),  # of locked signs
        ([[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0], [1.0, 1.0], [0.0, 0.0]),  # out of the range
    ],
)
def test_what_cannot_be_interpolated_is_proved_so(features, y, u0, v0) -> None:
    features, y = np.array(features), np.array(y)
    limit = solve_diagonal(features, y, u0, v0)
    assert limit.status is ib.Status.NOT_INTERPOLABLE and limit.status.severity == 6
    assert limit.proof is not None
    reached = features.T @ limit.proof
    assert y @ limit.proof > 0
    if v0[0]:
        assert np.all(reached <= 1e-12)  # b > 0 gives <features b, nu> <= 0
    else:
        np.testing.assert_allclose(reached, 0, atol=1e-12)
        # The squared loss leads to the part of the targets in the range all the same.
        np.testing.assert_allclose(limit.scores, features @ np.linalg.pinv(features) @ y)
    with pytest.raises(ib.NotCertified, match="NOT_INTERPOLABLE"):
        limit.require()
    assert limit.certify(features, y).status is ib.Status.NOT_INTERPOLABLE
    spoiled = features + np.eye(2) if v0[0] == 0 else -features
    assert limit.certify(spoiled, y).status is ib.Status.INACCURATE


@pytest.mark.parametrize("margin", [0.01, 1.0, 50.0])
def test_a_margin_goes_from_l2_to_l1_as_it_grows(margin) -> None:
    limit = solve_diagonal(PHI, SIGNS, uniform(0.1), margin=margin).require()
    margins = SIGNS * (PHI @ limit.zeta)
    assert margins.min() >= margin * (1 - 1e-12)
    multipliers = SIGNS * limit.dual
    assert multipliers.min() > 0 and multipliers @ (margins - margin) < 1e-6
    l1 = ib.limits.solve_l1_svm(PHI, SIGNS).objective * margin
    l2 = ib.solve_linear_svm(PHI, SIGNS).objective * margin
    ratios = l1 / np.abs(limit.zeta).sum(), l2 / np.linalg.norm(limit.zeta)
    assert max(ratios) < 1
    assert {0.01: ratios[1] > 0.999, 1.0: ratios[1] < 0.99, 50.0: ratios[0] > 0.93}[margin]


@pytest.mark.parametrize("depth", [2, 3])
def test_a_start_that_has_the_margins_or_the_targets_is_the_limit(depth) -> None:
    features, start = np.array([[1.0, 0.3], [-1.0, 0.2]]), (np.array([2.0, 0.3]), [0.5, 0.1])
    scores = features @ solve_diagonal(features, [1.0, -1.0], *start, depth=depth).start
    y = np.sign(scores)
    for asked in ({"margin": 0.02}, {"margin": float(np.abs(scores).min())}, None):
        targets, options = (scores, {}) if asked is None else (y, asked)
        limit = solve_diagonal(features, targets, *start, depth=depth, **options).require()
        np.testing.assert_allclose(limit.zeta, limit.start, rtol=1e-12)
        assert np.abs(limit.dual).max() < 1e-12
    assert (
        solve_diagonal(features, y, *start, depth=depth, margin=9.0).certificate.divergence > 1e-3
    )


def test_margins_that_cannot_be_had_are_proved_so() -> None:
    limit = solve_diagonal(np.ones((2, 3)), [1.0, -1.0], np.ones(3), margin=1.0)
    assert limit.status is ib.Status.NOT_SEPARABLE and limit.proof is not None
    np.testing.assert_allclose(np.ones((3, 2)) @ limit.proof, 0, atol=1e-12)


@pytest.mark.parametrize("sign", [1e-3, -1e-3])
def test_the_gap_sees_coefficients_and_multipliers_that_are_off(sign) -> None:
    limit = solve_diagonal(PHI, Y, uniform(0.1)).require()
    kernel = np.linalg.svd(PHI)[2][-1]
    for own in ({"zeta": limit.zeta + sign * kernel}, {"dual": limit.dual * (1 + sign)}):
        moved = type(limit)(**(vars(limit) | own)).certify(PHI, Y)
        assert 1e-9 < moved.gap < 1e-2
        if "zeta" in own:
            assert np.abs(sign * kernel).max() < moved.certificate.distance < 100 * abs(sign)
            assert limit.off_span(PHI, moved.zeta) > 1e-6
    assert limit.off_span(PHI, limit.zeta) < 1e-12


def descend(u: Floats, v: Floats, depth: int, step: float, n_steps: int) -> Floats:
    """Coefficients after gradient descent on half the squares, from u and v, by hand."""
    for _ in range(n_steps):
        if depth == 2:
            g = PHI.T @ (PHI @ (u * v) - Y)
            u, v = u - step * g * v, v - step * g * u
        else:
            g = PHI.T @ (PHI @ (u**depth - v**depth) - Y)
            u, v = (
                u - step * depth * g * u ** (depth - 1),
                v + step * depth * g * v ** (depth - 1),
            )
    return u * v if depth == 2 else u**depth - v**depth


@pytest.mark.parametrize(
    ("depth", "alpha", "step", "n_steps", "error"),
    [(2, 1.0, 1e-3, 1000, 4e-4), (3, 1.0, 5e-5, 3000, 1e-4)],
)
def test_gradient_descent_in_small_steps_ends_there(depth, alpha, step, n_steps, error) -> None:
    u0 = uniform(alpha) if depth == 2 else np.full(40, alpha)
    v0 = np.zeros(40) if depth == 2 else u0
    limit = solve_diagonal(PHI, Y, u0, v0, depth=depth).require()
    ends = [descend(u0, v0, depth, h, n) for h, n in ((step, n_steps), (step / 2, 2 * n_steps))]
    errors = [np.abs(end - limit.zeta).max() for end in ends]
    assert errors[0] < error and 1.6 < errors[0] / errors[1] < 2.5  # in proportion to the step


# Gradient descent of steps that are not small, batches of one sample, with noise on the labels.
@pytest.mark.parametrize(("batch_size", "rate", "flow"), [(0, 0.4, 1e-3), (1, 0.015, 3e-3)])
def test_the_effective_start_makes_large_steps_and_batches_exact(batch_size, rate, flow) -> None:
    network = DiagonalLinear(40, init_scale=0.1)
    first = [w.detach().numpy().copy() for w in (network.u, network.v)]
    observer = EffectiveStart(network)
    settings = ib.TrainingSettings(
        loss="squared", schedule=((800, rate),), batch_size=batch_size, n_checkpoints=5
    )
    trajectory = ib.train(network, PHI, Y, settings=settings, observer=observer)
    zeta = network.zeta().detach().numpy()
    # At every time it is the network of least potential among those of its scores.
    limit = solve_diagonal(PHI, PHI @ zeta, *observer.start).require()
    assert np.abs(limit.zeta - zeta).max() < 1e-11
    assert limit.off_span(PHI, zeta) < 1e-11
    # And it is a start: not the network itself, nor beyond it on the curve of the flow.
    u, v = observer.start
    assert np.abs(np.log(np.abs((u + v) / (u - v)))).max() < 1
    of_flow = solve_diagonal(PHI, PHI @ zeta, *first).require()
    assert np.abs(of_flow.zeta - zeta).max() > flow and of_flow.off_span(PHI, zeta) > flow / 10
    assert trajectory.observed["effective_scale"][0] == pytest.approx(0.02)
    assert trajectory.observed["effective_scale"][-1] < 0.02


def test_label_noise_makes_the_effective_start_smaller() -> None:
    network = DiagonalLinear(40, init_scale=0.1)
    observer = EffectiveStart(network)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01)
    rng, features = np.random.default_rng(0), torch.tensor(PHI)
    for _ in range(1000):
        noise = rng.normal(size=12) * 0.3
        optimiser.zero_grad()
        (network(features) - torch.tensor(Y + noise)).square().mean().div(2).backward()
        optimiser.step()
    zeta = network.zeta().detach().numpy()
    limit = solve_diagonal(PHI, PHI @ zeta, *observer.start).require()
    assert np.abs(limit.zeta - zeta).max() < 1e-11
    u, v = observer.start
    assert np.abs(u**2 - v**2).max() < 0.02  # c of the start


def test_momentum_and_decay_have_no_effective_start() -> None:
    for own in ({"momentum": 0.9}, {"weight_decay": 1e-3}):
        network = DiagonalLinear(40, init_scale=0.5)
        observer = EffectiveStart(network)
        optimiser = torch.optim.SGD(network.parameters(), lr=0.01, **own)
        for _ in range(5):
            optimiser.zero_grad()
            (network(torch.tensor(PHI)) - torch.tensor(Y)).square().mean().backward()
            optimiser.step()
        with pytest.raises(ValueError, match="no effective start is known of momentum"):
            _ = observer.start


def test_a_run_that_is_resumed_has_the_same_effective_start(tmp_path) -> None:
    settings = ib.TrainingSettings(loss="squared", schedule=((50, 0.1),), batch_size=3)
    starts = []
    for stop in (None, 20):
        network = DiagonalLinear(40, init_scale=0.1)
        observer = EffectiveStart(network)

        def enough(step: int, n_steps: int, log_loss: float, stop: int | None = stop) -> None:
            if stop is not None and step >= stop:
                raise StopIteration

        state = tmp_path / f"run-{stop}"
        own = {"settings": settings, "observer": observer, "state": state}
        ib.train(network, PHI, Y, callback=enough, **own)
        if stop is not None:
            network = DiagonalLinear(40, init_scale=0.1)
            observer = EffectiveStart(network)
            ib.train(network, PHI, Y, resume=True, **own | {"observer": observer})
        starts.append(observer.start)
    np.testing.assert_array_equal(starts[0], starts[1])


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"u0": np.ones(3)}, r"`u0` must have shape \(40,\)"),
        ({"v0": np.ones(3)}, r"`v0` must have shape \(40,\)"),
        ({"u0": np.full(40, np.nan)}, "`u0`"),
        ({"y": np.ones(3)}, r"`y` must have shape \(12,\)"),
        ({"depth": 1}, "`depth`"),
        ({"depth": 3, "u0": -np.ones(40)}, "`u0` must be positive at a depth of 3"),
        ({"margin": 1.0}, "labels"),
        ({"margin": 0.0, "y": SIGNS}, "`margin`"),
        ({"features": np.ones(12)}, r"`features` must have shape \(n, m\)"),
    ],
)
def test_bad_arguments_are_named(own, message) -> None:
    given = {"features": PHI, "y": Y, "u0": uniform(1.0)} | own
    with pytest.raises((TypeError, ValueError), match=message):
        solve_diagonal(given.pop("features"), given.pop("y"), given.pop("u0"), **given)


# Deep linear regression


@pytest.mark.parametrize("depth", [2, 3])
def test_deep_linear_regression_ends_at_the_limit_of_its_start(depth) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(4, 7)), rng.normal(size=4)
    start = 0.05 * X.T @ y + 0.1 * rng.normal(size=7)
    own = {"depth": depth, "loss": "squared"}
    limit = ib.distillation.distillation_limit(X, w0=start, y=y, **own).require()
    network = ib.DeepLinear.from_zeta(start, hidden_widths=(1,) * (depth - 1))
    settings = ib.TrainingSettings(loss="squared", schedule=((6000, 2e-2),), batch_size=0)
    trajectory = ib.train(network, X, y, settings=settings)
    assert trajectory.loss[-1] < 1e-16
    zeta = network.zeta().detach().numpy()
    plain = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.abs(zeta - limit.zeta).max() < 2e-3 < 2e-2 < np.abs(zeta - plain).max()
    # The teacher of these weights has the same limit.
    taught = ib.distillation.distillation_limit(X, plain, start, **own)
    np.testing.assert_allclose(limit.zeta, taught.zeta, atol=1e-12)


def test_targets_and_a_teacher_exclude_each_other() -> None:
    X, y = np.eye(2), np.ones(2)
    limit = ib.distillation.distillation_limit
    with pytest.raises(ValueError, match="`teacher` and `y` are two sources"):
        limit(X, y, y=y, loss="squared")
    with pytest.raises(ValueError, match="`teacher` is missing"):
        limit(X)
    with pytest.raises(ValueError, match="targets of a regression"):
        limit(X, y=y)
    with pytest.raises(ValueError, match=r"`y` must have shape \(2,\), or \(2, K\) with K >= 1"):
        limit(X, y=np.ones(3), loss="squared")
    several = limit(X, y=np.arange(6.0).reshape(2, 3), loss="squared").require()
    np.testing.assert_allclose(several.zeta, np.arange(6.0).reshape(2, 3).T)


def test_a_run_on_margins_is_beside_the_least_potential_of_its_own_margin() -> None:
    X = np.random.default_rng(3).normal(size=(8, 20))
    y = np.where(np.arange(8) % 2, 1.0, -1.0)
    report = ib.run(
        "diagonal", X=X, y=y, X_val=X, y_val=y, loss="logistic", init_scale=1.0, steps=400
    )
    limit, found = report.limit, report.comparison
    zeta = report.network.zeta().detach().numpy()
    assert limit.margin == pytest.approx((y * (X @ zeta)).min(), rel=1e-12) and limit.margin > 5
    least = solve_diagonal(X, y, np.full(20, np.sqrt(2)), margin=limit.margin).require()
    np.testing.assert_allclose(limit.zeta, least.zeta, rtol=1e-6)
    ratios = report.trajectory.observed["potential_ratio"]
    assert 0.9 < found.potential_ratio < 1 and np.nanmax(ratios) <= 1 + 1e-6
    assert ratios[-1] == pytest.approx(found.potential_ratio)
    program = ib.programs.LeastPotential().literal(X, y, limit.u0, limit.v0, margin=5.0)
    other = solve_diagonal(X, y, limit.u0, limit.v0, margin=5.0)
    assert program.solve(solver="CLARABEL") == pytest.approx(other.objective, abs=1e-5)


def test_phases_of_growing_rates_reach_the_limit_of_a_small_start() -> None:
    report = ib.run("diagonal", init_scale=0.01, n_train=10, n_val=10, steps=(1000, 1000, 2000))
    assert report.verdict.word == "AT ITS LIMIT" and report.comparison.limit_error < 5e-3
    # Later steps are larger, and the start that all of them amount to has hardly moved.
    assert report.comparison.effective_scale == pytest.approx(0.01, rel=0.03)


def test_labels_that_features_do_not_separate_have_no_run_on_margins() -> None:
    X, y = np.ones((2, 3)), np.array([1.0, -1.0])
    report = ib.run("diagonal", X=X, y=y, X_val=X, y_val=y, loss="logistic", steps=10)
    assert report.limit.status.name == "NOT_SEPARABLE" and "network" not in report.objects
