"""SVM-L2: kernel, gate columns, literal program, and what separates it from SVM-GLN."""

import math

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

from implicit_bias import (
    GLN,
    Sample,
    TrainingSettings,
    compare,
    solve_gln_l2_svm,
    solve_gln_svm,
    solve_linear_svm,
    train,
)
from implicit_bias.models.gln import gln_l2_root, predictor_family
from implicit_bias.programs import SVML2
from tests.oracles import all_contexts, l2_gate_kernel, l2_norm, membership
from tests.oracles import gln_problem as problem

SIZES = [(1, 1), (1, 4), (3, 1), (2, 2), (3, 2), (2, 5), (4, 3), (7, 2)]


def literal_solution(X, y, contexts, n_contexts):
    literal = SVML2(n_contexts).literal(X, y, contexts)
    literal.solve(solver="CLARABEL")
    n_units = contexts.shape[1]
    return literal.value, literal.variables()[0].value.reshape(
        n_units, n_contexts, X.shape[1], order="C"
    )


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_gate_kernel_is_the_pseudo_inverse_of_the_enumerated_norm(n_units, n_contexts) -> None:
    # ||beta||^2 = <zeta, Q^T Q zeta> with Q the C^H x H C membership matrix: the kernel of the
    # least zeta is z (Q^T Q)^+ z'.
    contexts, Q = all_contexts(n_units, n_contexts), membership(n_units, n_contexts)
    ours = l2_gate_kernel(contexts, contexts, n_contexts)
    oracle = Q @ np.linalg.pinv(Q.T @ Q, rcond=1e-10) @ Q.T
    np.testing.assert_allclose(ours / n_contexts**n_units, oracle, atol=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_gate_columns_are_a_root_of_the_kernel_without_superfluous_ones(
    n_units, n_contexts
) -> None:
    X, y, contexts = problem(n_units, n_contexts)
    Z = SVML2(n_contexts).program(X, y, contexts).design.Z
    assert Z.shape[1] == (n_contexts - 1) * n_units + 1
    np.testing.assert_allclose(Z @ Z.T, l2_gate_kernel(contexts, contexts, n_contexts), atol=1e-12)


@pytest.mark.parametrize(("n_units", "n_contexts"), SIZES)
def test_kernel_solution_is_the_solution_of_the_literal_program(n_units, n_contexts) -> None:
    X, y, contexts = problem(n_units, n_contexts, n=25)
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=n_contexts).require()
    optimum, zeta = literal_solution(X, y, contexts, n_contexts)
    assert n_contexts * limit.objective == pytest.approx(optimum, rel=1e-6)
    ours, theirs = predictor_family(limit.zeta), predictor_family(zeta)
    np.testing.assert_allclose(ours, theirs, atol=1e-4 * abs(ours).max())


@pytest.mark.parametrize(("n_units", "n_contexts"), [(2, 2), (3, 2), (4, 3)])
def test_objective_is_the_norm_of_all_enumerated_predictors(n_units, n_contexts) -> None:
    X, y, contexts = problem(n_units, n_contexts)
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=n_contexts).require()
    family = predictor_family(limit.zeta)
    assert limit.beta_norm == pytest.approx(np.linalg.norm(family), rel=1e-7)
    assert math.exp(limit.log_beta_norm) == pytest.approx(np.linalg.norm(family), rel=1e-7)
    rms = np.linalg.norm(family) / math.sqrt(n_contexts**n_units)
    assert limit.objective == pytest.approx(rms, rel=1e-7)
    margins = [y[n] * family[tuple(contexts[n])] @ X[n] for n in range(len(y))]
    assert min(margins) == pytest.approx(1, rel=1e-7)
    np.testing.assert_allclose(limit.margins, margins, rtol=1e-6)
    np.testing.assert_allclose(y * limit.predictor(X, contexts), margins, rtol=1e-9, atol=1e-9)


def test_solution_is_the_hard_margin_svm_of_the_closed_form_kernel() -> None:
    X, y, contexts = problem(3, 4, n=30)
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=4).require()
    # Mirrored samples make the intercept of scikit-learn's machine vanish by symmetry.
    signs = np.concatenate([np.ones(30), -np.ones(30)])
    half = X @ X.T * (4 * (contexts[:, None] == contexts[None]).sum(axis=2) - 3 + 1)
    gram = np.kron([[1, -1], [-1, 1]], half)
    machine = SVC(C=1e9, kernel="precomputed", tol=1e-10).fit(gram, signs * np.tile(y, 2))
    assert abs(machine.intercept_[0]) < 1e-6
    oracle = machine.decision_function(gram)[:30]
    scores = limit.predictor(X, contexts)
    np.testing.assert_allclose(scores, oracle, rtol=1e-4, atol=1e-4)


def test_erratum_the_printed_matrix_has_another_solution() -> None:
    import cvxpy as cp

    X, y, contexts = problem(3, 4, n=30)
    one_hot = np.eye(4)[contexts].reshape(30, 12, order="C")
    B = np.kron(np.eye(3), np.ones((4, 4)))
    printed = 4 * np.eye(12) - B + np.ones((12, 12)) / 12
    found = {}
    for name, A in (("printed", printed), ("right", gln_l2_root(3, 4))):
        zeta = cp.Variable((12, X.shape[1]))
        margins = cp.multiply(y, cp.sum(cp.multiply(one_hot, X @ zeta.T), axis=1))
        cp.Problem(cp.Minimize(cp.norm(A @ zeta, "fro")), [margins >= 1]).solve(solver="CLARABEL")
        found[name] = float(np.linalg.norm(predictor_family(zeta.value.reshape(3, 4, -1))))
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=4).require()
    assert found["right"] == pytest.approx(limit.beta_norm, rel=1e-5)
    assert found["printed"] > 1.02 * limit.beta_norm


def test_contexts_of_wrong_groups_give_another_optimum() -> None:
    # The published code's fill order penalises rows k mod H together; units here differ in size.
    X, y, contexts = problem(3, 2, n=30)
    optimum, _ = literal_solution(X, y, contexts, 2)
    import cvxpy as cp

    zeta = cp.Variable((6, X.shape[1]))
    one_hot = np.eye(2)[contexts].reshape(30, 6, order="C")
    margins = cp.multiply(y, cp.sum(cp.multiply(one_hot, X @ zeta.T), axis=1))
    column_wise = np.arange(6).reshape(2, 3, order="C").T.ravel()
    norm = cp.norm(gln_l2_root(3, 2) @ zeta[column_wise, :], "fro")
    wrong = cp.Problem(cp.Minimize(norm), [margins >= 1])
    wrong.solve(solver="CLARABEL")
    assert abs(wrong.value / optimum - 1) > 0.01


def test_one_sample_has_the_closed_form_of_its_kernel() -> None:
    # f(x) = k / k with k = <x, x> (C H - H + 1); the norm is 1 / sqrt(k).
    X, contexts = np.array([[3.0, 4.0]]), np.array([[0, 2, 1, 1]])
    limit = solve_gln_l2_svm(X, np.array([-1.0]), contexts, n_contexts=3).require()
    assert limit.objective == pytest.approx(1 / math.sqrt(25 * (3 * 4 - 4 + 1)), rel=1e-8)
    # Kernel C (C - 1) / C^H and so on down by disagreeing units, over that of the sample.
    for contexts_other, agree in (([[0, 2, 1, 1]], 4), ([[0, 2, 1, 0]], 3), ([[1, 0, 0, 0]], 0)):
        expected = -(3 * agree - 4 + 1) / (3 * 4 - 4 + 1)
        score = limit.predictor(X, np.array(contexts_other))
        np.testing.assert_allclose(score, expected, rtol=1e-7)


def test_one_context_is_the_linear_svm() -> None:
    X, y, _ = problem(1, 1)
    contexts = np.zeros((len(y), 5), dtype=int)
    limit = solve_gln_l2_svm(X, y, contexts, n_contexts=1).require()
    linear = solve_linear_svm(X, y).require()
    assert limit.objective == pytest.approx(linear.objective, rel=1e-7)
    np.testing.assert_allclose(limit.zeta.sum(axis=0)[0], linear.zeta, rtol=1e-4)


def test_contexts_that_no_sample_is_in_count() -> None:
    X, y, contexts = problem(2, 2)
    two = solve_gln_l2_svm(X, y, contexts).require()
    four = solve_gln_l2_svm(X, y, contexts, n_contexts=4).require()
    assert two.zeta.shape == (2, 2, 6)
    assert four.zeta.shape == (2, 4, 6)
    optimum, _ = literal_solution(X, y, contexts, 4)
    assert 4 * four.objective == pytest.approx(optimum, rel=1e-6)
    assert abs(four.beta_norm / two.beta_norm - 1) > 0.01


def test_many_units_do_not_overflow() -> None:
    X, y, contexts = problem(3, 2)
    wide = np.tile(contexts, (1, 700))
    limit = solve_gln_l2_svm(X, y, wide, n_contexts=2).require()
    assert limit.zeta.shape == (2100, 2, 6)
    assert np.isfinite(limit.zeta).all()
    assert limit.beta_norm == math.inf
    assert limit.log_beta_norm == pytest.approx(1050 * math.log(2) + math.log(limit.objective))
    assert l2_norm(limit.zeta) == math.inf
    np.testing.assert_allclose(y * limit.predictor(X, wide), limit.margins, rtol=1e-8)


def test_malformed_contexts_are_refused() -> None:
    X, y, contexts = problem(3, 2)
    with pytest.raises(TypeError, match="must hold integers"):
        solve_gln_l2_svm(X, y, contexts.astype(float))
    with pytest.raises(ValueError, match="`n_contexts` is 1"):
        solve_gln_l2_svm(X, y, contexts, n_contexts=1)


def test_trained_gln_goes_to_svm_gln_and_not_to_the_control() -> None:
    X, y, contexts = problem(2, 2, n=8, D=4, seed=2)
    gln = solve_gln_svm(X, y, contexts, n_contexts=2).require()
    control = solve_gln_l2_svm(X, y, contexts, n_contexts=2).require()
    network = GLN(4, 2, 2, init="balanced", init_scale=0.3, random_state=1)
    schedule = ((500, 0.05), (1000, 0.01), (2000, 0.003))
    settings = TrainingSettings(batch_size=None, trainer="normalised", schedule=schedule)
    train(network, X, y, contexts, settings=settings)
    rng = np.random.default_rng(9)
    held_out = Sample(rng.normal(size=(500, 4)), np.ones(500), rng.integers(0, 2, size=(500, 2)))
    sample = Sample(X, y, contexts)
    to_gln = compare(gln, network, sample, held_out)
    to_control = compare(control, network, sample, held_out)
    assert to_gln.margin_ratio > 0.99
    assert to_gln.score_cosine > 0.995
    assert to_control.score_cosine < to_gln.score_cosine - 0.01
    # In its own norm, the plain one, the network falls short of the control.
    smallest = float((y * network(torch.tensor(X), torch.tensor(contexts)).detach().numpy()).min())
    plain = smallest / l2_norm(network.zeta().detach()) * control.beta_norm
    assert plain < 0.99
