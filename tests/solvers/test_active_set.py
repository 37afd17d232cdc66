"""The active set of programs of one group, against Lawson and Hanson's own reduction."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from solvers import GatedDesign, MaxMarginProgram, Settings, Status, solve
from solvers.methods.sets import active as active_set
from solvers.methods.sets.active import active_set_multipliers
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


# Samples that enter with multiplier 0 and are to keep it: the step to the first that leaves is 0/0.
BITS = np.array(
    [[0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1],
     [0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1], [1, 0, 0, 1, 1, 1]]
)  # fmt: skip
STAYING_AT_ZERO = {
    "bits": linear_program(BITS, [-1, -1, -1, 1, -1, -1]),
    "gates": MaxMarginProgram(
        GatedDesign(
            np.array([[1.0, 1, 1], [-1, -1, 0]]),
            np.array([[0.0, 1, 1], [0, 0, 1]]),
            np.zeros(3, dtype=np.int64),
        ),
        np.array([1.0, -1.0]),
    ),
}


@pytest.mark.parametrize("program", STAYING_AT_ZERO.values(), ids=STAYING_AT_ZERO)
def test_samples_may_enter_and_leave_with_multiplier_zero(program: MaxMarginProgram) -> None:
    design = program.design
    rows = np.einsum("n,nj,nd->njd", program.y, design.Z, design.X).reshape(program.n_samples, -1)
    solution = solve(program)
    assert solution.status is Status.SOLVED
    assert solution.iterations <= 3 * program.n_samples
    np.testing.assert_allclose(solution.primal.ravel(), hard_margin(rows), atol=1e-8)


def tied(seed: int) -> np.ndarray:
    """(n, D) rows of small integers or signs, some of them twice or more, none of them zero."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(2, 30)), int(rng.integers(1, 9))
    values = ([0, 1], [-1, 0, 1], [-1, 1], [-3, -2, -1, 0, 1, 2, 3])[seed % 4]
    A = rng.choice(values, size=shape).astype(float)
    side = A @ rng.choice([-1, 0, 1], size=shape[1])
    A *= np.where(side < 0, -1.0, 1.0)[:, None]
    if rng.random() < 0.4:
        A = A[rng.integers(0, len(A), size=2 * len(A))]
    return A[A.any(axis=1)]


@pytest.mark.parametrize("seeds", [range(first, first + 100) for first in range(0, 400, 100)])
def test_ties_and_duplicates_end_within_a_few_factorisations_a_sample(seeds, monkeypatch) -> None:
    factorised = []
    cholesky = active_set.cholesky_lower
    monkeypatch.setattr(active_set, "cholesky_lower", lambda Q: factorised.append(0) or cholesky(Q))
    separated = []
    for A in filter(len, map(tied, seeds)):
        factorised.clear()
        lam, _ = active_set_multipliers(A @ A.T, SETTINGS, rank=min(A.shape))
        assert len(factorised) <= 3 * len(A)
        lp = linprog(np.zeros(A.shape[1]), -A, -np.ones(len(A)), bounds=(None, None))
        assert lp.status in (0, 2)
        separated.append(lp.status == 0)
        assert (lam is not None) == separated[-1]
        if lam is not None:  # the conditions of optimality, which are sufficient
            margins = A @ A.T @ lam
            assert lam.min() >= 0 and margins.min() > 1 - 1e-8
            np.testing.assert_allclose(margins[lam > 0], 1, atol=1e-8)
    assert 0.2 < np.mean(separated) < 0.9


def test_nothing_is_asked_of_samples_whose_inputs_are_zero() -> None:
    for Q in (np.zeros((2, 2)), np.diag([0.0, 1.0])):
        assert active_set_multipliers(Q, SETTINGS, rank=2)[0] is None


def test_rounds_have_their_limit_and_are_reported() -> None:
    A, seen = separable(100, 30), list[tuple[int, float]]()
    heard = Settings(progress=lambda done, gap: seen.append((done, gap)))
    lam, rounds = active_set_multipliers(A @ A.T, heard, rank=30)
    assert lam is not None and [done for done, _ in seen] == list(range(1, rounds + 1))
    assert seen[-1][1] <= 1e-9 < seen[-2][1]
    cut = Settings(max_iterations=rounds - 1)
    assert active_set_multipliers(A @ A.T, cut, rank=30) == (None, rounds - 1)


def test_the_interior_point_takes_over_where_most_samples_are_support_vectors() -> None:
    A = separable(300, 1200)
    assert active_set_multipliers(A @ A.T, SETTINGS, rank=300)[0] is None
    solution = solve(linear_program(A, np.ones(300)))
    assert solution.status is Status.SOLVED
    known = np.linalg.norm(hard_margin(A))
    assert solution.certificate.objective == pytest.approx(known, rel=1e-8)
