"""The active set of programs of one group, against Lawson and Hanson's own reduction."""

from __future__ import annotations

import numpy as np
import pytest

from solvers import Settings, Status, solve
from solvers.active_set import active_set_multipliers
from tests.oracles import hard_margin
from tests.problems import linear_program

SETTINGS = Settings()
RNG = np.random.default_rng(0)


def separable(n: int, D: int, seed: int = 0) -> np.ndarray:
    """(n, D) rows with positive products with one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X * np.sign(X @ rng.normal(size=D))[:, None]


ROWS = {
    "fewer samples than inputs": separable(20, 60),
    # The set is full at five: samples take each other's places.
    "forty times more samples than inputs": separable(200, 5),
    "duplicates": np.repeat(separable(30, 8), 3, axis=0),
    "ties": np.vstack([np.eye(6), 2 * np.eye(6), np.ones((3, 6))]),
    "a multiple of another": np.vstack([separable(20, 30), 3 * separable(20, 30)]),
}


@pytest.mark.parametrize("A", ROWS.values(), ids=ROWS)
def test_multipliers_are_those_of_least_squares(A: np.ndarray) -> None:
    lam, rounds = active_set_multipliers(A @ A.T, SETTINGS, rank=min(A.shape))
    assert lam is not None and rounds < 60
    w = hard_margin(A)
    np.testing.assert_allclose(A.T @ lam, w, atol=1e-8 * np.linalg.norm(w))
    margins = A @ A.T @ lam
    assert lam.min() >= 0 and margins.min() > 1 - 1e-8
    np.testing.assert_allclose(margins[lam > 0], 1, atol=1e-8)


@pytest.mark.parametrize(
    "A", [np.vstack([A := separable(20, 4), -A[:1]]), RNG.normal(size=(80, 3))], ids=len
)
def test_there_are_none_where_nothing_separates(A: np.ndarray) -> None:
    assert active_set_multipliers(A @ A.T, SETTINGS, rank=A.shape[1])[0] is None
    assert solve(linear_program(A, np.ones(len(A)))).status is Status.NOT_SEPARABLE


def test_multipliers_of_a_part_leave_little_to_do() -> None:
    A = separable(300, 40)
    Q = A @ A.T
    part, _ = active_set_multipliers(Q[:280, :280], SETTINGS, rank=40)
    assert part is not None
    start = np.append(part, np.zeros(20))
    cold, warm = (active_set_multipliers(Q, SETTINGS, rank=40, start=s) for s in (None, start))
    np.testing.assert_allclose(warm[0], cold[0], rtol=1e-6, atol=1e-9 * cold[0].max())
    assert warm[1] < cold[1]
    assert active_set_multipliers(Q, SETTINGS, rank=40, start=cold[0])[1] == 0
    np.testing.assert_array_equal(start[:280], part)


def test_rounds_have_their_limit_and_are_reported() -> None:
    A, seen = separable(100, 30), list[tuple[int, float]]()
    heard = Settings(progress=lambda done, gap: seen.append((done, gap)))
    lam, rounds = active_set_multipliers(A @ A.T, heard, rank=30)
    assert lam is not None and [done for done, _ in seen] == list(range(1, rounds + 1))
    assert seen[-1][1] <= 1e-9 < seen[-2][1]
    cut = Settings(max_iterations=rounds - 1)
    assert active_set_multipliers(A @ A.T, cut, rank=30) == (None, rounds - 1)


def test_the_interior_point_takes_over_where_the_active_set_stops(monkeypatch) -> None:
    from solvers import interior_point

    A = separable(60, 20)
    program, known = linear_program(A, np.ones(60)), np.linalg.norm(hard_margin(A))
    assert solve(program).certificate.objective == pytest.approx(known, rel=1e-8)
    given_up = lambda *_, **__: (None, 7)  # noqa: E731
    monkeypatch.setattr(interior_point, "active_set_multipliers", given_up)
    other = solve(program)
    assert other.status is Status.SOLVED and other.iterations > 7
    assert other.certificate.objective == pytest.approx(known, rel=1e-8)
