"""Limits of kernel machines against closed forms, features, and networks in the lazy regime."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from scipy.sparse import csr_array

from implicit_bias import DGN, NotCertified, Status, solve_kernel_svm, solve_linear_svm
from implicit_bias.gates import LinearGates
from implicit_bias.kernels import empirical_ntk, kernel_regression, neural_path_kernel
from implicit_bias.programs import KernelLeastSquares, KernelSVM

RNG = np.random.default_rng(8)


def test_the_machine_of_a_linear_kernel_is_the_linear_one() -> None:
    X, new = RNG.normal(size=(60, 4)), RNG.normal(size=(9, 4))
    y = np.sign(X @ [1.0, -2.0, 0.5, 0.3])
    limit, linear = solve_kernel_svm(X @ X.T, y).require(), solve_linear_svm(X, y).require()
    assert limit.gap <= 1e-8
    assert limit.objective >= linear.dual_objective and linear.objective >= limit.dual_objective
    np.testing.assert_allclose(limit.predictor(new @ X.T), new @ linear.zeta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(limit.margins, y * (X @ X.T @ limit.zeta), rtol=1e-10)
    assert limit.margins.min() == pytest.approx(1, rel=1e-12)
    assert limit.dual.sum() == pytest.approx(limit.dual_objective, rel=1e-8)


def test_the_program_in_cvxpy_is_half_the_square_and_takes_sparse_kernels() -> None:
    X = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.5, 1.0, 1.0], [0.0, 0.0, -1.0]])
    y, dense = np.array([1.0, -1.0, 1.0, -1.0]), X @ X.T
    limit = solve_kernel_svm(dense, y).require()
    for K in (dense, csr_array(dense)):
        assert solve_kernel_svm(K, y).require().objective == pytest.approx(limit.objective)
        value = KernelSVM().literal(K, y).solve(solver="CLARABEL")
        assert value == pytest.approx(limit.objective**2 / 2, rel=1e-6)


def test_a_pair_on_one_ray_with_different_labels_is_separated_by_no_bias_free_gating() -> None:
    # Gates of x and 2 x agree, so every function of these gates has f(2 x) = 2 f(x).
    x = RNG.normal(size=3)
    X, y = np.stack([x, 2 * x]), np.array([1.0, -1.0])
    gates = LinearGates(3, widths=(6, 5), random_state=2).fit_transform(X)
    K = neural_path_kernel(X, gates, widths=(6, 5))
    assert K[0, 0] > 0
    limit = solve_kernel_svm(K, y)
    assert limit.status is Status.NOT_SEPARABLE
    np.testing.assert_allclose(limit.dual, [2 / 3, 1 / 3], rtol=1e-6)
    with pytest.raises(NotCertified, match="NOT_SEPARABLE"):
        limit.require()
    # The best squared loss is 1.8, at f(x) = -0.2.
    regression = kernel_regression(K, y)
    assert regression.rank == 1
    assert np.sum(regression.error(1e9) ** 2) == pytest.approx(1.8, rel=1e-9)
    np.testing.assert_allclose(regression.limit(K), [-0.2, -0.4], rtol=1e-9)
    assert regression.certificate.remaining == pytest.approx(np.sqrt(1.8 / 2), rel=1e-9)


def test_a_sample_without_an_open_path_carries_the_proof_that_nothing_separates() -> None:
    X, gates = RNG.normal(size=(4, 3)), np.ones((4, 5))
    gates[2, 3:] = 0
    limit = solve_kernel_svm(neural_path_kernel(X, gates, widths=(3, 2)), np.ones(4))
    assert limit.status is Status.NOT_SEPARABLE
    assert limit.dual.tolist() == [0, 0, 1, 0]


def test_errors_follow_the_law_step_by_step_and_in_flow() -> None:
    A, y, f0 = RNG.normal(size=(6, 9)), RNG.normal(size=6), RNG.normal(size=6)
    K, cross, new = A @ A.T, RNG.normal(size=(3, 9)) @ A.T, RNG.normal(size=3)
    regression = kernel_regression(K, y, f0)
    errors = f0 - y
    for _ in range(7):
        errors = errors - 0.02 * K @ errors
    np.testing.assert_allclose(regression.after(7, 0.02), errors, rtol=1e-10)
    flow = expm(-0.3 * K) @ (f0 - y)
    np.testing.assert_allclose(regression.error(0.3), flow, rtol=1e-10)
    np.testing.assert_allclose(regression.error([0.0, 0.3]), [f0 - y, flow], rtol=1e-10)
    limit = new - cross @ np.linalg.solve(K, f0 - y)
    np.testing.assert_allclose(regression.limit(cross, new), limit, rtol=1e-9)
    assert regression.certificate.remaining < 1e-12 and regression.rank == 6
    assert regression.condition == pytest.approx(np.linalg.cond(K), rel=1e-8)


def test_a_kernel_of_few_weights_learns_what_lies_in_its_range() -> None:
    A = RNG.normal(size=(5, 2))
    regression, y = kernel_regression(A @ A.T, np.arange(5.0)), np.arange(5.0)
    assert regression.rank == 2
    left = A @ np.linalg.lstsq(A, y, rcond=None)[0] - y
    np.testing.assert_allclose(regression.error(1e6), left, atol=1e-10)
    np.testing.assert_allclose(regression.after(10**6, 0.1), left, atol=1e-10)
    expected = np.linalg.norm(left) / np.linalg.norm(y)
    assert regression.require().certificate.remaining == pytest.approx(expected, rel=1e-9)
    assert regression.certificate.stationarity < 1e-14


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_shares_of_errors_do_not_depend_on_the_scale_of_the_kernel(scale) -> None:
    A, y = np.random.default_rng(4).normal(size=(5, 3)), np.arange(5.0)
    K = scale * A @ A.T
    found = kernel_regression(K, y, 2.0)
    errors = 2.0 - y
    left = K @ found.coefficients - errors
    rows = np.linalg.norm(K @ left) / np.linalg.norm(K, 2) / np.linalg.norm(errors)
    assert found.certificate.stationarity == pytest.approx(rows, abs=1e-15) and rows < 1e-12
    assert found.certificate.remaining == pytest.approx(
        np.linalg.norm(left) / np.linalg.norm(errors)
    )
    sizes = np.linalg.svd(A, compute_uv=False) ** 2
    assert found.rank == 3 and found.condition == pytest.approx(sizes[0] / sizes[2])
    cross = scale * np.random.default_rng(5).normal(size=(2, 3)) @ A.T
    ended = -cross @ np.linalg.pinv(K, hermitian=True) @ errors
    np.testing.assert_allclose(found.limit(cross), ended, rtol=1e-8)
    np.testing.assert_allclose(found.limit(cross, 3.0), 3 + ended, rtol=1e-8)
    for steps in (0, [0, 2]):
        powers = [
            np.linalg.matrix_power(np.eye(5) - K / scale / 9, k) for k in np.atleast_1d(steps)
        ]
        wanted = np.squeeze([power @ errors for power in powers])
        np.testing.assert_allclose(found.after(steps, 1 / 9 / scale), wanted, atol=1e-12)
    half = KernelLeastSquares().literal(K, y, 2.0).solve(solver="CLARABEL")
    assert half == pytest.approx((left**2).sum() / 2, rel=1e-5)
    nothing = kernel_regression(K, y, y).certificate
    assert (nothing.remaining, nothing.stationarity) == (0.0, 0.0)
    # Below 0 by rounding alone is semidefinite.
    _, vectors = np.linalg.eigh(K)
    for least, fits in ((-1e-15, True), (-1e-9, False)):
        shifted = scale * (vectors * [least, 0.1, 0.2, 0.5, 1.0]) @ vectors.T
        shifted = (shifted + shifted.T) / 2
        if fits:
            assert kernel_regression(shifted, y).rank == 4
        else:
            with pytest.raises(ValueError, match="`K` must be positive semidefinite and not zero"):
                kernel_regression(shifted, y)


def test_times_and_steps_are_checked_and_begin_at_zero() -> None:
    found = kernel_regression(np.diag([2.0, 1.0]), [1.0, -1.0])
    for time in (-1e-9, np.nan, [[0.0]]):
        with pytest.raises(ValueError, match="`t` must hold times that are not negative"):
            found.error(time)
    for steps in (-1, 0.5, [[1]]):
        with pytest.raises((TypeError, ValueError), match="`n_steps`"):
            found.after(steps, 0.1)
    with pytest.raises(ValueError, match="`rate` must be"):
        found.after(1, 0.0)
    with pytest.raises(ValueError, match="`K` must be positive semidefinite and not zero"):
        kernel_regression(np.zeros((2, 2)), [1.0, -1.0])
    with pytest.raises(ValueError, match="eigenvalues from -1 to 3: no tangent kernel"):
        kernel_regression([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 2.0]], np.ones(3))
    v = np.random.default_rng(6).normal(size=7)
    assert kernel_regression(np.outer(v, v), np.ones(7)).rank == 1


def test_the_program_of_a_regression_in_cvxpy_has_its_coefficients() -> None:
    K, y = np.array([[2.0, 1.0], [1.0, 3.0]]), [1.0, -1.0]
    program = KernelLeastSquares().literal(K, y)
    program.solve(solver="CLARABEL")
    found = kernel_regression(K, y)
    np.testing.assert_allclose(program.variables()[0].value, found.coefficients, atol=1e-6)


def test_coefficients_of_an_ill_conditioned_kernel_are_not_called_solved() -> None:
    vectors = np.linalg.qr(RNG.normal(size=(8, 8)))[0]
    kernel = (vectors * 10.0 ** -np.linspace(0, 13, 8)) @ vectors.T
    regression = kernel_regression((kernel + kernel.T) / 2, RNG.normal(size=8))
    # The slope of half the squared errors that are left, written out.
    left = kernel @ regression.coefficients - regression.start
    slope = np.linalg.norm(kernel @ left) / np.linalg.norm(regression.start)
    assert regression.certificate.stationarity == pytest.approx(slope, rel=1e-2)
    assert slope > regression.tol == 1e-8
    with pytest.raises(NotCertified, match=r"INACCURATE: .* least eigenvalues of the kernel"):
        regression.require()


def distances_when_scaled(scale: float) -> tuple[float, float]:
    """Of a network at this output scale from the error law and, at the end, held-out, its limit."""
    rng = np.random.default_rng(1)
    n, m, widths = 6, 5, (30, 30)
    X, y = rng.normal(size=(n + m, 4)), rng.normal(size=n)
    gates = (rng.random((n + m, 60)) < 0.7).astype(float)
    network = DGN(4, widths=widths, random_state=3, gate_rate=0.7)
    K = empirical_ntk(network, X[:n], gates[:n])
    cross = empirical_ntk(network, X[n:], gates[n:], X[:n], gates[:n])
    regression = kernel_regression(K, y)
    data = torch.tensor(X), torch.tensor(gates)
    with torch.no_grad():
        first = network(*data)
    rate, worst = 1 / float(regression.eigenvalues[-1]), 0.0
    parameters = list(network.parameters())
    for step in range(400):
        outputs = scale * (network(*data) - first)[:n]
        errors = outputs - torch.tensor(y)
        if step in (1, 3, 10, 40):
            law = regression.after(step, rate)
            worst = max(worst, float(np.abs(errors.detach().numpy() - law).max()))
        loss = errors.square().sum() / (2 * scale**2)
        with torch.no_grad():
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p.sub_(rate * g)
    with torch.no_grad():
        ended = scale * (network(*data) - first)[n:]
    law = -cross @ np.linalg.solve(K, regression.start - regression.after(400, rate))
    return worst, float(np.abs(ended.numpy() - law).max())


def test_a_network_is_off_its_kernel_by_one_over_the_output_scale() -> None:
    near, far = distances_when_scaled(1e4), distances_when_scaled(1e3)
    for a, b in zip(near, far, strict=True):
        assert 1e-6 < b < 0.02
        assert b / a == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve_kernel_svm([[1.0, 2.0], [2.0, 1.0]], [1.0, -1.0]), "eigenvalues below zero"),
        (lambda: solve_kernel_svm(np.eye(2), [1.0, 0.0]), "labels -1 and"),
        (lambda: solve_kernel_svm(np.eye(2), [1.0, np.nan]), "`y` has entries that are NaN"),
        (
            lambda: solve_kernel_svm(np.eye(2), [1.0, -1.0]).predictor(np.eye(3)),
            "one column a training sample",
        ),
        (lambda: kernel_regression(np.zeros((2, 2)), [1.0, 0.0]), "positive semidefinite"),
        (lambda: kernel_regression([[1.0, 2.0], [2.0, 1.0]], [1.0, 0.0]), "positive semidef"),
        (lambda: kernel_regression(np.eye(2), [1.0, 0.0]).error(-1.0), "`t` must hold times"),
        (lambda: kernel_regression(np.eye(2), [1.0, 0.0]).after(1.5, 0.1), "whole numbers"),
        (lambda: kernel_regression(np.eye(2), [1.0, 0.0]).after(1, 0.0), "`rate` must be"),
        (
            lambda: kernel_regression(np.eye(2), [1.0, 0.0]).limit(np.eye(3)),
            "one column a training sample",
        ),
        (lambda: kernel_regression(np.eye(2), [1.0, 0.0], [1.0]), r"`f0` must be finite, of"),
    ],
)
def test_what_is_no_kernel_machine_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
