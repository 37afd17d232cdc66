"""More than two classes: the programs of all classes on one Gram matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import solvers.methods.one_vs_rest
from implicit_bias import solve_gln_svm
from implicit_bias.gates import HyperplaneContexts
from implicit_bias.programs import SVMGLN
from solvers import GatedDesign, MaxMarginProgram, Settings, Status, certify, solve
from solvers.methods.interior.group_kernels import group_kernels
from solvers.methods.one_vs_rest import one_vs_rest_programs, solve_one_vs_rest

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 6))
LABELS = RNG.integers(0, 4, size=N)
CONTEXTS = RNG.integers(0, 3, size=(N, 5))
GLN = SVMGLN().program(X, np.ones(N), CONTEXTS).design
DESIGNS = {
    "linear": GatedDesign(X, np.ones((N, 1)), np.zeros(1, dtype=np.int64)),
    "gln": GLN,
    "frelu": GatedDesign(X, (RNG.random((N, 4)) < 0.5) * 1.0, np.arange(4)),
    "soft": GatedDesign(X, RNG.normal(size=(N, 6)), np.array([0, 0, 1, 1, 1, 2])),
}


def as_torch(design: GatedDesign) -> GatedDesign:
    return GatedDesign(*(torch.as_tensor(a) for a in (design.X, design.Z, design.group)))


def same(design: GatedDesign) -> GatedDesign:
    return design


def digits(n: int) -> tuple[np.ndarray, np.ndarray]:
    images, labels = load_digits(return_X_y=True)
    return np.hstack([images[:n] / 8 - 1, np.ones((n, 1))]), labels[:n]


@pytest.mark.parametrize("kind", [same, as_torch])
@pytest.mark.parametrize("name", DESIGNS)
def test_flipped_kernels_are_those_of_the_flipped_labels_to_the_last_bit(name, kind) -> None:
    design = kind(DESIGNS[name])
    rows = design.X[:, 0]
    y, other = rows / abs(rows), kind(DESIGNS[name]).X[:, 1] / abs(design.X[:, 1])
    flipped = group_kernels(MaxMarginProgram(design, y))
    flipped.flip(y * other)
    own = group_kernels(MaxMarginProgram(design, other))
    for field in ("signed", "gram", "factor", "weight", "scale"):
        np.testing.assert_array_equal(getattr(flipped, field), getattr(own, field))
    assert not np.array_equal(own.gram, group_kernels(MaxMarginProgram(design, y)).gram)


@pytest.mark.parametrize("kind", [same, as_torch])
@pytest.mark.parametrize("name", DESIGNS)
def test_solutions_are_those_of_each_program_alone(name, kind) -> None:
    design = kind(DESIGNS[name])
    programs = one_vs_rest_programs(design, LABELS)
    solutions = solve_one_vs_rest(design, LABELS)
    assert len(solutions) == len(programs) == 4
    for k, (program, solution) in enumerate(zip(programs, solutions, strict=True)):
        np.testing.assert_array_equal(np.asarray(program.y), np.where(LABELS == k, 1, -1))
        alone = solve(program)
        assert solution.status is alone.status
        np.testing.assert_array_equal(solution.primal, alone.primal)
        np.testing.assert_array_equal(solution.dual, alone.dual)
        assert solution.certificate == alone.certificate == certify(
            program, solution.primal, solution.dual
        )  # fmt: skip


def test_digits_have_the_optima_of_their_ten_machines() -> None:
    inputs, labels = digits(250)
    contexts = HyperplaneContexts(6, 2).fit_transform(inputs)
    design = SVMGLN().program(inputs, np.ones(250), contexts).design
    for k, solution in enumerate(solve_one_vs_rest(design, labels)):
        limit = solve_gln_svm(inputs, np.where(labels == k, 1.0, -1.0), contexts).require()
        assert solution.require().certificate.objective == pytest.approx(limit.objective, rel=1e-7)


def refuse(program: MaxMarginProgram) -> None:
    raise AssertionError("a Gram matrix of all samples was asked for")


def test_another_solver_finds_the_same_optima_without_a_gram_matrix(monkeypatch) -> None:
    mine = solve_one_vs_rest(GLN, LABELS)
    monkeypatch.setattr(solvers.methods.one_vs_rest, "group_kernels", refuse)
    theirs = solve_one_vs_rest(GLN, LABELS, solver="cvxpy:CLARABEL", settings=Settings(tol=1e-5))
    for other, ours in zip(theirs, mine, strict=True):
        assert ours.status is other.status is Status.SOLVED
        assert other.solver == "cvxpy:CLARABEL"
        assert other.certificate.objective == pytest.approx(ours.certificate.objective, rel=1e-5)


def test_each_class_has_its_own_certificate_on_a_line_of_three() -> None:
    # Inputs (t, 1) at t = -1, 0, 1. The ends have closed forms, (-2, -1) and (2, -1); no line
    # parts the middle from both: 1/4 x_0 + 1/4 x_2 = 1/2 x_1.
    line = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    design = GatedDesign(line, np.ones((3, 1)), np.zeros(1, dtype=np.int64))
    left, middle, right = solve_one_vs_rest(design, np.array([0, 1, 2]))
    np.testing.assert_allclose(left.require().primal, [[-2.0, -1.0]], atol=1e-7)
    np.testing.assert_allclose(right.require().primal, [[2.0, -1.0]], atol=1e-7)
    assert middle.status is Status.NOT_SEPARABLE
    np.testing.assert_allclose(middle.dual, [0.25, 0.5, 0.25], atol=1e-12)


def test_all_classes_play_on_one_gram_matrix(monkeypatch) -> None:
    seen, play = [], solvers.methods.interior_point.play
    monkeypatch.setattr(
        solvers.methods.interior_point,
        "play",
        lambda kernels, *rest: (seen.append(kernels), play(kernels, *rest))[1],
    )
    solve_one_vs_rest(GLN, LABELS)
    assert len(seen) == 4
    assert all(kernels.gram is seen[0].gram for kernels in seen)


def test_memory_does_not_grow_with_the_classes() -> None:
    n = 500
    inputs = np.random.default_rng(1).normal(size=(n, 800))
    labels = np.arange(n) % 8
    design = GatedDesign(inputs, np.ones((n, 1)), np.zeros(1, dtype=np.int64))
    settings = Settings(tol=1e-2)

    def peak(classes: np.ndarray) -> int:
        tracemalloc.start()
        try:
            assert all(s.status is Status.SOLVED for s in
                       solve_one_vs_rest(design, classes, settings=settings))  # fmt: skip
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Six Gram matrices less; what is left is that some active sets are larger than others.
    assert peak(labels) - peak(labels % 2) < 0.6 * 8 * n**2


def test_large_data_have_working_sets_and_no_gram_matrix_of_all(monkeypatch) -> None:
    ours = solve_one_vs_rest(GLN, LABELS)
    monkeypatch.setattr(solvers.methods.one_vs_rest, "group_kernels", refuse)
    with pytest.raises(AssertionError, match="Gram matrix of all"):
        solve_one_vs_rest(GLN, LABELS, settings=Settings(working_set_from=N + 1))
    large = solve_one_vs_rest(GLN, LABELS, settings=Settings(working_set_from=N))
    for one, other in zip(ours, large, strict=True):
        assert one.certificate.objective == pytest.approx(
            other.require().certificate.objective, rel=1e-7
        )


@pytest.mark.parametrize(
    ("labels", "error", "match"),
    [
        (LABELS * 1.0, TypeError, "integers"),
        (LABELS[1:], ValueError, "one class per row"),
        (LABELS * 0, ValueError, "at least two"),
        (LABELS + 1, ValueError, "renumber"),
        (LABELS * 2, ValueError, "renumber"),
    ],
)
def test_labels_that_do_not_number_classes_are_refused(labels, error, match) -> None:
    for function in (one_vs_rest_programs, solve_one_vs_rest):
        with pytest.raises(error, match=match):
            function(GLN, labels)
