"""Random small programs, degenerate ones included, against the literal primal in cvxpy."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog
from scipy.sparse import csr_array

from solvers import GatedDesign, MaxMarginProgram, Status, solve
from solvers.methods.backends import daqp as few_dimensions
from solvers.methods.backends.cvxpy_margins import inseparability_program, primal_program
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


# Exact ties: bits, signs and small integers.
TIED = ([0, 1], [-1, 1], [-1, 0, 1], [-2, -1, 0, 1, 2])


@st.composite
def tied_programs(draw: st.DrawFn, groups: int) -> MaxMarginProgram:
    """Small integers behind gates that are open or closed, some samples twice or more.

    An integer teacher labels half of them, a coin the others and those of score 0.
    """
    n, D, J = draw(st.integers(1, 12)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.choice(draw(st.sampled_from(TIED)), size=(n, D)).astype(float)
    Z = rng.integers(0, 2, size=(n, J)) if draw(st.booleans()) else np.ones((n, J))
    scores = np.einsum("nj,nd,jd->n", Z, X, rng.integers(-1, 2, size=(J, D)))
    taught = draw(st.booleans()) & (scores != 0)
    y = np.where(taught, np.sign(scores), rng.choice([-1.0, 1.0], size=n))
    again = rng.integers(0, n, size=draw(st.sampled_from([0, n])))
    rows = np.append(np.arange(n), again)
    group = np.arange(J) % min(J, groups)
    return MaxMarginProgram(GatedDesign(X[rows], Z[rows].astype(float), group), y[rows])


def separable_by_highs(program: MaxMarginProgram) -> bool:
    """Whether HiGHS finds coefficients of margins 1; it resolves those of small integers."""
    design = program.design
    rows = np.einsum("n,nj,nd->njd", program.y, design.Z, design.X).reshape(program.n_samples, -1)
    found = linprog(np.zeros(rows.shape[1]), -rows, -np.ones(len(rows)), bounds=(None, None))
    assert found.status in (0, 2)
    return bool(found.status == 0)


def assert_oracles_agree_on_integers(program: MaxMarginProgram) -> None:
    solution = solve(program)
    expected = Status.SOLVED if separable_by_highs(program) else Status.NOT_SEPARABLE
    assert solution.status is expected
    assert solution.iterations <= 3 * program.n_samples + 20
    assert_oracle_agrees(program)


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


@pytest.mark.long
@settings(MILD, max_examples=200)
@given(tied_programs(groups=1))
def test_ties_of_one_group_end_with_the_status_of_a_linear_program(
    program: MaxMarginProgram,
) -> None:
    assert_oracles_agree_on_integers(program)


@settings(MILD, max_examples=100)
@given(tied_programs(groups=1))
def test_ties_on_sparse_inputs_end_with_the_status_of_a_linear_program(
    program: MaxMarginProgram,
) -> None:
    design = replace(program.design, X=csr_array(program.design.X))
    solution = solve(MaxMarginProgram(design, program.y))
    expected = Status.SOLVED if separable_by_highs(program) else Status.NOT_SEPARABLE
    assert solution.status is expected
    assert_honest(program, solution)


@settings(MILD, max_examples=100)
@given(tied_programs(groups=1))
def test_ties_without_daqp_end_with_the_status_of_a_linear_program(
    program: MaxMarginProgram,
) -> None:
    expected = Status.SOLVED if separable_by_highs(program) else Status.NOT_SEPARABLE
    with pytest.MonkeyPatch.context() as patch:  # as where it is not installed
        patch.setattr(few_dimensions, "_daqp", lambda: None)
        solution = solve(program)
    assert solution.status is expected
    assert_honest(program, solution)


@pytest.mark.long
@settings(MILD, max_examples=80)
@given(tied_programs(groups=3))
def test_ties_of_several_groups_end_with_the_status_of_a_linear_program(
    program: MaxMarginProgram,
) -> None:
    assert_oracles_agree_on_integers(program)


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
