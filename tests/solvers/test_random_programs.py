"""Random small programs, degenerate ones included, against the literal primal in cvxpy."""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from solvers import GatedDesign, MaxMarginProgram, Status, solve
from solvers.cvxpy_backend import inseparability_program, primal_program
from tests.certificate_checker import assert_honest
from tests.problems import gln_program

# Small integers: ties, rows of zeros, duplicates and contradictions come by themselves.
ENTRIES = st.integers(-3, 3).map(float)
MILD = settings(deadline=None, max_examples=40, derandomize=True, database=None)


@st.composite
def gln_programs(draw: st.DrawFn) -> MaxMarginProgram:
    n, D = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    H, C = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    X = draw(hnp.arrays(float, (n, D), elements=ENTRIES))
    y = draw(hnp.arrays(float, n, elements=st.sampled_from([-1.0, 1.0])))
    contexts = draw(hnp.arrays(np.int64, (n, H), elements=st.integers(0, C - 1)))
    return gln_program(X, y, contexts, C)


@st.composite
def gated_programs(draw: st.DrawFn) -> MaxMarginProgram:
    """Gates 0, 1 and 2 in interleaved groups of unequal sizes; real inputs."""
    n, D, J = draw(st.integers(1, 12)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    Z = draw(hnp.arrays(float, (n, J), elements=st.sampled_from([0.0, 1.0, 2.0])))
    group = draw(st.permutations([0, 1, 0, 2, 1][:J]))
    X = np.random.default_rng(draw(st.integers(0, 10**6))).normal(size=(n, D))
    y = draw(hnp.arrays(float, n, elements=st.sampled_from([-1.0, 1.0])))
    return MaxMarginProgram(GatedDesign(X, Z, np.array(group)), y)


def assert_oracle_agrees(program: MaxMarginProgram) -> None:
    solution = solve(program)
    assert_honest(program, solution)
    problem, _ = primal_program(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # inaccurate oracles are left out below
        problem.solve(solver="CLARABEL")
    assume(problem.status in (cvxpy.OPTIMAL, cvxpy.INFEASIBLE))
    if problem.status == cvxpy.INFEASIBLE:
        assert solution.status is Status.NOT_SEPARABLE
    else:
        assert solution.status is Status.SOLVED
        assert solution.certificate.objective == pytest.approx(problem.value, rel=1e-5)


@MILD
@given(gln_programs())
def test_gated_linear_programs_have_the_optimum_of_the_literal_primal(
    program: MaxMarginProgram,
) -> None:
    assert_oracle_agrees(program)


@MILD
@given(gated_programs())
def test_programs_of_unequal_interleaved_groups_have_the_optimum_of_the_literal_primal(
    program: MaxMarginProgram,
) -> None:
    assert_oracle_agrees(program)


@settings(MILD, max_examples=15)
@given(gln_programs())
def test_the_proof_s_program_has_the_value_one_over_the_optimum_or_zero(
    program: MaxMarginProgram,
) -> None:
    problem, lam = inseparability_program(program)
    problem.solve(solver="CLARABEL")
    assume(problem.status == cvxpy.OPTIMAL)
    solution = solve(program)
    if solution.status is Status.SOLVED:
        gamma = 1 / solution.certificate.objective
        assert problem.value == pytest.approx(gamma, rel=1e-5, abs=1e-7)
    else:
        assert solution.status is Status.NOT_SEPARABLE
        assert problem.value == pytest.approx(0, abs=1e-6)
    assert lam.value.min() >= -1e-7 and lam.value.sum() == pytest.approx(1)
