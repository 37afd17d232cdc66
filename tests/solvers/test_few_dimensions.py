"""Programs of few dimensions, which DAQP solves, under the certificate of all others."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
from solvers import GatedDesign, MaxMarginProgram, Settings, Status, solve
from solvers.certificates import solution
from solvers.methods.backends import daqp as few_dimensions
from solvers.methods.backends.daqp import has_few_dimensions, solve_few_dimensions
from tests.certificate_checker import assert_honest
from tests.oracles import hard_margin
from tests.problems import as_torch, linear_program


def drawn(n: int, D: int, seed: int = 0) -> MaxMarginProgram:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return linear_program(X, np.where(X @ rng.normal(size=D) < 0, -1.0, 1.0))


def gated(n: int = 900) -> MaxMarginProgram:
    """Two interleaved gate columns of one group, their gates 0, 1 and 2."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(n, 6)), rng.integers(0, 3, size=(n, 2)).astype(float)
    Z[~Z.any(axis=1), 0] = 1.0
    design = GatedDesign(X, Z, np.zeros(2, dtype=np.int64))
    scores = design.scores(rng.normal(size=(2, 6)))
    return MaxMarginProgram(design, np.where(scores < 0, -1.0, 1.0))


def signed_rows(program: MaxMarginProgram) -> np.ndarray:
    """(n, J D) rows `y[n] Z[n, j] X[n]`."""
    design = program.design
    rows = (program.y[:, None] * design.Z)[:, :, None] * design.X[:, None, :]
    return rows.reshape(program.n_samples, -1)


PROGRAMS = {
    "3000 x 20": drawn(3000, 20), "600 x 3": drawn(600, 3), "40 x 30": drawn(40, 30),
    "gates": gated(),
}  # fmt: skip
EACH = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


@EACH
def test_the_answer_is_certified_and_that_of_the_other_methods(program, monkeypatch) -> None:
    found = solve_few_dimensions(program, Settings())
    assert found is not None
    solution = solve(program)
    assert solution.status is Status.SOLVED and solution.iterations == found[2]
    assert_honest(program, solution)
    scale = np.abs(solution.primal).max()
    np.testing.assert_allclose(
        solution.primal.ravel(), hard_margin(signed_rows(program)), atol=1e-6 * scale
    )
    monkeypatch.setattr(few_dimensions, "_daqp", lambda: None)  # as where it is not installed
    other = solve(program)
    assert other.status is Status.SOLVED and other.iterations != solution.iterations
    objectives = [one.certificate.objective for one in (solution, other)]
    assert objectives[0] == pytest.approx(objectives[1], rel=2e-8)


def test_coefficients_do_not_lose_what_cancels_in_the_sum_of_support_vectors() -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2000) < 0.5, -1.0, 1.0)
    X = np.column_stack([rng.normal(size=(2000, 4)), 1e-5 * y * (1 + rng.random(2000))])
    program = linear_program(X, y)
    found = solve_few_dimensions(program, Settings())
    assert found is not None
    answer, certificate, _ = found
    assert_honest(program, solve(program))
    # The points are feasible as they are, so that their certificate is the answer's.
    assert 1 <= certificate.smallest_margin <= 1 + 1e-12
    assert float(answer.dual.sum()) == pytest.approx(certificate.dual_objective, rel=1e-12)


def test_the_answer_is_certified_once(monkeypatch) -> None:
    """It comes at the scale of its certificate."""

    def again(*points: object) -> None:
        raise AssertionError("certified again")

    monkeypatch.setattr(solution, "certify", again)
    found = solve(drawn(3000, 20))
    assert found.status is Status.SOLVED
    assert float(found.dual.sum()) == pytest.approx(found.certificate.dual_objective, rel=1e-12)


def test_of_many_samples_a_set_at_a_time_is_solved(monkeypatch) -> None:
    """Least margins along the mean are no support vectors here: later sets bring them."""
    rng = np.random.default_rng(0)
    first, second = np.abs(rng.normal(size=(1500, 3))), np.abs(rng.normal(size=(6500, 3)))
    X = np.concatenate([first * [1, 1, 0.01] + [1, 0, 0], second * [-1, 1, 1] + [-1, 0, 10]])
    X[:, 1] *= np.where(rng.random(8000) < 0.5, -1, 1)
    program = linear_program(X, np.ones(8000))
    daqp, rows = few_dimensions._daqp(), list[int]()

    class Counted:
        @staticmethod
        def solve(*arguments, **options):
            rows.append(len(arguments[2]))
            return daqp.solve(*arguments, **options)

    monkeypatch.setattr(few_dimensions, "_daqp", lambda: Counted)
    found = solve_few_dimensions(program, Settings())
    assert found is not None and found[1].gap <= 1e-8
    assert len(rows) > 1 and rows == sorted(set(rows)) and max(rows) < 4000
    oracle = hard_margin(signed_rows(program))
    np.testing.assert_allclose(found[0].primal.ravel(), oracle, atol=1e-6 * np.abs(oracle).max())


def test_it_is_for_one_group_of_few_dimensions_on_dense_numpy_arrays() -> None:
    for n in (5, 500):
        assert has_few_dimensions(drawn(n, 200))
        assert not has_few_dimensions(drawn(n, 201))
        assert not has_few_dimensions(as_torch(drawn(n, 3)))
    two = gated()
    design = GatedDesign(two.design.X, two.design.Z, np.array([0, 1]))
    assert not has_few_dimensions(MaxMarginProgram(design, two.y))


def test_contradictions_and_a_limit_of_iterations_are_left_to_the_other_methods() -> None:
    program = drawn(700, 4)
    rows = np.append(np.arange(700), 0)
    labels = program.y[rows]
    labels[-1] *= -1
    opposed = MaxMarginProgram(program.design.subset(rows), labels)
    assert solve_few_dimensions(opposed, Settings()) is None
    assert solve(opposed).status is Status.NOT_SEPARABLE
    assert solve_few_dimensions(program, Settings(max_iterations=1)) is None


@pytest.mark.parametrize("exponent", [-480, 480])
def test_it_has_no_scale(exponent: int) -> None:
    program = drawn(600, 3)
    scaled = solve(linear_program(2.0**exponent * program.design.X, program.y))
    assert scaled.certificate.objective * 2.0**exponent == solve(program).certificate.objective


def test_progress_is_told_once_and_classes_are_solved_alike() -> None:
    seen: list[tuple[int, float]] = []
    program = drawn(600, 3)
    solve(program, settings=Settings(progress=lambda done, gap: seen.append((done, gap))))
    assert len(seen) == 1 and seen[0][0] > 0 and seen[0][1] <= 1e-8
    X = program.design.X
    limit = ib.solve_linear_svm(X, program.y, tol=1e-6)
    assert limit.gap <= 1e-6 and limit.iterations == seen[0][0]
