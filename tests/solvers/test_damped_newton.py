"""Newton's method and its factor on functions whose minimisers are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from solvers import Factor, damped_newton
from solvers.numerics.arrays import NotPositiveDefinite


def test_a_quadratic_takes_one_step_and_the_one_that_finds_nothing_left() -> None:
    A = np.array([[4.0, 1.0], [1.0, 3.0]])
    b = np.array([1.0, -2.0])
    w, steps = damped_newton(lambda w: w @ A @ w / 2 - b @ w, lambda w: (A @ w - b, A), np.zeros(2))
    np.testing.assert_allclose(w, np.linalg.solve(A, b), rtol=1e-14)
    assert steps <= 3


@pytest.mark.parametrize("start", [-3.0, 0.0, 6.0])
def test_far_starts_are_damped_and_the_end_is_exact_to_rounding(start) -> None:
    # log cosh: a whole step from |w| > 1.1 leads further away.
    centre = 0.3
    w, _ = damped_newton(
        lambda w: float(np.logaddexp(w - centre, centre - w).sum()),
        lambda w: (np.tanh(w - centre), np.diag(1 / np.cosh(w - centre) ** 2)),
        np.array([start]),
    )
    assert abs(float(w[0]) - centre) < 1e-12


def test_steps_stay_inside_of_the_domain() -> None:
    # -log w + 100 w on w > 0, of which nothing outside is ever asked for.
    seen = []

    def value(w: np.ndarray) -> float:
        seen.append(float(w[0]))
        return float(100 * w[0] - np.log(w[0]))

    w, _ = damped_newton(
        value,
        lambda w: (100 - 1 / w, np.diag(1 / w**2)),
        np.array([5.0]),
        room=lambda w, dw: float(-w[0] / dw[0]) if dw[0] < 0 else np.inf,
    )
    assert float(w[0]) == pytest.approx(0.01, rel=1e-12) and min(seen) > 0


def test_it_ends_where_so_little_is_left_as_is_asked_or_after_so_many_steps() -> None:
    def run(**how) -> tuple[np.ndarray, int]:
        return damped_newton(
            lambda w: float(np.sum(w**4)), lambda w: (4 * w**3, np.diag(12 * w**2)), np.ones(1),
            **how,
        )  # fmt: skip

    w, steps = run(enough=1e-6)
    assert 2 < steps < run()[1] and 4 * float(w[0]) ** 4 / 3 <= 1e-6
    assert run(max_steps=2)[1] == 2


def test_it_ends_inside_of_the_domain_where_rounding_leaves_no_step() -> None:
    # A whole step, too short for values to tell, ends at the edge.
    w, steps = damped_newton(
        lambda w: 1e12 + float((w[0] - 1) ** 2) / 2 if w[0] < 1 else np.inf,
        lambda w: (w - 1, np.eye(1)),
        np.zeros(1),
    )
    assert (w.tolist(), steps) == ([0.0], 1)
    indefinite = np.array([[1.0, 3.0], [3.0, 1.0]])
    w, _ = damped_newton(lambda w: float(w @ w), lambda w: (2 * w, indefinite), np.ones(2))
    assert w.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_factors_solve_uneven_and_singular_systems(kind) -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(6, 6)) * (sizes := 10.0 ** np.arange(-6, 6, 2))
    uneven = half.T @ half
    wanted = rng.normal(size=6) / sizes
    found = Factor(kind(uneven)).solve(kind(uneven @ wanted))
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-8)
    # Of rank 2, with a row of zeros: what is in the range is met.
    flat = np.zeros((4, 4))
    flat[:3, :3] = (thin := rng.normal(size=(3, 2))) @ thin.T
    right = flat @ rng.normal(size=(4, 2))
    found = Factor(kind(flat)).solve(kind(right))
    np.testing.assert_allclose(flat @ np.asarray(found), right, atol=1e-12)


def test_what_is_not_positive_definite_is_refused() -> None:
    with pytest.raises(NotPositiveDefinite):
        Factor(np.array([[1.0, 3.0], [3.0, 1.0]]))
