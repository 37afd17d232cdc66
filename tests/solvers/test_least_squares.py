"""Least squares of minimum norm: the solution, its cut-off, its certificate and its statuses."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from solvers import NotCertified, Status
from solvers.methods.least_squares import certify_fit, solve_least_squares
from solvers.programs.design import GatedDesign
from solvers.programs.least_squares import MomentLeastSquares, SampledLeastSquares


def sampled(X, Z, y) -> SampledLeastSquares:
    X, Z, y = (np.asarray(a, dtype=float) for a in (X, Z, y))
    return SampledLeastSquares(GatedDesign(X, Z, np.arange(Z.shape[-1])), y)


def stacked(X, Z) -> np.ndarray:
    """Row by row and gate by gate, without the code under test."""
    return np.array([np.concatenate([z * x for z in gates]) for x, gates in zip(X, Z, strict=True)])


def random_case(n, D, K, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, D)), rng.integers(0, 2, size=(n, K)).astype(float)
    return X, Z, rng.normal(size=n)


def twin_gates(n=40):
    X, Z, y = random_case(n, 3, 3, seed=4)
    Z[:, 2] = Z[:, 0]
    return X, Z, y


CASES = {
    "tall": random_case(60, 4, 3),
    "wide": random_case(5, 4, 3),
    "square": random_case(12, 4, 3),
    "twin gates": twin_gates(),
    "never open": (lambda X, Z, y: (X, Z * [1, 0, 1], y))(*random_case(30, 2, 3)),
    "all closed": (np.ones((4, 2)), np.zeros((4, 2)), np.arange(4.0)),
    "one sample": (np.array([[3.0, 4.0]]), np.ones((1, 1)), np.array([2.0])),
    "one input": random_case(9, 1, 2),
    "soft gates": (lambda X, Z, y: (X, Z - 0.3, y))(*random_case(30, 2, 3)),
    "zero targets": (*random_case(30, 2, 3)[:2], np.zeros(30)),
    "duplicates": tuple(np.repeat(a, 3, axis=0) for a in random_case(4, 3, 2)),
    "zero rows": tuple(np.concatenate([a, 0 * a]) for a in random_case(20, 3, 2)),
}


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("name", CASES)
def test_solution_is_numpys_least_squares_of_minimum_norm(name, scale) -> None:
    X, Z, y = CASES[name]
    solution = solve_least_squares(sampled(scale * X, Z, y)).require()
    expected, _, rank, _ = np.linalg.lstsq(stacked(scale * X, Z), y, rcond=None)
    size = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(solution.coefficients.ravel(), expected, atol=1e-11 * size + 1e-300)
    assert solution.spectrum.rank == rank


@pytest.mark.parametrize("name", CASES)
def test_moments_give_the_solution_of_the_samples_they_average(name) -> None:
    X, Z, y = CASES[name]
    rows = stacked(X, Z)
    program = MomentLeastSquares(
        rows.T @ rows / len(y), rows.T @ y / len(y), Z.shape[1], second_moment=np.mean(y * y)
    )
    solution = solve_least_squares(program).require()
    expected = np.linalg.lstsq(rows, y, rcond=None)[0]
    np.testing.assert_allclose(solution.coefficients.ravel(), expected, atol=1e-10)
    error = y - rows @ expected
    assert solution.loss == pytest.approx(0.5 * np.mean(error * error), abs=1e-12)


def test_spectrum_diagonalises_the_second_moments() -> None:
    X, Z, y = CASES["tall"]
    rows, n = stacked(X, Z), len(y)
    spectrum = solve_least_squares(sampled(X, Z, y)).spectrum
    A = spectrum.basis @ np.diag(spectrum.eigenvalues) @ spectrum.basis.T
    np.testing.assert_allclose(A, rows.T @ rows / n, atol=1e-12)
    np.testing.assert_allclose(spectrum.basis.T @ spectrum.basis, np.eye(12), atol=1e-12)
    assert spectrum.condition == pytest.approx(np.linalg.cond(rows.T @ rows), rel=1e-9)


@pytest.mark.parametrize("by_moments", [False, True])
@pytest.mark.parametrize("name", ["tall", "wide", "twin gates"])
def test_certificate_measures_loss_stationarity_and_null_share(name, by_moments) -> None:
    X, Z, y = CASES[name]
    rng = np.random.default_rng(5)
    rows, n = stacked(X, Z), len(y)
    A, b = rows.T @ rows / n, rows.T @ y / n
    V, dual = rng.normal(size=(Z.shape[1], X.shape[1])), rng.normal(size=n)
    program, c, image = sampled(X, Z, y), V.ravel(), rows.T @ dual / n
    if by_moments:
        dual = rng.normal(size=V.shape)
        program, image = MomentLeastSquares(A, b, len(V), np.mean(y * y)), A @ dual.ravel()
    residual = b - A @ c
    np.testing.assert_allclose(program.residual(V).ravel(), residual, atol=1e-12)
    certificate = certify_fit(program, V, dual)
    size = np.trace(A) * np.linalg.norm(c) + math.sqrt(np.trace(A) * np.mean(y * y))
    assert certificate.loss == pytest.approx(0.5 * np.mean((y - rows @ c) ** 2), rel=1e-12)
    assert certificate.stationarity == pytest.approx(np.linalg.norm(residual) / size, rel=1e-12)
    assert certificate.null_share == pytest.approx(
        np.linalg.norm(c - image) / np.linalg.norm(c), rel=1e-12
    )
    assert certificate.residual_curvature == pytest.approx(
        np.linalg.norm(A @ residual) / np.trace(A) / np.linalg.norm(residual), rel=1e-9
    )


def test_null_share_bounds_the_part_in_the_null_space() -> None:
    X, Z, y = CASES["twin gates"]
    solution = solve_least_squares(sampled(X, Z, y))
    # Opposite shifts behind equal gates change no score and no gradient, only the norm.
    shift = 1e-4 * np.outer([1.0, 0.0, -1.0], np.ones(3))
    spoiled = certify_fit(sampled(X, Z, y), solution.coefficients + shift, solution.spectrum.dual)
    share = np.linalg.norm(shift) / np.linalg.norm(solution.coefficients + shift)
    assert spoiled.stationarity < 1e-14
    assert spoiled.null_share == pytest.approx(share, rel=1e-6)
    assert not spoiled.proves_optimality(1e-8)
    assert solution.certificate.proves_optimality(1e-13)


def test_a_move_inside_the_range_is_not_stationary() -> None:
    program = sampled(*CASES["tall"])
    solution = solve_least_squares(program)
    dual = solution.spectrum.dual * (1 + 1e-5)
    spoiled = certify_fit(program, program.image(dual), dual)
    assert spoiled.null_share < 1e-14
    assert 1e-8 < spoiled.stationarity < 1e-4
    assert not spoiled.proves_optimality(1e-8)


def test_nan_proves_nothing() -> None:
    program = sampled(*CASES["tall"])
    solution = solve_least_squares(program)
    spoiled = np.where(np.arange(12).reshape(3, 4) == 7, np.nan, solution.coefficients)
    assert not certify_fit(program, spoiled, solution.spectrum.dual).proves_optimality(0.9)


def graded(small: float, rcond: float | None, by_moments: bool):
    """Two inputs, two orthogonal samples: eigenvalues of A are 1 and `small`."""
    X = math.sqrt(2) * np.diag([1.0, math.sqrt(small)])
    y = np.array([1.0, 1.0])
    program = sampled(X, np.ones((2, 1)), y)
    if by_moments:
        program = MomentLeastSquares(X.T @ X / 2, X.T @ y / 2, 1, second_moment=1.0)
    return solve_least_squares(program, rcond=rcond)


@pytest.mark.parametrize("by_moments", [False, True])
def test_rcond_is_a_share_of_the_largest_eigenvalue(by_moments) -> None:
    above, below = graded(1e-4, 0.9e-4, by_moments), graded(1e-4, 1.1e-4, by_moments)
    assert (above.spectrum.rank, below.spectrum.rank) == (2, 1)
    np.testing.assert_allclose(above.coefficients[0], [0.5**0.5, 1e2 * 0.5**0.5], rtol=1e-12)
    np.testing.assert_allclose(below.coefficients[0], [0.5**0.5, 0.0], atol=1e-15)
    # A direction that the caller cut off is missed, and the status does not hide it.
    assert above.status is Status.SOLVED
    assert below.status is Status.INACCURATE


def test_samples_resolve_eigenvalues_that_moments_cannot() -> None:
    assert graded(1e-20, None, False).spectrum.rank == 2
    assert graded(1e-20, None, True).spectrum.rank == 1
    assert graded(1e-32, None, False).spectrum.rank == 1


def test_targets_orthogonal_to_the_inputs_up_to_rounding_are_solved_by_nothing() -> None:
    X = np.array([[0.1], [0.1], [0.1]])
    y = np.array([0.1, 0.2, -0.3])
    solution = solve_least_squares(sampled(X, np.ones((3, 1)), y))
    assert solution.status is Status.SOLVED
    assert np.abs(solution.coefficients).max() < 1e-14


A2 = np.diag([2.0, 0.0])


@pytest.mark.parametrize(
    ("A", "b", "second_moment"),
    [
        (A2, [1.0, 1.0], math.nan),
        (A2, [1.0, 1.0], 5.0),
        (A2 * 1e-9, [1e-9, 1e-9], math.nan),
        (0 * A2, [1.0, 0.0], math.nan),
        (np.eye(2), [1.0, 1.0], 1.0),  # b^T A^-1 b = 2 is more than <y^2>
    ],
)
def test_moments_of_nothing_are_inconsistent(A, b, second_moment) -> None:
    solution = solve_least_squares(MomentLeastSquares(A, np.array(b), 1, second_moment))
    assert solution.status is Status.INCONSISTENT
    with pytest.raises(NotCertified, match="no inputs and targets have these moments"):
        solution.require()


def test_unknown_second_moment_leaves_only_the_loss_unknown() -> None:
    solution = solve_least_squares(MomentLeastSquares(A2, np.array([1.0, 0.0]), 1)).require()
    np.testing.assert_allclose(solution.coefficients, [[0.5, 0.0]])
    assert math.isnan(solution.loss)


def test_loss_of_a_perfect_fit_is_not_negative() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        c, X = rng.normal(size=3), rng.normal(size=(9, 3))
        y = X @ c
        program = MomentLeastSquares(X.T @ X / 9, X.T @ y / 9, 1, second_moment=np.mean(y * y))
        assert 0 <= solve_least_squares(program).require().loss < 1e-13


@pytest.mark.parametrize("name", ["tall", "wide", "twin gates"])
def test_torch_in_torch_out_with_the_same_numbers(name) -> None:
    X, Z, y = CASES[name]
    design = GatedDesign(torch.tensor(X), torch.tensor(Z), torch.arange(Z.shape[1]))
    solution = solve_least_squares(SampledLeastSquares(design, torch.tensor(y))).require()
    assert isinstance(solution.coefficients, torch.Tensor)
    expected = solve_least_squares(sampled(X, Z, y)).coefficients
    np.testing.assert_allclose(solution.coefficients, expected, atol=1e-12)
    rows = torch.tensor(stacked(X, Z))
    moments = MomentLeastSquares(
        rows.T @ rows / len(y), rows.T @ torch.tensor(y) / len(y), Z.shape[1]
    )
    np.testing.assert_allclose(
        solve_least_squares(moments).require().coefficients, expected, atol=1e-10
    )


X0, Z0, Y0 = CASES["tall"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampled(X0[0], Z0, Y0), "`X` must have shape"),
        (lambda: sampled(X0[:0], Z0[:0], Y0[:0]), "n, D >= 1"),
        (lambda: sampled(X0, Z0[1:], Y0), r"`gates` must have shape \(60, K\)"),
        (lambda: sampled(X0, Z0[:, :0], Y0), "K >= 1"),
        (lambda: sampled(X0, Z0, Y0[1:]), r"`y` must have shape \(60,\)"),
        (lambda: sampled(X0 * np.nan, Z0, Y0), "`X` has entries"),
        (lambda: sampled(X0, Z0 + np.inf, Y0), "`gates` has entries"),
        (lambda: sampled(X0, Z0, Y0 / 0.0), "`y` has entries"),
        (lambda: MomentLeastSquares(np.eye(2), np.ones(3), 1), r"`A` must have shape \(K D"),
        (lambda: MomentLeastSquares(np.eye(3), np.ones(3), 2), "not a multiple of 2 units"),
        (lambda: MomentLeastSquares(np.eye(2) * np.nan, np.ones(2), 1), "NaN or infinite"),
        (lambda: MomentLeastSquares(np.eye(2), np.ones(2), 1, -1.0), "`second_moment`"),
        (
            lambda: MomentLeastSquares(np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones(2), 1),
            "must be symmetric",
        ),
        (
            lambda: solve_least_squares(MomentLeastSquares(np.diag([1.0, -0.1]), np.ones(2), 1)),
            "positive semidefinite",
        ),
        (lambda: solve_least_squares(sampled(X0, Z0, Y0), rcond=1.0), "`rcond` must lie"),
        (lambda: solve_least_squares(sampled(X0, Z0, Y0), rcond=-1e-9), "`rcond` must lie"),
        (lambda: solve_least_squares(sampled(X0, Z0, Y0), tol=0.0), "`tol` must lie"),
        (lambda: certify_fit(sampled(X0, Z0, Y0), np.ones((4, 3)), Y0), "`V` must have shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_input_is_named(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_results_are_frozen() -> None:
    solution = solve_least_squares(sampled(X0, Z0, Y0))
    with pytest.raises(dataclasses.FrozenInstanceError):
        solution.tol = 1.0
    assert set(solution.certificate.to_dict()) == {
        "loss", "stationarity", "null_share", "residual_curvature"
    }  # fmt: skip
