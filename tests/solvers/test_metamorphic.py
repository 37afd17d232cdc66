"""What must happen to the optimum when a program is changed in a way that is understood."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from solvers import GatedDesign, MaxMarginProgram, Solution, solve
from tests.problems import (
    Construction,
    gln_construction,
    gln_program,
    linear_program,
    random_gln,
    stacked,
    unequal_construction,
    with_inputs,
)

SAME = 3e-8  # two gaps of 1e-8 each
N_CONTEXTS = 3
X, Y, CONTEXTS = random_gln(50, 6, 4, N_CONTEXTS, seed=11)
PROGRAM = gln_program(X, Y, CONTEXTS, N_CONTEXTS)
CONSTRUCTIONS = {"gln": gln_construction(), "unequal": unequal_construction()}
PROGRAMS = {"random": PROGRAM} | {name: case.program for name, case in CONSTRUCTIONS.items()}
EACH = pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))


@functools.cache  # programs compare by identity
def base(program: MaxMarginProgram) -> Solution:
    return solve(program).require()


def optimum(program: MaxMarginProgram) -> float:
    return solve(program).require().certificate.objective


def assert_same_optimum(changed: MaxMarginProgram, program: MaxMarginProgram) -> None:
    expected = base(program).certificate.objective
    assert optimum(changed) == pytest.approx(expected, rel=SAME)


def with_gates(program: MaxMarginProgram, Z: np.ndarray, group: np.ndarray) -> MaxMarginProgram:
    return replace(program, design=GatedDesign(program.design.X, Z, group))


@EACH
def test_the_order_of_the_samples_does_not_matter(program: MaxMarginProgram) -> None:
    order = np.random.default_rng(0).permutation(program.n_samples)
    changed = solve(program.subset(order)).require()
    assert_same_optimum(program.subset(order), program)
    # The scores are those of the same predictor: it is determined to the root of the gap.
    scores = program.design.scores(changed.primal)
    np.testing.assert_allclose(scores, program.design.scores(base(program).primal), atol=3e-3)


def rotated(program: MaxMarginProgram) -> MaxMarginProgram:
    D = program.design.X.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0]
    return with_inputs(program, program.design.X @ rotation)


def flipped_inputs_and_labels(program: MaxMarginProgram) -> MaxMarginProgram:
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=program.n_samples)
    return replace(with_inputs(program, signs[:, None] * program.design.X), y=signs * program.y)


def duplicated_samples(program: MaxMarginProgram) -> MaxMarginProgram:
    tight = np.argsort(-base(program).dual)[:5]
    return stacked(program, [*tight.tolist(), *range(10)])


def renumbered_groups(program: MaxMarginProgram) -> MaxMarginProgram:
    names = np.random.default_rng(4).permutation(program.n_groups)
    return with_gates(program, program.design.Z, names[program.design.group])


def wider_by_zeros(program: MaxMarginProgram) -> MaxMarginProgram:
    return with_inputs(program, np.insert(program.design.X, 2, 0.0, axis=1))


@EACH
@pytest.mark.parametrize(
    "change",
    [rotated, flipped_inputs_and_labels, duplicated_samples, renumbered_groups, wider_by_zeros],
)
def test_changes_of_a_program_that_leave_its_optimum(
    program: MaxMarginProgram, change: Callable[[MaxMarginProgram], MaxMarginProgram]
) -> None:
    assert_same_optimum(change(program), program)


RELABELLING = np.array([[1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2]])  # (H, C)


@pytest.mark.parametrize(
    ("contexts", "n_contexts"),
    [
        pytest.param(RELABELLING[np.arange(4), CONTEXTS], N_CONTEXTS, id="contexts relabelled"),
        pytest.param(CONTEXTS[:, [2, 0, 3, 1]], N_CONTEXTS, id="units permuted"),
        pytest.param(CONTEXTS, N_CONTEXTS + 4, id="contexts that no sample is in"),
        pytest.param(2 * CONTEXTS + 1, 2 * N_CONTEXTS, id="such contexts in between"),
        # Its coefficients can be shared out in any proportion at the same cost.
        pytest.param(CONTEXTS[:, [0, 1, 2, 3, 1, 1]], N_CONTEXTS, id="a unit three times"),
    ],
)
def test_changes_of_the_contexts_that_leave_the_optimum(
    contexts: np.ndarray, n_contexts: int
) -> None:
    assert_same_optimum(gln_program(X, Y, contexts, n_contexts), PROGRAM)


@EACH
@pytest.mark.parametrize("scale", [1e-9, 1e-2, 3.0, 1e7])
def test_scaling_the_inputs_divides_the_optimum(program: MaxMarginProgram, scale: float) -> None:
    changed = optimum(with_inputs(program, scale * program.design.X))
    assert scale * changed == pytest.approx(base(program).certificate.objective, rel=SAME)


@EACH
def test_scaling_all_gates_divides_the_optimum(program: MaxMarginProgram) -> None:
    design = program.design
    changed = optimum(with_gates(program, 2.5 * design.Z, design.group))
    assert 2.5 * changed == pytest.approx(base(program).certificate.objective, rel=SAME)


@EACH
def test_flipping_all_labels_negates_the_coefficients(program: MaxMarginProgram) -> None:
    flipped = replace(program, y=-program.y)
    assert_same_optimum(flipped, program)
    scores = program.design.scores(solve(flipped).primal)
    np.testing.assert_allclose(scores, -program.design.scores(base(program).primal), atol=3e-3)


@EACH
def test_samples_with_no_multiplier_can_go_and_the_others_cannot(program: MaxMarginProgram) -> None:
    solution = base(program)
    slack = program.margins(solution.primal) - 1
    idle = (solution.dual < 1e-4 * solution.dual.max()) & (slack > 1e-3)
    assert idle.sum() >= 5
    assert_same_optimum(program.subset(np.flatnonzero(~idle)), program)
    others = np.arange(program.n_samples) != np.argmax(solution.dual)
    without = optimum(program.subset(np.flatnonzero(others)))
    assert without < solution.certificate.objective * (1 - 1e-4)


@EACH
def test_a_sample_that_is_classified_with_room_changes_nothing_and_a_violator_does(
    program: MaxMarginProgram,
) -> None:
    solution = base(program)
    tight = int(np.argmax(solution.dual))
    assert_same_optimum(stacked(program, [tight], scale=1.5), program)
    harder = optimum(stacked(program, [tight], scale=0.5))
    assert harder > solution.certificate.objective * (1 + 1e-4)


@EACH
def test_relabelling_columns_within_groups_changes_nothing(program: MaxMarginProgram) -> None:
    """Groups of unequal sizes travel with their columns."""
    order = np.random.default_rng(3).permutation(program.design.Z.shape[1])
    design = program.design
    changed = with_gates(program, design.Z[:, order], design.group[order])
    assert_same_optimum(changed, program)
    found = np.empty_like(base(program).primal)
    found[order] = solve(changed).primal
    scores = design.scores(found)
    np.testing.assert_allclose(scores, design.scores(base(program).primal), atol=3e-3)


def test_a_constant_unit_beside_others_never_raises_the_optimum() -> None:
    constant = np.hstack([CONTEXTS, np.zeros((len(Y), 1), dtype=int)])
    assert optimum(gln_program(X, Y, constant, N_CONTEXTS)) <= (
        base(PROGRAM).certificate.objective * (1 + SAME)
    )


@EACH
def test_splitting_a_group_raises_the_optimum_by_at_most_root_two(
    program: MaxMarginProgram,
) -> None:
    """||(a, b)|| <= ||a|| + ||b|| <= sqrt(2) ||(a, b)||, and merging undoes it."""
    group = program.design.group.copy()
    first = np.flatnonzero(group == 0)
    assert len(first) == 3
    group[first[2]] = program.n_groups  # sizes 2 and 1
    before = base(program).certificate.objective
    after = optimum(with_gates(program, program.design.Z, group))
    assert before * (1 - SAME) <= after <= np.sqrt(2) * before * (1 + SAME)
    assert after > before * (1 + 1e-5)
    group[first[2]] = 0
    assert_same_optimum(with_gates(program, program.design.Z, group), program)


@pytest.mark.parametrize("case", CONSTRUCTIONS.values(), ids=list(CONSTRUCTIONS))
def test_a_dual_optimum_prices_a_change_of_the_required_margins(case: Construction) -> None:
    """Dividing sample n by 1 + e asks for margin 1 + e of it: d optimum / d e = lam_n."""
    n, e = int(np.argmax(case.dual)), 1e-4
    changed = []
    for shift in (e, -e):
        inputs = case.program.design.X.copy()
        inputs[n] /= 1 + shift
        changed.append(optimum(with_inputs(case.program, inputs)))
    assert (changed[0] - changed[1]) / (2 * e) == pytest.approx(case.dual[n], rel=2e-3)


def test_a_concatenated_one_group_program_is_the_svm_on_gated_features() -> None:
    """One group: the plain norm on the features Z[n, j] X[n]."""
    merged = with_gates(PROGRAM, PROGRAM.design.Z, np.zeros_like(PROGRAM.design.group))
    features = np.einsum("nj,nd->njd", merged.design.Z, X).reshape(len(Y), -1)
    assert optimum(merged) == pytest.approx(optimum(linear_program(features, Y)), rel=SAME)


def separable_plane() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    inputs = rng.normal(size=(40, 4))
    score = inputs @ np.array([1.0, -2.0, 0.5, 3.0])
    return inputs[np.abs(score) > 0.5], np.sign(score[np.abs(score) > 0.5])


def test_one_unit_with_one_context_is_the_plain_svm_of_scikit_learn() -> None:
    inputs, labels = separable_plane()
    solution = solve(linear_program(inputs.tolist(), labels.tolist())).require()
    svm = LinearSVC(
        loss="hinge", C=1e4, fit_intercept=False, tol=1e-9, max_iter=2_000_000, random_state=0
    ).fit(inputs, labels)
    np.testing.assert_allclose(solution.primal, svm.coef_, rtol=1e-4, atol=1e-4)
    assert solution.certificate.objective == pytest.approx(np.linalg.norm(svm.coef_), rel=1e-4)


def test_one_unit_with_one_context_is_the_quadratic_program() -> None:
    inputs, labels = separable_plane()
    signed = labels[:, None] * inputs
    oracle = minimize(
        lambda w: w @ w / 2,
        np.array([1.0, -2.0, 0.5, 3.0]) * 4,
        jac=lambda w: w,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: signed @ w - 1, "jac": lambda w: signed},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    solution = solve(linear_program(inputs.tolist(), labels.tolist())).require()
    assert solution.certificate.objective == pytest.approx(np.linalg.norm(oracle.x), rel=1e-7)
    np.testing.assert_allclose(solution.primal[0], oracle.x, atol=1e-3)


def test_one_unit_with_contexts_is_one_svm_per_context() -> None:
    """H = 1: ||zeta||^2 is the sum over contexts, each with its own samples."""
    single = gln_program(X, Y, CONTEXTS[:, :1], N_CONTEXTS)
    inputs = np.where(Y[:, None] * X @ X[0][:, None] < 0, -X, X)  # separable: all on one side
    single = with_inputs(single, inputs)
    parts = [
        optimum(linear_program(inputs[CONTEXTS[:, 0] == c], Y[CONTEXTS[:, 0] == c]))
        for c in range(N_CONTEXTS)
    ]
    assert optimum(single) == pytest.approx(np.linalg.norm(parts), rel=SAME)
