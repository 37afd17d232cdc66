"""Shallow GLN: one SVM per global context, and the network whose limit they are."""

import math

import numpy as np
import pytest
import torch

from implicit_bias import (
    Sample,
    ShallowGLN,
    TrainingSettings,
    compare,
    solve_linear_svm,
    solve_shallow_gln_svm,
    train,
)
from implicit_bias.programs import ContextSVMs
from solvers import Status

D = 4
# Rows that differ in one unit only, in an order that is not lexicographic; unequal numbers.
TABLE = np.array([[1, 0, 3], [0, 2, 0], [1, 0, 0], [0, 0, 0]])
SORTED = np.array([[0, 0, 0], [0, 2, 0], [1, 0, 0], [1, 0, 3]])


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of a linear teacher of its own in every context, of unequal sizes and scales."""
    rng = np.random.default_rng(seed)
    which = np.repeat(np.arange(4), [3, 14, 8, 5])
    rng.shuffle(which)
    X = rng.normal(size=(30, D)) * np.array([1.0, 3.0, 0.3, 1.0])[which][:, None]
    y = np.where(np.sum(rng.normal(size=(4, D))[which] * X, axis=1) > 0, 1.0, -1.0)
    return X, y, TABLE[which]


def in_context(contexts: np.ndarray, row: np.ndarray) -> np.ndarray:
    return np.flatnonzero((contexts == row).all(axis=1))


def test_each_predictor_is_the_svm_of_its_own_context() -> None:
    X, y, contexts = problem()
    limit = solve_shallow_gln_svm(X, y, contexts, tol=1e-10).require()
    np.testing.assert_array_equal(limit.global_contexts, SORTED)
    assert limit.zeta.shape == (4, D)
    squares = 0.0
    for g, row in enumerate(SORTED):
        rows = in_context(contexts, row)
        alone = solve_linear_svm(X[rows], y[rows], tol=1e-10).require()
        np.testing.assert_allclose(limit.zeta[g], alone.zeta, rtol=1e-4, atol=1e-4)
        assert limit.context_objectives[g] == pytest.approx(alone.objective, rel=1e-6)
        assert limit.context_dual_objectives[g] <= alone.objective
        assert alone.dual_objective <= limit.context_objectives[g] * (1 + 1e-12)
        assert limit.context_dual_objectives[g] == pytest.approx(alone.objective, rel=1e-6)
        squares += alone.objective**2
    assert limit.objective == pytest.approx(math.sqrt(squares), rel=1e-9)


def test_one_sample_a_context_has_its_closed_form() -> None:
    X, y = np.array([[3.0, 4.0], [0.0, -0.5], [1.0, 0.0]]), np.array([1.0, -1.0, -1.0])
    contexts = np.array([[5, 0], [0, 5], [5, 5]])
    limit = solve_shallow_gln_svm(X, y, contexts).require()
    # y x / ||x||^2, in lexicographic order of the contexts.
    np.testing.assert_allclose(limit.zeta, [[0, 2], [0.12, 0.16], [-1, 0]], atol=1e-7)
    assert limit.objective == pytest.approx(math.sqrt(0.04 + 4 + 1), rel=1e-8)
    np.testing.assert_allclose(limit.context_objectives, [2, 0.2, 1], rtol=1e-6)


def test_kernel_is_that_of_the_inputs_within_a_global_context() -> None:
    X, y, contexts = problem()
    program = ContextSVMs().program(X, y, contexts)
    same = (contexts[:, None, :] == contexts[None, :, :]).all(axis=2)
    np.testing.assert_array_equal(program.design.Z @ program.design.Z.T, same)
    assert program.n_groups == 1


def test_a_context_unseen_in_training_scores_zero_and_is_reported() -> None:
    X, y, contexts = problem()
    limit = solve_shallow_gln_svm(X, y, contexts)
    wanted = np.array([[1, 0, 0], [1, 0, 1], [9, 9, 9], [0, 2, 0], [-1, 0, 0]])
    inputs = np.arange(20.0).reshape(5, D) + 1
    scores = limit.predictor(inputs, wanted)
    np.testing.assert_array_equal(limit.covers(wanted), [True, False, False, True, False])
    np.testing.assert_array_equal(scores[[1, 2, 4]], 0)
    assert scores[0] == pytest.approx(float(inputs[0] @ limit.zeta[2]))
    assert scores[3] == pytest.approx(float(inputs[3] @ limit.zeta[1]))
    network = ShallowGLN.from_zeta(limit.zeta, limit.global_contexts)
    ours = network(torch.tensor(inputs), torch.tensor(wanted)).detach()
    np.testing.assert_allclose(ours, scores, rtol=1e-12)


def test_an_inseparable_context_makes_the_whole_inseparable_and_is_named() -> None:
    X, y, contexts = problem()
    rows = in_context(contexts, SORTED[2])
    X, contexts = np.vstack([X, X[rows[:1]]]), np.vstack([contexts, contexts[rows[:1]]])
    y = np.append(y, -y[rows[0]])
    limit = solve_shallow_gln_svm(X, y, contexts)
    assert limit.status is Status.NOT_SEPARABLE
    outside = np.setdiff1d(np.arange(31), in_context(contexts, SORTED[2]))
    assert limit.dual[outside].sum() < 1e-6
    assert limit.context_objectives[2] == math.inf


def test_contexts_need_not_be_numbered_densely_and_many_units_do_not_overflow() -> None:
    X, y, contexts = problem()
    wide = np.tile(contexts, (1, 400))
    limit = solve_shallow_gln_svm(X, y, wide).require()
    assert limit.global_contexts.shape == (4, 1200)
    narrow = solve_shallow_gln_svm(X, y, contexts).require()
    np.testing.assert_allclose(limit.zeta, narrow.zeta, rtol=1e-9)


def test_relabelling_contexts_only_permutes_the_predictors() -> None:
    X, y, contexts = problem()
    limit = solve_shallow_gln_svm(X, y, contexts).require()
    relabelled = 3 - contexts
    other = solve_shallow_gln_svm(X, y, relabelled).require()
    np.testing.assert_allclose(other.zeta, limit.zeta[::-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(other.global_contexts, 3 - SORTED[::-1])


def test_report_holds_the_optimum_of_every_context() -> None:
    X, y, contexts = problem()
    report = solve_shallow_gln_svm(X, y, contexts).to_dict()
    assert report["global_contexts"] == SORTED.tolist()
    total = math.sqrt(sum(value**2 for value in report["context_objectives"]))
    assert total == pytest.approx(report["objective"], rel=1e-7)


def test_state_dict_carries_the_contexts_that_give_the_weights_their_meaning() -> None:
    X, _, contexts = problem()
    network = ShallowGLN(D, contexts, random_state=1)
    other = ShallowGLN(D, contexts[:, ::-1].copy(), random_state=2)
    other.load_state_dict(network.state_dict())
    np.testing.assert_array_equal(
        other(torch.tensor(X), torch.tensor(contexts)).detach(),
        network(torch.tensor(X), torch.tensor(contexts)).detach(),
    )


def test_trained_network_comes_to_the_limit_and_meets_the_kkt_conditions() -> None:
    X = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0]])
    y = np.array([1.0, -1.0, 1.0, 1.0])
    contexts = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    # (1/2, -1) in the first context, (0, -1) and (1/2, 1/2) in the others.
    limit = solve_shallow_gln_svm(X, y, contexts).require()
    np.testing.assert_allclose(limit.zeta, [[0.5, 0.5], [0, -1], [0.5, -1]], atol=1e-6)
    network = ShallowGLN(2, contexts, init_scale=0.5, random_state=3)
    settings = TrainingSettings(batch_size=None, trainer="normalised", schedule=((3000, 0.5),))
    train(network, X, y, contexts, settings=settings)
    rng = np.random.default_rng(4)
    held_out = Sample(rng.normal(size=(200, 2)), np.ones(200), contexts[rng.integers(0, 4, 200)])
    comparison = compare(limit, network, Sample(X, y, contexts), held_out)
    assert 0.995 < comparison.margin_ratio <= 1 + 1e-9
    assert comparison.zeta_cosine > 0.999
    assert comparison.kkt_cosine > 0.999


def test_malformed_input_is_refused() -> None:
    X, y, contexts = problem()
    with pytest.raises(TypeError, match="must hold integers"):
        solve_shallow_gln_svm(X, y, contexts.astype(float))
    with pytest.raises(ValueError, match="one row per row of X"):
        solve_shallow_gln_svm(X, y, contexts[1:])
    predictor = solve_shallow_gln_svm(X, y, contexts).require().predictor
    with pytest.raises(ValueError, match="one column per unit"):
        predictor(X, contexts[:, 1:])
    with pytest.raises(ValueError, match=r"must have shape \(30, 3\)"):
        predictor(X, contexts[1:])
    with pytest.raises(ValueError, match="4 inputs, the constant column included"):
        predictor(X[:, 1:], contexts)
