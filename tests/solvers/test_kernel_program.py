"""Programs given by their kernel: bounds from any multipliers, and answers that they prove."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvers import (
    GatedDesign,
    KernelProgram,
    MaxMarginProgram,
    NotCertified,
    Settings,
    Status,
    certify_kernel,
    solve,
    solve_kernel,
)

RNG = np.random.default_rng(4)


def features(n: int, d: int, decades: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.normal(size=(n, d)) * 10 ** RNG.uniform(-decades, decades, size=(n, 1))
    return X, np.where(X @ RNG.normal(size=d) > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("n", "d", "decades"), [(40, 3, 0.0), (40, 80, 0.0), (200, 30, 0.0), (60, 10, 3.0)]
)
def test_the_answer_is_that_of_the_same_program_on_features(n, d, decades) -> None:
    X, y = features(n, d, decades)
    design = GatedDesign(X, np.ones((n, 1)), np.zeros(1, dtype=np.int64))
    other = solve(MaxMarginProgram(design, y)).require()
    answer = solve_kernel(KernelProgram(X @ X.T, y)).require()
    # Each lower bound stays below the other's upper bound.
    assert answer.certificate.dual_objective <= other.certificate.objective
    assert other.certificate.dual_objective <= answer.certificate.objective
    assert answer.certificate.gap <= 1e-8
    assert answer.margins.min() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(answer.margins, y * (X @ (X.T @ answer.coefficients)), rtol=1e-6)


def test_margins_that_are_asked_for_are_those_of_rows_divided_by_them() -> None:
    X, y = features(30, 6)
    wanted = RNG.uniform(0.5, 3.0, size=30)
    rows = X / wanted[:, None]
    asked = solve_kernel(KernelProgram(X @ X.T, y, wanted)).require()
    divided = solve_kernel(KernelProgram(rows @ rows.T, y)).require()
    assert asked.certificate.objective == pytest.approx(divided.certificate.objective, rel=1e-7)
    assert np.all(y * (X @ X.T @ asked.coefficients) >= wanted * (1 - 1e-9))


def test_every_multiplier_gives_bounds_and_those_of_the_optimum_meet() -> None:
    # Squared norm 1/4 + 1 at f = (1/2, -1): lam = (1/4, 1).
    program = KernelProgram(np.diag([4.0, 1.0]), np.array([1.0, -1.0]))
    optimum = math.sqrt(1.25)
    for lam in RNG.uniform(0.1, 1, size=(20, 2)):
        certificate = certify_kernel(program, lam)
        assert certificate.dual_objective <= optimum <= certificate.objective
        q = 4 * lam[0] ** 2 + lam[1] ** 2
        assert certificate.dual_objective == pytest.approx(lam.sum() / math.sqrt(q), rel=1e-12)
        floor = min(4 * lam[0], lam[1])
        assert certificate.objective == pytest.approx(math.sqrt(q) / floor, rel=1e-12)
    assert certify_kernel(program, np.array([0.25, 1.0])).gap < 1e-13
    assert certify_kernel(program, np.zeros(2)).gap == math.inf
    with pytest.raises(ValueError, match="not negative"):
        certify_kernel(program, np.array([1.0, -1.0]))


@pytest.mark.parametrize(
    ("K", "y"),
    [
        (np.ones((3, 3)), [1, -1, 1]),
        (np.outer([1, 2], [1, 2]), [1, -1]),
        (np.diag([1.0, 0.0]), [1, -1]),
        (np.zeros((2, 2)), [1, 1]),
    ],
)
def test_what_no_function_separates_is_proved_inseparable(K, y) -> None:
    answer = solve_kernel(KernelProgram(np.array(K, dtype=float), np.array(y, dtype=float)))
    assert answer.status is Status.NOT_SEPARABLE
    assert answer.dual.sum() == pytest.approx(1) and answer.dual.min() >= 0
    # The proof itself: the weighed features vanish, to the square root of the resolution.
    signed = answer.dual * np.array(y)
    assert signed @ K @ signed <= 2**-52
    with pytest.raises(NotCertified):
        answer.require()


def test_labels_of_a_coin_are_inseparable_and_those_of_a_full_kernel_are_not() -> None:
    X, y = RNG.normal(size=(120, 5)), RNG.choice([-1.0, 1.0], size=120)
    assert solve_kernel(KernelProgram(X @ X.T, y)).status is Status.NOT_SEPARABLE
    assert solve_kernel(KernelProgram(X @ X.T + 0.01 * np.eye(120), y)).status is Status.SOLVED


def test_too_few_iterations_claim_nothing_that_is_not_so() -> None:
    X, y = features(80, 20)
    seen: list[int] = []
    settings = Settings(max_iterations=2, progress=lambda i, gap: seen.append(i))
    answer = solve_kernel(KernelProgram(X @ X.T, y), settings)
    best = solve_kernel(KernelProgram(X @ X.T, y)).require().certificate
    assert seen == [1, 2] and answer.iterations == 2
    assert answer.certificate.dual_objective <= best.objective
    assert best.dual_objective <= answer.certificate.objective
    assert answer.status is not Status.NOT_SEPARABLE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(3), np.ones(2)), r"shape \(n, n\) for labels"),
        ((np.eye(2) * np.nan, np.ones(2)), "NaN or infinite"),
        ((np.eye(2), np.array([1.0, 2.0])), "labels -1 and"),
        ((np.eye(2), np.ones(2), np.array([1.0, 0.0])), "`wanted` must hold 2 positive"),
        ((np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2)), "eigenvalues below zero"),
    ],
)
def test_what_is_no_program_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        KernelProgram(*arguments)
