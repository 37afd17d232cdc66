"""Gated OLS and its gradient flow: limits, every time, the worth of a gating, and the errata."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from implicit_bias import NotCertified, Status, solve_gated_ols
from implicit_bias.dynamics import gated_flow
from implicit_bias.limits import GatedOLS
from implicit_bias.models.gdln import gated_flow_from_moments, solve_gated_ols_from_moments
from implicit_bias.programs import GatedLeastSquares
from tests.oracles import single_pulse_population

D, K, N = 4, 3, 60
RNG = np.random.default_rng(11)
# Inputs with unequal variances and a mean, so that no two blocks of A look alike.
X = RNG.normal(size=(N, D)) * [1.0, 2.0, 0.5, 1.5] + 0.3
Y = (RNG.random(N) < 0.5).astype(float)
W0 = RNG.normal(size=(K, D))
COIN = RNG.integers(0, 2, size=(N, K)).astype(float)
CELL = np.eye(K)[RNG.integers(0, K, size=N)]

GATES = {
    "general": COIN,
    "exclusive": CELL,
    "redundant": CELL[:, [0, 0, 1]],
    "overlapping": np.maximum(CELL, np.roll(CELL, 1, axis=1)),
    "never open": COIN * [1, 0, 1],
    "soft": RNG.normal(size=(N, K)),
}
EVERY_GATING = pytest.mark.parametrize("gates", GATES.values(), ids=GATES.keys())


def stacked(X, gates) -> np.ndarray:
    return np.array([np.concatenate([g * x for g in row]) for x, row in zip(X, gates, strict=True)])


def moments(X, y, gates) -> tuple[np.ndarray, np.ndarray]:
    rows = stacked(X, gates)
    return rows.T @ rows / len(y), rows.T @ y / len(y)


def integrate(A, b, w0, tau, times, n_units=K) -> np.ndarray:
    """tau dw/dt = -grad of 1/2 <(y - w.xt / K)^2>, by a Runge-Kutta method."""
    solution = solve_ivp(
        lambda t, w: (b - A @ w / n_units) / n_units / tau,
        (0.0, max(times)), np.ravel(w0), t_eval=times, method="DOP853", rtol=1e-11, atol=1e-12,
    )  # fmt: skip
    return solution.y.T.reshape(-1, *np.shape(w0))


def range_projection(A) -> np.ndarray:
    return np.linalg.pinv(A, rcond=1e-12) @ A


@EVERY_GATING
def test_solution_is_ols_of_minimum_norm_on_gated_inputs(gates) -> None:
    limit = solve_gated_ols(X, Y, gates).require()
    expected = np.linalg.lstsq(stacked(X, gates), Y, rcond=None)[0].reshape(K, D)
    np.testing.assert_allclose(limit.zeta, expected, atol=1e-12)
    np.testing.assert_allclose(limit.weights, K * expected, atol=1e-12)
    np.testing.assert_allclose(limit.unit_norms, [np.linalg.norm(z) for z in expected], atol=1e-12)
    scores = [sum(g * (z @ x) for g, z in zip(row, expected, strict=True))
              for x, row in zip(X, gates, strict=True)]  # fmt: skip
    np.testing.assert_allclose(limit.predictor(X, gates), scores, atol=1e-12)
    assert limit.loss == pytest.approx(0.5 * np.mean((Y - scores) ** 2), rel=1e-12)
    assert limit.rank == np.linalg.matrix_rank(stacked(X, gates))


@EVERY_GATING
def test_flow_ends_at_K_times_ols_plus_the_null_part_of_the_start(gates) -> None:
    A, b = moments(X, Y, gates)
    null_part = W0.ravel() - range_projection(A) @ W0.ravel()
    expected = K * np.linalg.pinv(A, rcond=1e-12) @ b + null_part
    flow = gated_flow(X, Y, gates, W0)
    np.testing.assert_allclose(flow(math.inf).ravel(), expected, atol=1e-10)
    np.testing.assert_array_equal(flow.limit, flow(math.inf))
    from_zero = gated_flow(X, Y, gates, 0 * W0).limit
    np.testing.assert_allclose(from_zero, solve_gated_ols(X, Y, gates).weights, atol=1e-12)


@EVERY_GATING
@pytest.mark.parametrize("tau", [1.0, 0.3])
def test_flow_solves_the_differential_equation_at_every_time(gates, tau) -> None:
    A, b = moments(X, Y, gates)
    times = [0.01, 0.5, 7.0, 100.0]
    expected = integrate(A, b, W0, tau, times)
    flow = gated_flow(X, Y, gates, W0, tau)
    np.testing.assert_allclose(flow(times), expected, atol=1e-8)
    from_moments = gated_flow_from_moments(A, b, W0, tau)
    np.testing.assert_allclose(from_moments(times), expected, atol=1e-8)
    np.testing.assert_array_equal(flow(0.0), W0)


@EVERY_GATING
def test_flow_is_the_matrix_exponential_of_the_theory(gates) -> None:
    A, b = moments(X, Y, gates)
    decay = expm(-3.0 * A / (K**2 * 0.7))
    fit = np.linalg.pinv(A, rcond=1e-12) @ (np.eye(K * D) - decay) @ b
    expected = decay @ W0.ravel() + K * fit
    np.testing.assert_allclose(gated_flow(X, Y, gates, W0, 0.7)(3.0).ravel(), expected, atol=1e-11)


@EVERY_GATING
def test_small_gradient_steps_follow_the_flow_and_any_steps_the_descent(gates) -> None:
    A, b = moments(X, Y, gates)
    flow = gated_flow(X, Y, gates, W0)
    w, rate = W0.ravel(), 1e-3
    for _ in range(2000):
        w = w + rate * (b - A @ w / K) / K
    np.testing.assert_allclose(flow(2.0).ravel(), w, atol=2e-3)
    np.testing.assert_allclose(flow.descent(2000, rate).ravel(), w, atol=1e-11)
    w = W0.ravel()
    for _ in range(5):
        w = w + 0.8 * (b - A @ w / K) / K
    slow = gated_flow(X, Y, gates, W0, tau=9.0)  # descent knows no tau
    np.testing.assert_allclose(slow.descent(5, 0.8).ravel(), w, atol=1e-11)


@EVERY_GATING
def test_long_gradient_descent_reaches_the_limit(gates) -> None:
    A, b = moments(X, Y, gates)
    w, rate = W0.ravel(), K**2 / np.linalg.eigvalsh(A)[-1]
    for _ in range(20_000):
        w = w + rate * (b - A @ w / K) / K
    np.testing.assert_allclose(gated_flow(X, Y, gates, W0).limit.ravel(), w, atol=1e-9)


@EVERY_GATING
def test_loss_along_the_flow_is_the_loss_of_its_weights(gates) -> None:
    flow = gated_flow(X, Y, gates, W0, 0.6)
    for t in (0.0, 0.4, 5.0, math.inf):
        error = Y - stacked(X, gates) @ flow(t).ravel() / K
        assert float(flow.loss(t)) == pytest.approx(0.5 * np.mean(error**2), rel=1e-11)


def test_exclusive_gates_fit_each_units_own_data() -> None:
    limit = solve_gated_ols(X, Y, CELL).require()
    for k in range(K):
        own = CELL[:, k] == 1
        expected = np.linalg.lstsq(X[own], Y[own], rcond=None)[0]
        np.testing.assert_allclose(limit.zeta[k], expected, atol=1e-12)


def test_exclusive_gates_flow_block_by_block() -> None:
    flow = gated_flow(X, Y, CELL, W0, 2.0)
    for k in range(K):
        own = CELL[:, k] == 1
        S, b = X[own].T @ X[own] / N, X[own].T @ Y[own] / N
        best = K * np.linalg.solve(S, b)
        expected = best + expm(-4.0 * S / (K**2 * 2.0)) @ (W0[k] - best)
        np.testing.assert_allclose(flow(4.0)[k], expected, atol=1e-12)


def test_redundant_gates_keep_their_difference_and_share_the_fit_at_twice_the_rate() -> None:
    gates, tau = GATES["redundant"], 1.3
    flow = gated_flow(X, Y, gates, W0, tau)
    open_ = gates[:, 0] == 1
    A11, b1 = X[open_].T @ X[open_] / N, X[open_].T @ Y[open_] / N
    half_difference = (W0[0] - W0[1]) / 2
    for t in (0.0, 0.7, 20.0, math.inf):
        np.testing.assert_allclose(flow(t)[0] - flow(t)[1], 2 * half_difference, atol=1e-12)
    best = K / 2 * np.linalg.solve(A11, b1)
    mean = best + expm(-2 * 0.7 * A11 / (K**2 * tau)) @ ((W0[0] + W0[1]) / 2 - best)
    np.testing.assert_allclose(flow(0.7)[0], mean + half_difference, atol=1e-12)
    np.testing.assert_allclose(flow(0.7)[1], mean - half_difference, atol=1e-12)
    np.testing.assert_allclose(flow.limit[0], best + half_difference, atol=1e-10)
    np.testing.assert_allclose(flow.limit[1], best - half_difference, atol=1e-10)


def test_a_unit_that_never_opens_never_moves() -> None:
    flow = gated_flow(X, Y, GATES["never open"], W0)
    np.testing.assert_allclose(flow([0.1, 10.0, math.inf])[:, 1], [W0[1]] * 3, atol=1e-13)
    np.testing.assert_allclose(solve_gated_ols(X, Y, GATES["never open"]).zeta[1], 0, atol=1e-13)
    closed = gated_flow(X, Y, 0 * COIN, W0)
    np.testing.assert_array_equal(closed([1.0, math.inf]), [W0, W0])
    assert closed.loss(1.0) == pytest.approx(0.5 * np.mean(Y**2))


def test_more_weights_than_samples_move_in_the_span_of_the_samples_alone() -> None:
    x, y, gates = X[:5], Y[:5], COIN[:5].copy()
    gates[:, 0] = 1  # or a sample behind closed gates could not be fitted
    flow = gated_flow(x, y, gates, W0)
    rows = stacked(x, gates)
    np.testing.assert_allclose(rows @ flow.limit.ravel() / K, y, atol=1e-12)
    moved = (flow.limit - W0).ravel()
    np.testing.assert_allclose(np.linalg.pinv(rows) @ rows @ moved, moved, atol=1e-12)
    assert flow.loss(math.inf) < 1e-25


LIMIT = solve_gated_ols(X, Y, COIN)


@EVERY_GATING
def test_the_literal_program_has_the_same_optimum(gates) -> None:
    problem = GatedLeastSquares().literal(X, Y, gates)
    problem.solve(solver="CLARABEL")
    limit = solve_gated_ols(X, Y, gates)
    assert problem.value == pytest.approx(limit.loss, abs=1e-9)
    zeta = problem.variables()[0].value
    scores = stacked(X, gates) @ zeta.ravel()
    np.testing.assert_allclose(limit.predictor(X, gates), scores, atol=1e-4)


PULSES = single_pulse_population(8, xi_1=4, xi_0=2)
PULSE_GATES = (PULSES.X @ np.random.default_rng(3).normal(size=(8, K)) >= 0).astype(float)


def test_population_moments_give_the_population_limit_and_flow() -> None:
    # 2 D equally likely pulses are the whole population: its moments by one sum a pulse.
    A, b = np.zeros((24, 24)), np.zeros(24)
    for x, y, g in zip(PULSES.X, PULSES.y, PULSE_GATES, strict=True):
        xt = np.kron(g, x)
        A, b = A + np.outer(xt, xt) / 16, b + y * xt / 16
    limit = solve_gated_ols_from_moments(A, b, K, second_moment=0.5).require()
    by_samples = solve_gated_ols(PULSES.X, PULSES.y, PULSE_GATES).require()
    np.testing.assert_allclose(limit.zeta, by_samples.zeta, atol=1e-9)
    assert limit.loss == pytest.approx(by_samples.loss, abs=1e-12)
    start = np.random.default_rng(4).normal(size=(K, 8))
    times = [0.0, 3.0, math.inf]
    np.testing.assert_allclose(
        gated_flow_from_moments(A, b, start, 2.0)(times),
        gated_flow(PULSES.X, PULSES.y, PULSE_GATES, start, 2.0)(times),
        atol=1e-9,
    )


def test_the_loss_of_a_gating_is_half_the_unexplained_second_moment() -> None:
    for gates in GATES.values():
        A, b = moments(X, Y, gates)
        expected = 0.5 * (np.mean(Y**2) - b @ np.linalg.pinv(A, rcond=1e-12) @ b)
        assert solve_gated_ols(X, Y, gates).loss == pytest.approx(expected, abs=1e-12)


class TestErrata:
    """What the notes print, computed, beside what an integration of their model gives."""

    A, b = moments(X, Y, COIN)

    def test_equations_8_to_11_end_K_times_too_low(self) -> None:
        truth = integrate(self.A, self.b, W0, 1.0, [3000.0])[0].ravel()
        printed = np.linalg.solve(self.A, self.b)
        np.testing.assert_allclose(gated_flow(X, Y, COIN, W0)(3000.0).ravel(), truth, atol=1e-6)
        np.testing.assert_allclose(truth, K * printed, atol=1e-4)
        assert np.linalg.norm(truth - printed) > 0.5 * np.linalg.norm(truth)

    def test_equations_5_and_8_run_K_times_too_fast(self) -> None:
        truth = integrate(self.A, self.b, W0, 1.0, [2.0])[0].ravel()
        best = K * np.linalg.solve(self.A, self.b)
        printed = best + expm(-2.0 / K * self.A) @ (W0.ravel() - best)
        np.testing.assert_allclose(gated_flow(X, Y, COIN, W0)(2.0).ravel(), truth, atol=1e-8)
        assert np.linalg.norm(truth - printed) > 0.1 * np.linalg.norm(truth - W0.ravel())

    def test_equations_9_to_11_cannot_start_at_zero(self) -> None:
        # u(0) = (e^C + c) / eigenvalue: u(0) = 0 asks e^C = -c of every component of c = P^T b.
        c = np.linalg.eigh(self.A)[1].T @ self.b
        assert (c > 0).any()
        np.testing.assert_array_equal(gated_flow(X, Y, COIN, 0 * W0)(0.0), 0 * W0)

    def test_equation_11_has_no_inverse_to_use_behind_redundant_gates(self) -> None:
        A, b = moments(X, Y, GATES["redundant"])
        assert np.linalg.cond(A) > 1e12
        flow = gated_flow_from_moments(A, b, W0)
        np.testing.assert_allclose(flow(2000.0), integrate(A, b, W0, 1.0, [2000.0])[0], atol=1e-7)

    def test_equation_18_scores_every_gating_alike(self) -> None:
        y = np.arange(N) % 2.0
        printed, right = [], []
        for gates in (COIN, CELL, GATES["overlapping"]):
            rows = stacked(X, gates)
            m1, m0 = rows[y == 1].mean(axis=0), rows[y == 0].mean(axis=0)
            outer = np.outer(m1, m1) + np.outer(m0, m0)
            printed.append(m1 @ np.linalg.pinv(outer, rcond=1e-10) @ m1)
            right.append(1 - 4 * solve_gated_ols(X, y, gates).loss)
        np.testing.assert_allclose(printed, 1.0, atol=1e-8)
        assert np.ptp(right) > 0.02
        assert max(right) < 0.9
        # Means c m and m are parallel: the matrix has rank 1, and the score is 1 / (1 + c^2).
        m1 = np.arange(1.0, 5.0)
        outer = np.outer(m1, m1) * (1 + 0.5**2)
        assert m1 @ np.linalg.pinv(outer, rcond=1e-10) @ m1 == pytest.approx(0.8, rel=1e-12)

    def test_equation_26_is_no_limit_while_it_decays(self) -> None:
        flow = gated_flow(X, Y, CELL, W0)
        own = CELL[:, 0] == 1
        S, b = X[own].T @ X[own] / N, X[own].T @ Y[own] / N
        eigenvalues, P = np.linalg.eigh(S)

        def printed(t):  # with both factors K restored, and C from w(0) where a logarithm exists
            e_C = eigenvalues * (P.T @ W0[0]) - K * P.T @ b
            return P @ ((np.exp(-t * eigenvalues / K**2) * e_C + K * P.T @ b) / eigenvalues)

        np.testing.assert_allclose(flow(5.0)[0], printed(5.0), atol=1e-10)
        assert np.linalg.norm(flow.limit[0] - printed(5.0)) > 0.1
        np.testing.assert_allclose(flow.limit[0], K * np.linalg.solve(S, b), atol=1e-10)

    def test_equations_31_and_32_lose_the_half_difference_of_w_1_the_sum_and_half_the_rate(
        self,
    ) -> None:
        gates = GATES["redundant"]
        own = gates[:, 0] == 1
        S, b = X[own].T @ X[own] / N, X[own].T @ Y[own] / N
        A, full_b = moments(X, Y, gates)
        half_fit, half_apart = np.linalg.solve(S, K * b) / 2, (W0[0] - W0[1]) / 2
        for t in (1.0, 2000.0):
            truth = integrate(A, full_b, W0, 1.0, [t])[0][:2]
            # Factors K restored: what remains wrong is what (31) and (32) say of the twins.
            printed1 = half_fit + expm(-t * S / K**2) @ (W0[0] - half_fit)
            printed2 = printed1 - 2 * half_apart
            np.testing.assert_allclose(gated_flow(X, Y, gates, W0)(t)[:2], truth, atol=1e-7)
            for printed, right in zip((printed1, printed2), truth, strict=True):
                assert np.linalg.norm(printed - right) > 0.05 * np.linalg.norm(right)
            # Their difference is right as printed.
            np.testing.assert_allclose(printed1 - printed2, truth[0] - truth[1], atol=1e-7)
            # With (29) and (30): the mean at twice the rate, and half of the difference on top.
            mean = half_fit + expm(-2 * t * S / K**2) @ (W0[:2].mean(axis=0) - half_fit)
            np.testing.assert_allclose([mean + half_apart, mean - half_apart], truth, atol=1e-7)
        # At the end (31) is half of the fit alone, and the sum misses the fit of the open gate.
        np.testing.assert_allclose(printed1, half_fit, atol=1e-4)
        np.testing.assert_allclose(truth.sum(axis=0), 2 * half_fit, atol=1e-4)
        assert np.linalg.norm(printed1 + printed2 - 2 * half_fit) > 0.5

    def test_targets_zero_and_one_predict_otherwise_than_minus_one_and_one(self) -> None:
        fresh = np.random.default_rng(8).normal(size=(400, D)) + 0.3
        gates = np.random.default_rng(9).integers(0, 2, size=(400, K))
        by01 = solve_gated_ols(X, Y, COIN).predictor(fresh, gates) >= 0.5
        by11 = solve_gated_ols(X, 2 * Y - 1, COIN).predictor(fresh, gates) >= 0
        assert np.mean(by01 != by11) == pytest.approx(0.415, abs=0.005)  # "41 % of them"
        # A constant input behind a gate that is always open makes them one and the same.
        with_bias, always = np.c_[X, np.ones(N)], np.c_[COIN, np.ones(N)]
        fresh, gates = np.c_[fresh, np.ones(400)], np.c_[gates, np.ones(400)]
        by01 = solve_gated_ols(with_bias, Y, always).predictor(fresh, gates)
        by11 = solve_gated_ols(with_bias, 2 * Y - 1, always).predictor(fresh, gates)
        np.testing.assert_allclose(by11, 2 * by01 - 1, atol=1e-9)

    def test_which_gating_is_better_depends_on_the_targets(self) -> None:
        rng = np.random.default_rng(21)
        gatings = rng.integers(0, 2, size=(12, N, K))
        order01 = np.argsort([solve_gated_ols(X, Y, gates).loss for gates in gatings])
        order11 = np.argsort([solve_gated_ols(X, 2 * Y - 1, gates).loss for gates in gatings])
        assert (order01 != order11).any()


def test_metamorphic_relations_of_the_limit() -> None:
    zeta = solve_gated_ols(X, Y, COIN).zeta
    order = np.random.default_rng(0).permutation(N)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0]
    twice = [np.repeat(a, 2, axis=0) for a in (X, Y, COIN)]
    for other, expected in [
        (solve_gated_ols(X[order], Y[order], COIN[order]).zeta, zeta),
        (solve_gated_ols(*twice).zeta, zeta),
        (solve_gated_ols(X @ Q, Y, COIN).zeta, zeta @ Q),
        (solve_gated_ols(1e5 * X, Y, COIN).zeta, 1e-5 * zeta),
        (solve_gated_ols(X, -3 * Y, COIN).zeta, -3 * zeta),
        (solve_gated_ols(X, Y, COIN[:, [2, 0, 1]]).zeta, zeta[[2, 0, 1]]),
        (solve_gated_ols(X, Y, 2 * COIN).zeta, zeta / 2),
    ]:
        np.testing.assert_allclose(other, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_boolean_gates_and_torch_arrays_give_the_same_limit_and_flow() -> None:
    limit, flow = solve_gated_ols(X, Y, COIN), gated_flow(X, Y, COIN, W0)
    np.testing.assert_array_equal(solve_gated_ols(X, Y, COIN == 1).zeta, limit.zeta)
    tensors = torch.tensor(X), torch.tensor(Y), torch.tensor(COIN == 1)
    from_torch = solve_gated_ols(*tensors).require()
    assert isinstance(from_torch.weights, torch.Tensor)
    np.testing.assert_allclose(from_torch.weights, limit.weights, atol=1e-11)
    assert isinstance(from_torch.predictor(*tensors[::2]), torch.Tensor)
    torch_flow = gated_flow(*tensors, torch.tensor(W0))
    for t in (0.0, [1.0, math.inf]):
        assert isinstance(torch_flow(t), torch.Tensor)
        np.testing.assert_allclose(torch_flow(t), flow(t), atol=1e-11)
        np.testing.assert_allclose(torch_flow.loss(t), flow.loss(t), atol=1e-12)


def test_times_have_any_shape() -> None:
    flow = gated_flow(X, Y, COIN, W0)
    times = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, np.inf]])
    assert flow(times).shape == (2, 3, K, D)
    assert flow.loss(times).shape == (2, 3)
    np.testing.assert_allclose(flow(times)[1, 0], flow(3.0), rtol=1e-13)
    assert flow.descent([0, 1], 0.1).shape == (2, K, D)


def test_status_speaks_for_itself() -> None:
    limit = solve_gated_ols(X, Y, COIN)
    assert limit.status is Status.SOLVED
    assert limit.certificate.stationarity < 1e-14
    assert limit.certificate.null_share < 1e-12
    record = limit.to_dict()
    assert record["status"] == "SOLVED"
    assert record["loss"] == limit.loss
    assert len(record["unit_norms"]) == K
    assert "rank 12 of 12" in repr(limit)
    assert "slowest time" in repr(gated_flow(X, Y, COIN, W0))
    cut = solve_gated_ols(X, Y, COIN, rcond=0.5)
    assert cut.rank < 12
    with pytest.raises(NotCertified, match=r"INACCURATE.*rcond"):
        cut.require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve_gated_ols(X, Y[1:], COIN), r"`y` must have shape \(60,\)"),
        (lambda: solve_gated_ols(X, Y, COIN[:, 0]), r"`gates` must have shape \(60, K\)"),
        (lambda: solve_gated_ols(X, Y * np.nan, COIN), "`y` has entries"),
        (lambda: gated_flow(X, Y, COIN, W0.T), r"`w0` must be finite, of shape \(3, 4\)"),
        (lambda: gated_flow(X, Y, COIN, W0 * np.nan), "`w0` has entries that are NaN"),
        (lambda: gated_flow(X, Y, COIN, W0, 0.0), "`tau` must be positive"),
        (lambda: gated_flow(X, Y, COIN, W0)(-1.0), "`t` must be at least 0"),
        (lambda: gated_flow(X, Y, COIN, W0)([0.0, np.nan]), "`t` must be at least 0"),
        (lambda: gated_flow(X, Y, COIN, W0).descent(-1, 0.1), "`n_steps` must be at least 0"),
        (
            lambda: gated_flow_from_moments(np.diag([1.0, 0.0]), np.ones(2), np.zeros((1, 2))),
            "no inputs and targets have these moments",
        ),
        (lambda: LIMIT.predictor(X[:, :2], COIN), r"`X` must have shape \(n, 4\)"),
        (lambda: LIMIT.predictor(X, COIN[:5]), r"`gates` must have shape \(60, 3\)"),
    ],
)
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_saved_limit_without_a_loss_comes_back_without_one(tmp_path) -> None:
    limit = solve_gated_ols_from_moments(*moments(X, Y, COIN), K)  # and no <y^2>
    limit.save(tmp_path / "limit")
    again = GatedOLS.load(tmp_path / "limit")
    np.testing.assert_equal(again.to_dict(), limit.to_dict())
    np.testing.assert_array_equal(again.predictor(X, COIN), limit.predictor(X, COIN))
    assert math.isnan(again.loss)
