"""Certificates: right numbers for right points, and no proof from spoiled ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from solvers import GatedDesign, MaxMarginProgram, NotCertified, Status, certify
from solvers.certificates import max_margin as certificates
from solvers.certificates.solution import conclude
from solvers.numerics.arrays import to_numpy
from solvers.numerics.summation import enclose_adjoint, enclose_scores
from tests.certificate_checker import recompute
from tests.problems import (
    Construction,
    as_torch,
    constructed,
    gln_construction,
    linear_program,
    unequal_construction,
    with_inputs,
)

CONSTRUCTIONS = {"gln": gln_construction(), "unequal": unequal_construction()}
BOTH = pytest.mark.parametrize("case", CONSTRUCTIONS.values(), ids=list(CONSTRUCTIONS))
INSEPARABLE = linear_program([[1, 0], [-1, 1], [1, 1]], [1, 1, -1])
Kind = Callable[[np.ndarray], np.ndarray | torch.Tensor]
PROOF = np.array([2.0, 1.0, 1.0])  # 2 (1, 0) + (-1, 1) - (1, 1) = 0


@BOTH
def test_the_optimal_pair_of_a_construction_proves_its_optimum(case: Construction) -> None:
    certificate = certify(case.program, case.primal, case.dual)
    assert certificate.objective == pytest.approx(case.optimum, rel=1e-12)
    assert certificate.dual_objective == pytest.approx(case.optimum, rel=1e-12)
    assert certificate.smallest_margin == pytest.approx(1, rel=1e-12)
    assert certificate.proves_optimality(1e-11) and certificate.proves_separability()
    assert not certificate.proves_inseparability()


@BOTH
def test_every_field_agrees_with_exact_arithmetic_at_points_that_are_not_optimal(
    case: Construction,
) -> None:
    rng = np.random.default_rng(0)
    primal = case.primal + 0.02 * rng.normal(size=case.primal.shape)
    dual = case.dual + 0.01 * rng.random(case.dual.shape)
    certificate, exact = certify(case.program, primal, dual), recompute(case.program, primal, dual)
    assert exact.gap > 0.01  # there is something to get wrong
    assert certificate.smallest_margin == pytest.approx(float(min(exact.margins)), rel=1e-12)
    assert certificate.objective == pytest.approx(exact.objective, rel=1e-12)
    assert certificate.dual_objective == pytest.approx(exact.dual_objective, rel=1e-12)
    assert certificate.gap == pytest.approx(exact.gap, rel=1e-12)
    assert exact.cancellation <= certificate.separation_bound == 1  # nothing cancels


@BOTH
def test_tensors_give_the_same_certificate(case: Construction) -> None:
    primal, dual = torch.tensor(case.primal), torch.tensor(case.dual)
    on_torch = certify(as_torch(case.program), primal, dual).to_dict()
    assert on_torch == pytest.approx(
        certify(case.program, case.primal, case.dual).to_dict(), rel=1e-12, abs=1e-12
    )


@BOTH
def test_the_bounds_do_not_depend_on_the_scale_of_either_point(case: Construction) -> None:
    plain = certify(case.program, case.primal, case.dual)
    scaled = certify(case.program, 1e5 * case.primal, 1e-7 * case.dual)
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-12)
    assert scaled.dual_objective == pytest.approx(plain.dual_objective, rel=1e-12)
    assert scaled.smallest_margin == pytest.approx(1e5 * plain.smallest_margin, rel=1e-12)


@BOTH
def test_spoiling_one_sample_s_multiplier_or_one_coefficient_opens_the_gap(
    case: Construction,
) -> None:
    dual = case.dual.copy()
    dual[1] *= 1.1
    assert certify(case.program, case.primal, dual).gap > 1e-4
    primal = case.primal.copy()
    primal[1, 0] *= 1.1
    assert certify(case.program, primal, case.dual).gap > 1e-4


@BOTH
def test_permuted_columns_of_the_primal_are_not_optimal(case: Construction) -> None:
    """What grouping the wrong rows by a reshape in the wrong order would return."""
    assert not certify(case.program, case.primal[::-1], case.dual).proves_optimality(1e-2)


@BOTH
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_entries_that_are_not_finite_prove_nothing(case: Construction, value: float) -> None:
    primal, dual = case.primal.copy(), case.dual.copy()
    primal[2, 3] = value
    spoiled = certify(case.program, primal, case.dual)
    assert spoiled.gap == math.inf and not spoiled.proves_separability()
    assert not spoiled.proves_optimality(0.5) and not spoiled.proves_inseparability()
    dual[0] = value
    spoiled = certify(case.program, case.primal, dual)
    assert spoiled.gap == math.inf and not spoiled.proves_optimality(0.5)
    assert spoiled.dual_objective == 0 and not spoiled.proves_inseparability()


@BOTH
def test_negative_or_vanishing_multipliers_bound_nothing(case: Construction) -> None:
    for dual in (np.where(np.arange(case.dual.size) == 3, -1e-12, case.dual), 0 * case.dual):
        certificate = certify(case.program, case.primal, dual)
        assert certificate.dual_objective == 0 and certificate.gap == math.inf
        assert not certificate.proves_inseparability()


@BOTH
def test_a_point_with_one_wrong_sample_bounds_nothing(case: Construction) -> None:
    certificate = certify(case.program, -case.primal, case.dual)
    assert certificate.objective == math.inf and certificate.gap == math.inf
    assert certificate.smallest_margin < 0
    assert certify(case.program, 0 * case.primal, case.dual).objective == math.inf


def test_missing_points_prove_nothing() -> None:
    case = CONSTRUCTIONS["gln"]
    assert certify(case.program).gap == math.inf
    assert not certify(case.program).proves_inseparability()
    assert certify(case.program, case.primal).gap == math.inf
    assert certify(case.program, dual=case.dual).gap == math.inf
    assert certify(case.program, case.primal).proves_separability()


@BOTH
def test_wrong_shapes_are_refused_by_name(case: Construction) -> None:
    J, D = case.primal.shape
    with pytest.raises(ValueError, match=rf"`primal` must have shape \({J}, {D}\), got \({D}, {J}"):
        certify(case.program, case.primal.T, case.dual)
    with pytest.raises(ValueError, match=r"`dual` must have shape \(\d+,\), got \(3,\)"):
        certify(case.program, case.primal, case.dual[:3])


def test_bounds_hold_where_margins_and_blocks_cancel_down_to_their_rounding() -> None:
    """Rotated pairs ((1, e), 1), ((1, -e), -1): plain sums are off by some per cent, both ways."""
    rng, plainly_wrong = np.random.default_rng(0), 0
    for _ in range(100):
        angle = rng.uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        program = linear_program((np.array([[1, 1e-13], [1, -1e-13]]) @ turn).tolist(), [1, -1])
        primal, dual = np.array([[0.0, 1.0]]) @ turn, np.ones(2)
        certificate, exact = certify(program, primal, dual), recompute(program, primal, dual)
        assert certificate.dual_objective <= exact.dual_objective * (1 + 1e-15)
        assert exact.objective * (1 - 1e-15) <= certificate.objective
        assert certificate.objective == pytest.approx(exact.objective, rel=1e-12)
        assert certificate.separation_bound >= exact.cancellation * (1 - 1e-15)
        plainly_wrong += program.margins(primal).min() > float(min(exact.margins)) * (1 + 1e-5)
    assert plainly_wrong > 5


@pytest.mark.parametrize(
    ("programs", "samples"), [(60, (1, 7)), (3, (1100, 1300))], ids=["few samples", "many"]
)
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_bounds_lie_on_their_side_of_exact_arithmetic_at_every_scale(
    kind: Kind, programs: int, samples: tuple[int, int]
) -> None:
    """Entries over sixteen decades: plain sums, absolute sums and compensated sums all decide.

    Those of many samples are summed in pieces.
    """
    rng = np.random.default_rng(1)
    for _ in range(programs):
        n, J, D = int(rng.integers(*samples)), *(int(size) for size in rng.integers(1, 7, 2))
        X, V = (rng.normal(size=s) * 10.0 ** rng.integers(-8, 8, size=s) for s in ((n, D), (J, D)))
        Z, lam = rng.normal(size=(n, J)) * (rng.random((n, J)) < 0.7), rng.random(n)
        design = GatedDesign(kind(X), kind(Z), kind(np.arange(J) // 2))
        scores = design.scores(kind(V))
        program = MaxMarginProgram(design, kind(np.where(to_numpy(scores) >= 0, 1.0, -1.0)))
        certificate = certify(program, kind(V), kind(lam))
        exact = recompute(program, kind(V), kind(lam))
        assert certificate.objective >= exact.objective * (1 - 1e-15)
        assert certificate.dual_objective <= exact.dual_objective * (1 + 1e-15)
        assert certificate.separation_bound >= exact.cancellation * (1 - 1e-15)
        if certificate.proves_separability():
            assert certificate.objective == pytest.approx(exact.objective, rel=2e-10)
        floor = certificate.smallest_margin - certificate.margin_rounding
        assert floor * (1 - 1e-15) <= min(exact.margins)


def test_blocks_of_many_samples_are_known_without_compensated_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # x = 1/64 + 1 and 1/64 - 1 in turns sum to n / 64, all terms exact: a hundredth of their sizes.
    X = np.resize([65 / 64, -63 / 64], (20_000, 1))
    monkeypatch.delattr(certificates, "enclose_adjoint")
    certificate = certify(linear_program(X, np.ones(20_000)), dual=np.ones(20_000))
    assert 64 * (1 - 1e-10) < certificate.dual_objective < 64


@pytest.mark.parametrize("smallest", [1.0, 2.0**-400])
def test_compensated_sums_lie_within_their_radius_which_is_that_of_one_rounding(
    smallest: float,
) -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        n, D, J = (int(size) for size in rng.integers(1, 9, 3))
        X = rng.normal(size=(n, D)) * smallest ** rng.integers(0, 2, size=(n, D))
        Z = rng.normal(size=(n, J)) * smallest * (rng.random((n, J)) < 0.7)
        V, lam = rng.uniform(-1, 1, (J, D)) * smallest, rng.random(n) * smallest
        design = GatedDesign(X, Z, np.arange(J))
        exact = np.einsum("nj,nd,jd->njd", *(np.vectorize(Fraction)(a) for a in (Z, X, V)))
        blocks = np.einsum("nj,nd,n->njd", *(np.vectorize(Fraction)(a) for a in (Z, X, lam)))
        for found, terms, axes in (
            (enclose_scores(design, V), exact, (1, 2)),
            (enclose_adjoint(design, lam), blocks, 0),
        ):
            error = np.abs(np.vectorize(Fraction)(found.value) - terms.sum(axis=axes))
            assert np.all(error <= np.vectorize(Fraction)(found.radius))
            size = np.abs(terms).sum(axis=axes).astype(float)
            assert np.all(found.radius <= 2**-52 * np.abs(found.value) + 1e-27 * size + 2**-1000)


def test_points_of_one_label_that_sum_to_zero_are_never_separable() -> None:
    """Margins that sum to zero exactly, each some units in the last place above zero.

    The rounding of adding up 1e5 equal terms has one sign as long as the sum's exponent stays.
    """
    D, a, b = 100_000, 0.974471837468883, 0.9898443542548421  # multiples of 2^-45
    X, primal = np.outer([a, b, -(a + b)], np.append(np.ones(D), 0.0)), np.ones((1, D + 1))
    sums = linear_program(X, np.ones(3)).margins(primal)
    # The last column shares out by how much they exceed zero, on a grid that adds up exactly.
    last = -np.round((sums[:2] - sum(sums) / 3) * 2**34) / 2**34
    X[:, -1] = [*last, -sum(last)]
    program = linear_program(X, np.ones(3))
    assert sum(map(Fraction, X[:, 0])) == sum(map(Fraction, X[:, -1])) == 0
    # How many units depends on the order in which the BLAS of this processor adds.
    assert program.margins(primal).min() > 2**-52 * np.abs(X).sum(axis=1).max()
    assert not certify(program, primal).proves_separability()
    assert certify(program, dual=np.ones(3)).separation_bound == 0


def test_cancelling_blocks_prove_inseparability_and_nothing_less_does() -> None:
    assert certify(INSEPARABLE, dual=PROOF).proves_inseparability()
    assert certify(INSEPARABLE, dual=PROOF / 3).proves_inseparability()
    off = certify(INSEPARABLE, dual=PROOF + np.array([1e-9, 0, 0]))
    assert not off.proves_inseparability()
    # v = (1e-9, 0), and the terms of the first input sum to 2 |1| + |-1| + |1|.
    assert off.separation_bound == pytest.approx(1e-9 / 4, rel=1e-6)
    assert not certify(INSEPARABLE, dual=-PROOF).proves_inseparability()
    assert not certify(INSEPARABLE, dual=0 * PROOF).proves_inseparability()


def test_one_group_that_does_not_cancel_spoils_the_proof() -> None:
    """Two units with other gates: the sum over samples cancels in unit 0 alone."""
    Z = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    program = MaxMarginProgram(
        type(INSEPARABLE.design)(INSEPARABLE.design.X, Z, np.arange(2)), INSEPARABLE.y
    )
    assert not certify(program, dual=PROOF).proves_inseparability()


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
def test_a_proof_of_inseparability_does_not_depend_on_the_data_s_scale(scale: float) -> None:
    """Inputs whose cancellation is rounded, at every scale."""
    X = np.random.default_rng(0).normal(size=(6, 3)) * np.array([1.0, np.pi, 1 / 3])
    X[5] = X[:5].T @ np.array([0.1, 0.7, 1.3, 0.2, 0.9])
    program = linear_program((scale * X).tolist(), [1, 1, 1, 1, 1, -1])
    proof = np.array([0.1, 0.7, 1.3, 0.2, 0.9, 1.0])
    assert certify(program, dual=proof).proves_inseparability()
    assert not certify(program, dual=proof + 1e-9).proves_inseparability()


@pytest.mark.parametrize("inputs", [[[1, 1e-15], [1, -1e-15]], [[1, 0], [1, 1e-14]]])
def test_a_small_input_that_separates_is_not_taken_for_rounding(inputs: list[list[float]]) -> None:
    """The blocks of lam = (1, 1) are (0, 2e-15) and (0, -1e-14): nothing cancels in the second."""
    program = linear_program(inputs, [1, -1])
    certificate = certify(program, dual=np.ones(2))
    assert certificate.separation_bound == pytest.approx(1)
    assert not certificate.proves_inseparability()
    between = np.array([[0.5e-14, -1.0]]) if inputs[0][1] == 0 else np.array([[0.0, 1.0]])
    assert certify(program, between, np.ones(2)).proves_separability()


def test_a_separating_point_forbids_a_proof_of_inseparability() -> None:
    """1 and 1 + 2^-52 with opposite labels: a proof to one unit in the last place, and no more."""
    program = linear_program([[1, 1], [1, 1 + 2**-52]], [1, -1])
    separating = np.array([[1.5 + 2**-52, -1.5]])
    assert certify(program, dual=np.ones(2)).proves_inseparability()
    certificate = certify(program, separating, np.ones(2))
    assert certificate.proves_separability() and not certificate.proves_inseparability()


def test_no_margin_is_summed_exactly_where_the_sizes_of_its_terms_are_enough(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("summed exactly")

    monkeypatch.setattr(certificates, "enclose_scores", refuse)
    # By sizes of samples both margins may be negative; their one term is 1, and 3 / 2.
    program = linear_program([[1e17, 1.0], [2e17, 1.5]], [1, 1])
    certificate = certify(program, np.array([[0.0, 1.0]]))
    assert certificate.smallest_margin == 1
    assert 0 < certificate.margin_rounding < 1e-14


def test_a_margin_far_below_the_rounding_of_its_terms_is_summed_exactly() -> None:
    program = linear_program([[1, 1]], [1])
    for rest, separates in ((16.0, True), (0.0, False), (-16.0, False)):
        certificate = certify(program, np.array([[1e17, rest - 1e17]]))
        assert certificate.proves_separability() is separates
        assert certificate.smallest_margin == rest


def test_multipliers_near_the_smallest_float_bound_what_larger_ones_do() -> None:
    case = CONSTRUCTIONS["gln"]
    plain = certify(case.program, dual=case.dual)
    small = certify(case.program, dual=case.dual * 2.0**-1000)
    assert small == plain and plain.dual_objective < math.inf
    shrunk = with_inputs(case.program, case.program.design.X * 2.0**-100)
    assert certify(shrunk, dual=case.dual * 2.0**-1000).dual_objective == pytest.approx(
        plain.dual_objective * 2.0**100, rel=1e-9
    )


def test_lists_and_arrays_of_the_other_kind_are_points_as_well() -> None:
    case = CONSTRUCTIONS["unequal"]
    expected = certify(case.program, case.primal, case.dual)
    assert certify(case.program, case.primal.tolist(), case.dual.tolist()) == expected
    assert certify(case.program, torch.tensor(case.primal), torch.tensor(case.dual)) == expected
    assert certify(as_torch(case.program), case.primal, case.dual).to_dict() == pytest.approx(
        expected.to_dict(), rel=1e-12, abs=1e-12
    )


def conclusion(program: MaxMarginProgram, primal: object, dual: object, tol: float) -> Status:
    return conclude(program, primal, dual, tol=tol, iterations=0, seconds=0.0, solver="x").status


def test_the_status_follows_from_the_certificate() -> None:
    case = CONSTRUCTIONS["unequal"]
    rough = case.dual * np.where(np.arange(case.dual.size) == 1, 1.1, 1.0)
    gap = certify(case.program, case.primal, rough).gap
    assert conclusion(case.program, case.primal, case.dual, 1e-8) is Status.SOLVED
    assert conclusion(case.program, case.primal, rough, 2 * gap) is Status.SOLVED
    assert conclusion(case.program, case.primal, rough, gap / 2) is Status.INACCURATE
    assert conclusion(case.program, case.primal, None, 0.5) is Status.INACCURATE
    assert conclusion(case.program, None, case.dual, 0.5) is Status.UNDECIDED
    assert conclusion(case.program, -case.primal, case.dual, 0.5) is Status.UNDECIDED
    assert conclusion(case.program, None, None, 0.5) is Status.FAILED
    assert conclusion(case.program, np.nan * case.primal, case.dual, 0.5) is Status.UNDECIDED
    assert conclusion(case.program, case.primal, np.nan * case.dual, 0.5) is Status.INACCURATE
    assert conclusion(INSEPARABLE, None, PROOF, 0.5) is Status.NOT_SEPARABLE
    assert conclusion(INSEPARABLE, None, PROOF + 1e-6, 0.5) is Status.UNDECIDED


def test_conclude_scales_both_points_to_feasibility() -> None:
    case = CONSTRUCTIONS["unequal"]
    solution = conclude(
        case.program,
        7 * case.primal,
        case.dual / 5,
        tol=1e-8,
        iterations=3,
        seconds=0.5,
        solver="by hand",
    )
    np.testing.assert_allclose(solution.primal, case.primal, rtol=1e-12)
    np.testing.assert_allclose(solution.dual, case.dual, rtol=1e-12)
    proof = conclude(INSEPARABLE, None, PROOF, tol=1e-8, iterations=0, seconds=0.0, solver="x").dual
    np.testing.assert_allclose(proof, PROOF / 4, rtol=1e-15)


def test_conclude_clips_multipliers_that_rounding_left_negative() -> None:
    case = CONSTRUCTIONS["unequal"]
    below = np.where(case.dual == 0, -1e-18, case.dual)
    assert conclusion(case.program, case.primal, below, 1e-8) is Status.SOLVED


def test_a_status_is_not_lost_to_the_rounding_of_the_scale() -> None:
    """Pair ((1, e), 1), ((1, -e), -1) turned: margins 25 e of terms 24 that (-4, 3) / 25 rounds."""
    e, turn = 2.0**-30, np.array([[3.0, 4.0], [-4.0, 3.0]])
    program = linear_program(np.array([[1, e], [1, -e]]) @ turn, [1, -1])
    primal, dual = np.array([[-4.0, 3.0]]), np.ones(2)
    assert not certify(program, primal / (25 * e), dual).proves_optimality(1e-8)
    assert conclusion(program, primal, dual, 1e-8) is Status.SOLVED


def test_every_status_explains_itself_in_its_exception() -> None:
    case = CONSTRUCTIONS["unequal"]
    assert len({member.advice for member in Status}) == len(Status)
    points = [(case.primal, case.dual), (case.primal, None), (None, case.dual), (None, None)]
    for primal, dual in points:
        solution = conclude(
            case.program, primal, dual, tol=1e-8, iterations=4, seconds=0.0, solver="by hand"
        )
        if solution.status is Status.SOLVED:
            assert solution.require() is solution
            continue
        with pytest.raises(NotCertified) as caught:
            solution.require()
        message = str(caught.value)
        assert message.startswith(f"{solution.status.name}: {solution.advice}")
        assert "solver by hand" in message and "iterations 4" in message


def good() -> dict[str, np.ndarray]:
    return {"X": np.ones((3, 2)), "Z": np.ones((3, 2)), "group": np.arange(2), "y": np.ones(3)}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X", np.ones(3), r"`X` must have shape \(n, D\)"),
        ("X", np.ones((0, 2)), r"`X` must have shape \(n, D\) with n, D >= 1, got \(0, 2\)"),
        ("X", np.ones((3, 0)), r"`X` must have shape \(n, D\) with n, D >= 1, got \(3, 0\)"),
        ("X", np.array([[1, 2], [1, math.nan], [1, 2]]), r"`X` has entries that are NaN"),
        ("Z", np.ones((2, 2)), r"`Z` must have shape \(3, J\).*got \(2, 2\)"),
        ("Z", np.full((3, 2), math.inf), r"`Z` has entries that are NaN or infinite"),
        ("group", np.zeros(3, dtype=int), r"`group` must have shape \(2,\), got \(3,\)"),
        ("group", np.array([0, 2]), r"`group` must number the groups 0 .. G-1"),
        ("group", np.array([-1, 0]), r"`group` must number the groups 0 .. G-1"),
        ("y", np.ones(2), r"`y` must have shape \(3,\), got \(2,\): one label per row"),
        ("y", np.array([0.0, 1, 1]), r"`y` must hold labels -1 and \+1 only"),
        ("y", np.array([math.nan, 1, 1]), r"`y` must hold labels -1 and \+1 only"),
    ],
)
def test_a_program_refuses_arrays_that_are_not_one(
    name: str, value: np.ndarray, message: str
) -> None:
    arrays = good() | {name: value}
    design = type(INSEPARABLE.design)(arrays["X"], arrays["Z"], arrays["group"])
    with pytest.raises(ValueError, match=message):
        MaxMarginProgram(design, arrays["y"])


def test_a_construction_with_a_dead_unit_needs_its_dual_norm_below_one() -> None:
    """Erratum of seed 004, B.8: a unit with d = 0 and a dual norm above one is not optimal."""
    case = constructed(
        np.random.default_rng(5).normal(size=(30, 3)),
        [0, 1, 2],
        [1.0, 2.0, 0.0],
        n_support=10,
        n_inputs=6,
    )
    assert certify(case.program, case.primal, case.dual).proves_optimality(1e-10)
    louder = type(case.program.design)(
        case.program.design.X, case.program.design.Z * np.array([1, 1, 4.0]), np.arange(3)
    )
    program = MaxMarginProgram(louder, case.program.y)  # the dead unit's dual norm is now 2
    certificate = certify(program, case.primal, case.dual)
    assert certificate.smallest_margin == pytest.approx(1)  # still stationary, still feasible
    assert certificate.gap == pytest.approx(1, rel=1e-9)
