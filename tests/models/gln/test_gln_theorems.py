"""Lemmas and norms of the family of predictors of a gated linear network, by enumeration."""

import math

import cvxpy as cp
import numpy as np
import pytest
import torch

from implicit_bias import solve_gln_l2_svm, solve_gln_svm
from implicit_bias.models.gln import MainEffects, gln_l2_root, predictor_family
from implicit_bias.programs import SVMGLN, GLNNorm, gln_norm
from tests.oracles import gln_problem, l2_norm, membership

D = 3
# (1, C): no other unit; (H, 1): no contexts; unequal otherwise, so that swapped axes show.
SIZES = [(1, 1), (1, 4), (3, 1), (2, 2), (3, 2), (2, 5), (4, 3), (3, 4), (6, 2)]


def unequal_zeta(n_units: int, n_contexts: int, seed: int = 0) -> np.ndarray:
    """Coefficients whose blocks all differ in size, with large means of units."""
    rng = np.random.default_rng(seed)
    zeta = rng.normal(size=(n_units, n_contexts, D)) * np.logspace(0, 1, n_units)[:, None, None]
    return zeta * np.logspace(0, 1, n_contexts)[:, None] + rng.normal(size=(n_units, 1, D))


def enumerated(zeta: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    n_units, n_contexts, _ = zeta.shape
    return {
        gamma: sum(zeta[h, gamma[h]] for h in range(n_units))
        for gamma in np.ndindex(*(n_contexts,) * n_units)
    }


def printed_root(n_units: int, n_contexts: int) -> np.ndarray:
    """A as seed 004 (23), (25) prints it: C I - B + J / (H C)."""
    size = n_units * n_contexts
    B = np.kron(np.eye(n_units), np.ones((n_contexts, n_contexts)))
    return n_contexts * np.eye(size) - B + np.ones((size, size)) / size


def quadratic_form(A: np.ndarray, zeta: np.ndarray) -> float:
    return float(np.sum((A @ zeta.reshape(-1, D, order="C")) ** 2))


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_family_is_the_sum_of_the_gated_coefficients(n_units, n_contexts) -> None:
    zeta = unequal_zeta(n_units, n_contexts)
    family = predictor_family(zeta)
    assert family.shape == (n_contexts,) * n_units + (D,)
    for gamma, beta in enumerated(zeta).items():
        np.testing.assert_allclose(family[gamma], beta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_lemma_b7_exactly_c_minus_1_h_plus_1_predictors_are_free(n_units, n_contexts) -> None:
    rank = np.linalg.matrix_rank(membership(n_units, n_contexts))
    assert rank == (n_contexts - 1) * n_units + 1
    # Any choice at the base context and its neighbours in one unit fixes all the others.
    chosen = np.random.default_rng(1).normal(size=(n_units, n_contexts, D))
    chosen[:, 0] = base = chosen[0, 0]
    zeta = chosen - base
    zeta[0] += base
    family = predictor_family(zeta)
    for h in range(n_units):
        for c in range(n_contexts):
            gamma = tuple(c if k == h else 0 for k in range(n_units))
            np.testing.assert_allclose(family[gamma], chosen[h, c], atol=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), [(2, 2), (3, 2), (2, 3), (3, 3)])
def test_lemma_b6_differences_do_not_depend_on_shared_contexts(n_units, n_contexts) -> None:
    beta = predictor_family(unequal_zeta(n_units, n_contexts))
    for gamma in np.ndindex(*beta.shape[:-1]):
        here = beta[gamma]
        for h in range(n_units):
            for c in range(n_contexts):
                moved = tuple(c if k == h else gamma[k] for k in range(n_units))
                base = tuple(gamma[h] if k == h else 0 for k in range(n_units))
                base_moved = tuple(c if k == h else 0 for k in range(n_units))
                np.testing.assert_allclose(
                    beta[moved] - here, beta[base_moved] - beta[base], atol=1e-12
                )


def test_lemma_b6_predictors_that_break_it_belong_to_no_network() -> None:
    beta = predictor_family(unequal_zeta(2, 2))
    np.testing.assert_allclose(beta[1, 0] - beta[1, 1], beta[0, 0] - beta[0, 1], atol=1e-12)
    beta[1, 1, 0] += 0.1
    with pytest.raises(ValueError, match="no two-layer gated linear network"):
        MainEffects.of_predictors(beta)
    with pytest.raises(ValueError, match="no two-layer gated linear network"):
        gln_norm(beta)
    problem = GLNNorm().literal(beta)
    problem.solve(solver="CLARABEL")
    assert problem.status in {cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE}


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_means_of_units_that_cancel_change_no_predictor_and_no_norm(n_units, n_contexts) -> None:
    zeta = unequal_zeta(n_units, n_contexts)
    shift = np.random.default_rng(2).normal(size=(n_units, D))
    shift -= shift.mean(axis=0)
    shifted = zeta + shift[:, None, :]
    np.testing.assert_allclose(predictor_family(shifted), predictor_family(zeta), atol=1e-10)
    here, there = MainEffects.of_coefficients(zeta), MainEffects.of_coefficients(shifted)
    assert there.gln_norm() == pytest.approx(here.gln_norm(), rel=1e-12)
    assert there.rms_norm() == pytest.approx(here.rms_norm(), rel=1e-12)
    # The nullity of the map from zeta to its predictors is that of these shifts, H - 1.
    nullity = n_units * n_contexts - np.linalg.matrix_rank(membership(n_units, n_contexts))
    assert nullity == n_units - 1


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_main_effects_of_the_coefficients_are_those_of_the_predictors(n_units, n_contexts) -> None:
    zeta = unequal_zeta(n_units, n_contexts)
    ours = MainEffects.of_coefficients(zeta)
    family = MainEffects.of_predictors(predictor_family(zeta))
    np.testing.assert_allclose(ours.mean, family.mean, atol=1e-10)
    np.testing.assert_allclose(ours.effects, family.effects, atol=1e-10)
    np.testing.assert_allclose(ours.mean, np.mean(list(enumerated(zeta).values()), axis=0))
    np.testing.assert_allclose(ours.effects.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_plain_norm_is_the_sum_over_all_contexts(n_units, n_contexts) -> None:
    zeta = unequal_zeta(n_units, n_contexts)
    squared = sum(float(beta @ beta) for beta in enumerated(zeta).values())
    assert l2_norm(zeta) ** 2 == pytest.approx(squared, rel=1e-12)
    rms = MainEffects.of_coefficients(zeta).rms_norm()
    assert n_contexts**n_units * rms**2 == pytest.approx(squared, rel=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_matrix_a_is_a_root_of_m_and_gives_the_plain_norm(n_units, n_contexts) -> None:
    A, Q = gln_l2_root(n_units, n_contexts), membership(n_units, n_contexts)
    scale = float(n_contexts) ** (n_units - 2)
    # The plain norm's matrix by enumeration, not by the formula for M.
    np.testing.assert_allclose(scale * A @ A, Q.T @ Q, atol=1e-10 * scale * n_contexts**2)
    zeta = unequal_zeta(n_units, n_contexts)
    squared = sum(float(beta @ beta) for beta in enumerated(zeta).values())
    assert scale * quadratic_form(A, zeta) == pytest.approx(squared, rel=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), [(2, 2), (3, 2), (3, 4), (4, 3), (2, 5)])
def test_erratum_printed_matrix_of_23_and_25_gives_no_multiple_of_the_norm(
    n_units, n_contexts
) -> None:
    printed = printed_root(n_units, n_contexts)

    def ratio(zeta: np.ndarray) -> float:
        return quadratic_form(printed, zeta) / l2_norm(zeta) ** 2

    zeta = unequal_zeta(n_units, n_contexts)
    squared = sum(float(beta @ beta) for beta in enumerated(zeta).values())
    assert abs(quadratic_form(printed, zeta) / squared - 1) > 0.05
    # A common part is under-penalised by H C^2 beside differences within a unit: no factor in
    # front of the formula, C^(H - 2) or another, can repair it.
    common = np.ones((n_units, n_contexts, D))
    effect = np.zeros_like(common)
    effect[0, 0], effect[0, 1] = 1.0, -1.0
    assert ratio(effect) / ratio(common) == pytest.approx(n_units * n_contexts**2, rel=1e-10)


@pytest.mark.parametrize(("n_units", "n_contexts"), [(1, 4), (3, 1), (2, 2), (3, 2), (2, 4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_gln_norm_is_the_optimum_of_its_program(n_units, n_contexts, seed) -> None:
    beta = predictor_family(unequal_zeta(n_units, n_contexts, seed))
    problem = GLNNorm().literal(beta)
    problem.solve(solver="CLARABEL")
    assert gln_norm(beta) == pytest.approx(problem.value, rel=1e-6)
    least = MainEffects.of_predictors(beta).coefficients()
    # Units of unequal size: a norm over the wrong rows would differ.
    np.testing.assert_allclose(
        least,
        problem.variables()[0].value.reshape(n_units, n_contexts, D, order="C"),
        atol=1e-3 * abs(beta).max(),
    )


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_least_coefficients_have_the_predictors_and_attain_the_gln_norm(
    n_units, n_contexts
) -> None:
    zeta = unequal_zeta(n_units, n_contexts)
    family = MainEffects.of_coefficients(zeta)
    least = family.coefficients()
    np.testing.assert_allclose(predictor_family(least), predictor_family(zeta), atol=1e-10)
    attained = sum(np.linalg.norm(least[h]) for h in range(n_units))
    assert attained == pytest.approx(family.gln_norm(), rel=1e-12)
    assert attained <= sum(np.linalg.norm(zeta[h]) for h in range(n_units)) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_proposition_b9_closed_form_for_two_units_of_two_contexts(seed) -> None:
    beta = predictor_family(unequal_zeta(2, 2, seed))
    (b11, b12), (b21, b22) = beta
    a, b = np.linalg.norm(b11 - b12), np.linalg.norm(b11 - b21)
    right = 0.5 * ((a + b) ** 2 + np.linalg.norm(b12 + b21) ** 2)
    also = 0.5 * (sum(float(v @ v) for v in (b11, b12, b21, b22)) + 2 * a * b)
    problem = GLNNorm().literal(beta)
    problem.solve(solver="CLARABEL")
    assert problem.value**2 == pytest.approx(right, rel=1e-6)
    assert gln_norm(beta) ** 2 == pytest.approx(right, rel=1e-12)
    assert also == pytest.approx(right, rel=1e-12)
    # Erratum (21), (60): the printed expression, without the half, is twice the square of (20).
    printed = (a + b) ** 2 + np.linalg.norm(b12 + b21) ** 2
    assert printed == pytest.approx(2 * problem.value**2, rel=1e-6)
    # Its minimiser is printed rightly.
    share = b / (a + b)
    zeta_11 = 0.5 * (b11 + share * b12 - (1 - share) * b21)
    np.testing.assert_allclose(
        MainEffects.of_predictors(beta).coefficients()[0, 0], zeta_11, atol=1e-12
    )


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_gln_norm_lies_between_root_c_and_root_h_c_times_the_rms_norm(n_units, n_contexts) -> None:
    for seed in range(5):
        family = MainEffects.of_coefficients(unequal_zeta(n_units, n_contexts, seed))
        low = math.sqrt(n_contexts) * family.rms_norm()
        assert low * (1 - 1e-12) <= family.gln_norm() <= low * math.sqrt(n_units) * (1 + 1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), [(2, 2), (4, 3)])
def test_norms_agree_where_a_single_unit_has_an_effect(n_units, n_contexts) -> None:
    zeta = np.zeros((n_units, n_contexts, D))
    zeta[1] = unequal_zeta(n_units, n_contexts)[1]
    family = MainEffects.of_coefficients(zeta)
    assert family.gln_norm() == pytest.approx(math.sqrt(n_contexts) * family.rms_norm(), rel=1e-12)
    assert family.gln_norm() == pytest.approx(np.linalg.norm(zeta[1]), rel=1e-12)


def test_without_effects_the_mean_is_shared_and_costs_root_c() -> None:
    zeta = np.ones((3, 4, D)) * np.array([3.0, -1.0, 0.5])[:, None, None]
    family = MainEffects.of_coefficients(zeta)
    assert family.gln_norm() == pytest.approx(2.5 * math.sqrt(4 * D))
    np.testing.assert_allclose(family.coefficients(), 2.5 / 3)


def test_norms_need_no_enumeration_and_do_not_overflow() -> None:
    n_units, n_contexts = 4000, 2
    zeta = np.zeros((n_units, n_contexts, 1))
    zeta[0] = 1.0  # every predictor is 1
    family = MainEffects.of_coefficients(zeta)
    assert family.rms_norm() == pytest.approx(1.0)
    assert family.gln_norm() == pytest.approx(math.sqrt(2))
    assert l2_norm(zeta) == math.inf
    assert l2_norm(0 * zeta) == 0.0
    with pytest.raises(ValueError, match="too many to enumerate"):
        predictor_family(zeta)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (2, 2, 0)])
def test_a_family_of_the_wrong_shape_is_refused(shape) -> None:
    with pytest.raises(ValueError, match="one axis of length C"):
        gln_norm(np.zeros(shape))


def test_a_family_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        gln_norm(np.full((2, 2, 1), np.nan))


def test_main_effects_of_torch_coefficients_are_tensors_and_agree() -> None:
    zeta = unequal_zeta(3, 4)
    ours, theirs = (MainEffects.of_coefficients(a) for a in (zeta, torch.tensor(zeta)))
    assert isinstance(theirs.coefficients(), torch.Tensor)
    np.testing.assert_allclose(theirs.coefficients(), ours.coefficients(), rtol=1e-12)
    assert theirs.gln_norm() == pytest.approx(ours.gln_norm(), rel=1e-12)
    assert theirs.rms_norm() == pytest.approx(ours.rms_norm(), rel=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), [(1, 3), (2, 2), (3, 4)])
def test_optimum_of_svm_gln_lies_between_both_norms_of_svm_l2(n_units, n_contexts) -> None:
    # sqrt(C) rms <= GLN norm for every family, so minimising either bounds the other's optimum.
    X, y, contexts = gln_problem(n_units, n_contexts, n=40, seed=3)
    gln = solve_gln_svm(X, y, contexts, n_contexts=n_contexts).require()
    control = solve_gln_l2_svm(X, y, contexts, n_contexts=n_contexts).require()
    low = math.sqrt(n_contexts) * control.dual_objective
    assert low <= gln.objective
    assert gln.dual_objective <= control.gln_norm
    assert control.gln_norm == pytest.approx(
        np.linalg.norm(control.zeta, axis=(1, 2)).sum(), rel=1e-10
    )
    if n_units == 1:
        assert low == pytest.approx(gln.objective, rel=1e-7)
        np.testing.assert_allclose(control.zeta, gln.zeta, atol=1e-5 * abs(gln.zeta).max())
    else:
        assert gln.objective > 1.005 * low
        assert control.gln_norm > 1.005 * gln.objective


def test_certified_svm_gln_solution_has_the_least_coefficients_of_its_predictors() -> None:
    # At the optimum no shift of means between units can make sum_h ||zeta[h]|| smaller.
    X, y, contexts = gln_problem(3, 2, n=40, seed=5)
    limit = solve_gln_svm(X, y, contexts, n_contexts=2, tol=1e-10).require()
    least = MainEffects.of_coefficients(limit.zeta)
    assert least.gln_norm() == pytest.approx(limit.objective, rel=1e-9)
    np.testing.assert_allclose(least.coefficients(), limit.zeta, atol=1e-4 * abs(limit.zeta).max())


def test_groups_of_svm_gln_are_the_contexts_of_a_unit_and_not_every_hth_row() -> None:
    # The published code filled (H, C) column by column and so penalised rows k mod H together.
    X, y, contexts = gln_problem(3, 2, n=30, seed=7)
    program = SVMGLN(2).program(X, y, contexts)
    zeta = cp.Variable((6, 6))
    margins = cp.multiply(y, cp.sum(cp.multiply(program.design.Z, X @ zeta.T), axis=1))

    def optimum(groups: list[list[int]]) -> float:
        norm = cp.sum([cp.norm(zeta[rows, :], "fro") for rows in groups])
        problem = cp.Problem(cp.Minimize(norm), [margins >= 1])
        problem.solve(solver="CLARABEL")
        return float(problem.value)

    limit = solve_gln_svm(X, y, contexts, n_contexts=2).require()
    right, published = optimum([[0, 1], [2, 3], [4, 5]]), optimum([[0, 3], [1, 4], [2, 5]])
    assert limit.objective == pytest.approx(right, rel=1e-6)
    assert abs(published / right - 1) > 0.005
