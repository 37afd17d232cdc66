"""Every problem of the table with every solver: the right status, the right optimum, no lies."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cvxpy
import numpy as np
import pytest
import torch

from solvers import (
    SOLVERS,
    GatedDesign,
    MaxMarginProgram,
    NotCertified,
    Settings,
    Solution,
    Status,
    solve,
)
from solvers.methods.backends import daqp as few_dimensions
from solvers.methods.backends.cvxpy_margins import inseparability_program, primal_program
from solvers.numerics import memory
from tests.certificate_checker import assert_honest, recompute
from tests.long import some_of
from tests.problems import PROBLEMS, Hardness, Problem, as_torch, linear_program, stacked

PLAIN, ROUNDING = Hardness.PLAIN, Hardness.ROUNDING
BY_NAME = pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
SOME_BY_NAME = pytest.mark.parametrize(
    "problem", some_of(PROBLEMS, one_in=3), ids=lambda problem: problem.name
)
# General solvers are asked for a gap that first-order methods and other versions reach as well.
GENERAL = Settings(tol=1e-6)
FIRST_ORDER = Settings(tol=1e-6, max_iterations=20_000)
CONIC = ("CLARABEL", "ECOS", "SCS")
SEPARABLE = {Status.SOLVED, Status.INACCURATE}


def installed(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        name not in cvxpy.installed_solvers(), reason=f"cvxpy has no {name} here"
    )


@functools.cache
def interior_point(problem: Problem) -> Solution:
    return solve(problem.program)


def assert_never_wrong(problem: Problem, solution: Solution) -> None:
    """Status and bounds agree with what is known, however weak they are."""
    if problem.expected is Status.SOLVED:
        assert solution.status is not Status.NOT_SEPARABLE
    else:
        assert solution.status not in SEPARABLE
    certificate = solution.certificate
    if problem.optimum is not None:
        assert certificate.dual_objective <= problem.optimum * (1 + 1e-9)
        assert certificate.objective >= problem.optimum * (1 - 1e-9)
    else:
        other = interior_point(problem).certificate
        assert certificate.dual_objective <= other.objective * (1 + 1e-9)
        assert certificate.objective >= other.dual_objective * (1 - 1e-9)
    assert_honest(problem.program, solution)


def assert_interior_point(problem: Problem, solution: Solution) -> None:
    assert_never_wrong(problem, solution)
    if problem.hardness is not ROUNDING:
        assert solution.status is problem.expected
    if solution.status is Status.SOLVED:
        assert solution.certificate.gap <= 1e-8
        exact = recompute(problem.program, solution.primal, solution.dual)
        if problem.optimum is not None:
            assert exact.objective == pytest.approx(problem.optimum, rel=1e-7)
            assert exact.dual_objective == pytest.approx(problem.optimum, rel=1e-7)


def assert_general(problem: Problem, solution: Solution) -> None:
    assert_never_wrong(problem, solution)
    if problem.hardness is PLAIN:
        assert solution.status is problem.expected


@BY_NAME
def test_interior_point_reaches_the_expected_status_and_optimum(problem: Problem) -> None:
    assert_interior_point(problem, interior_point(problem))


@SOME_BY_NAME
def test_interior_point_does_the_same_on_tensors(problem: Problem) -> None:
    solution = solve(as_torch(problem.program))
    assert isinstance(solution.primal, torch.Tensor) and isinstance(solution.dual, torch.Tensor)
    assert_interior_point(problem, solution)


@pytest.mark.parametrize(
    ("name", "problem"),
    some_of(
        [
            pytest.param(name, problem, marks=installed(name), id=f"{name}-{problem.name}")
            for name in (*CONIC, "OSQP")
            for problem in PROBLEMS
            if name in CONIC or problem.program.n_groups == 1
        ],
        one_in=3,
    ),
)
def test_a_general_solver_is_never_wrong(name: str, problem: Problem) -> None:
    settings = FIRST_ORDER if name in ("SCS", "OSQP") else GENERAL
    assert_general(problem, solve(problem.program, solver=f"cvxpy:{name}", settings=settings))


def awkward(kind: str, seed: int) -> MaxMarginProgram:
    """Sizes over many decades: of samples, of inputs, of a few inputs beside a constant column."""
    rng = np.random.default_rng(seed)
    n, D = {"two inputs": (200, 2), "coin": (60, 5)}.get(kind, (40, 4))
    X = rng.normal(size=(n, D))
    sizes, decades = 10 ** rng.uniform(-4, 4, (n, 1)), 10 ** rng.permutation(np.linspace(0, -8, D))
    y = np.where(X @ rng.normal(size=D) > 0, 1.0, -1.0)
    if kind == "coin":
        return linear_program(X * decades, rng.choice([-1.0, 1.0], n))
    if kind == "contradiction":
        return stacked(linear_program(X * sizes * decades, y), [seed % n], sign=-1.0)
    if kind == "closed":
        Z = (rng.random((n, 3)) < 0.5) * 1.0
        Z[seed % n] = 0
        return MaxMarginProgram(GatedDesign(X * sizes, Z, np.arange(3)), y)
    if kind == "two inputs":
        return linear_program(X * sizes, y)
    inputs = X * decades if kind == "inputs" else np.hstack([np.ones((n, 1)), 1e-15 * X])
    return linear_program(inputs, y)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("closed", {Status.NOT_SEPARABLE}),
        ("contradiction", {Status.NOT_SEPARABLE}),
        ("coin", {Status.NOT_SEPARABLE}),  # 60 samples of 5 inputs: Cover
        ("two inputs", {Status.SOLVED}),
        ("inputs", SEPARABLE),
        ("beside a constant", SEPARABLE),
    ],
)
def test_sizes_of_many_decades_leave_no_doubt(kind: str, expected: set[Status]) -> None:
    for seed in range(6):
        program = awkward(kind, seed)
        solution = solve(program)
        assert solution.status in expected, f"seed {seed}: {solution.status.name}"
        assert_honest(program, solution)


def test_a_sample_that_no_coefficients_reach_is_a_proof_without_any_iteration() -> None:
    program = awkward("closed", 7)
    solution, closed = solve(program), program.design.Z.sum(axis=1) == 0
    assert solution.iterations == 0 and solution.certificate.separation_bound == 0
    np.testing.assert_array_equal(solution.dual, closed / closed.sum())


@installed("CLARABEL")
def test_cvxpy_answers_on_tensors_with_tensors() -> None:
    solution = solve(as_torch(two_points()), solver="cvxpy", settings=GENERAL)
    assert isinstance(solution.primal, torch.Tensor) and isinstance(solution.dual, torch.Tensor)
    assert solution.require().certificate.objective == pytest.approx(np.sqrt(1.25), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "n_groups", "message"),
    [
        pytest.param(
            "OSQP", 3, "takes quadratic programs, of one group only", marks=installed("OSQP")
        ),
        pytest.param(
            "HIGHS", 3, "takes quadratic programs, of one group only", marks=installed("HIGHS")
        ),
        pytest.param("SCIPY", 1, "takes no norms", marks=installed("SCIPY")),
    ],
)
def test_a_solver_that_cannot_take_a_program_names_those_that_can(
    name: str, n_groups: int, message: str
) -> None:
    program = next(p for p in PROBLEMS if p.program.n_groups == n_groups).program
    advice = rf"{message}, and this program has {n_groups} groups: use a conic.* CLARABEL"
    with pytest.raises(ValueError, match=advice):
        solve(program, solver=f"cvxpy:{name}")


@installed("HIGHS")
def test_a_quadratic_solver_nobody_listed_takes_one_group() -> None:
    solution = solve(two_points(), solver="cvxpy:HIGHS", settings=Settings(tol=1e-4))
    assert solution.require().certificate.objective == pytest.approx(np.sqrt(1.25), rel=1e-4)


def test_literal_programs_name_their_variables_and_constraints() -> None:
    primal, zeta = primal_program(two_points())
    assert primal.var_dict == {"zeta": zeta} and zeta.shape == (1, 2)
    proof, lam = inseparability_program(two_points())
    assert proof.var_dict == {"lam": lam} and lam.shape == (2,)
    labels = [[c.label for c in problem.constraints] for problem in (primal, proof)]
    assert labels == [["margins"], ["multipliers", "total"]]


def test_ctrl_c_does_not_wait_for_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(problem: cvxpy.Problem, **_: object) -> bytes:
        return hashlib.pbkdf2_hmac("sha256", b"", b"", 20_000_000)  # some ten seconds

    monkeypatch.setattr(cvxpy.Problem, "solve", compiled)
    start = time.perf_counter()
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        solve(two_points(), solver="cvxpy:CLARABEL")
    assert time.perf_counter() - start < 2


def test_what_a_backend_raises_reaches_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvxpy.Problem, "solve", lambda problem, **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        solve(two_points(), solver="cvxpy:CLARABEL")


def test_what_memory_cannot_hold_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    large = linear_program(np.ones((10**6, 1)), np.ones(10**6))
    monkeypatch.setattr(few_dimensions, "DIMENSIONS", 0)  # which needs no kernels
    with pytest.raises(ValueError, match=r"1000000 samples at once would take 22,352 GiB.*lower"):
        solve(large, settings=Settings(working_set_from=10**7))
    monkeypatch.setattr(memory, "_memory", lambda: 0.01 * 2.0**30)
    with pytest.raises(
        ValueError, match=r"of 1000000 margins would take 0.0149 GiB.*has 0.01: use"
    ):
        solve(large, solver="cvxpy:CLARABEL")


def two_points() -> MaxMarginProgram:
    """<w, (2, 0)> >= 1, <w, (0, 1)> <= -1: w = (1/2, -1), lam in the ratio 1 : 4."""
    return linear_program([[2, 0], [0, 1]], [1, -1])


@pytest.mark.parametrize("solver", ["interior-point", "cvxpy:CLARABEL", "cvxpy:SCS"])
def test_primal_and_dual_points_are_the_optimal_ones(solver: str) -> None:
    solution = solve(two_points(), solver=solver, settings=GENERAL)
    # The primal is as near to its optimum as the root of the gap; the objective grows with the
    # squared distance.
    np.testing.assert_allclose(solution.primal, [[0.5, -1]], atol=3e-3)
    np.testing.assert_allclose(solution.dual[1] / solution.dual[0], 4, rtol=1e-2)


@pytest.mark.parametrize("name", ["simplex", "interior-point:x", "", "CLARABEL"])
def test_an_unknown_solver_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown solver.*'interior-point', 'highs' or 'cvxpy:NAME'"
    ):
        solve(two_points(), solver=name)


def test_a_solver_is_asked_for_by_name() -> None:
    with pytest.raises(TypeError, match="`solver` must be a name, got None: use 'interior-point'"):
        solve(two_points(), solver=None)


def test_a_cvxpy_solver_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no solver 'NOSUCH' installed; it has .*CLARABEL"):
        solve(two_points(), solver="cvxpy:nosuch")


def test_every_family_of_solvers_is_in_the_table() -> None:
    assert set(SOLVERS) == {"interior-point", "highs", "cvxpy"}


def test_require_returns_a_solved_solution_and_raises_with_advice_otherwise() -> None:
    solution = solve(two_points())
    assert solution.require() is solution
    unsolvable = solve(linear_program([[1], [1]], [1, -1]))
    with pytest.raises(NotCertified, match=r"NOT_SEPARABLE: .*contradictory") as caught:
        unsolvable.require()
    assert caught.value.result is unsolvable


CUT_SHORT = Settings(tol=1e-6, max_iterations=1)


@SOME_BY_NAME
def test_an_interior_point_cut_short_is_honest(problem: Problem) -> None:
    assert_never_wrong(problem, solve(problem.program, settings=CUT_SHORT))


@pytest.mark.parametrize(
    "solver", [pytest.param(f"cvxpy:{name}", marks=installed(name)) for name in CONIC]
)
@pytest.mark.parametrize(
    "problem",
    some_of([p for p in PROBLEMS if p.hardness is PLAIN], one_in=6),
    ids=lambda problem: problem.name,
)
def test_a_general_solver_cut_short_is_honest(problem: Problem, solver: str) -> None:
    assert_never_wrong(problem, solve(problem.program, solver=solver, settings=CUT_SHORT))


def test_progress_is_told_every_iteration_and_its_gap() -> None:
    told: list[tuple[int, float]] = []
    problem = next(p for p in PROBLEMS if p.name.startswith("constructed, unbalanced"))
    settings = Settings(progress=lambda iteration, gap: told.append((iteration, gap)))
    solution = solve(problem.program, settings=settings)
    assert [iteration for iteration, _ in told] == list(range(1, solution.iterations + 1))
    assert told[-1][1] <= 1e-8 < told[0][1]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("tol", 0.0),
        ("tol", 1.0),
        ("tol", float("nan")),
        ("max_iterations", 0),
        ("working_set_from", 0),
    ],
)
def test_settings_out_of_range_are_refused_by_name(setting: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"`{setting}` must .*, got {value}"):
        Settings(**{setting: value})


@pytest.mark.parametrize("value", [2.5, math.nan, True, "7"])
@pytest.mark.parametrize("setting", ["max_iterations", "working_set_from", "threads"])
def test_settings_that_count_are_whole_numbers(setting: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"`{setting}` must be an integer.*, got {value!r}"):
        Settings(**{setting: value})


def test_a_file_of_the_user_that_hides_the_solvers_is_named(tmp_path: Path) -> None:
    (tmp_path / "solvers.py").write_text("mine = True\n")
    (tmp_path / "script.py").write_text("import implicit_bias._support.solve\n")
    run = subprocess.run(
        [sys.executable, tmp_path / "script.py"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert f"Python found {tmp_path / 'solvers.py'} first: rename that file" in run.stderr
