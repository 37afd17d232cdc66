"""A limit as a function: scores are sums over the columns that gates open, labels their signs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import implicit_bias as ib

# More rows than a block of the design has.
N, H, C, D = 2500, 3, 4, 5
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D))
Y = np.sign(X[:, 0])
CONTEXTS = RNG.integers(0, C, size=(N, H))
BINARY, REAL = RNG.integers(0, 2, size=(N, H)), RNG.normal(size=(N, H))
TABLE = np.array([[0, 0, 0], [0, 1, 2], [3, 3, 3]])
FEW = slice(0, 30)


def seen_in(zeta: np.ndarray) -> np.ndarray:
    """(n, D): the row of zeta whose contexts a sample is in, zeros without one."""
    matches = (CONTEXTS[:, None] == TABLE).all(axis=2)
    return np.where(matches.any(axis=1)[:, None], zeta[matches.argmax(axis=1)], 0.0)


# A limit whose coefficients are replaced, its gates, and the vector that each sample sees.
CASES = {
    "none": (lambda: ib.solve_linear_svm(X[FEW], Y[FEW]), (D,), None, lambda zeta: zeta),
    "contexts": (
        lambda: ib.solve_gln_svm(X[FEW], Y[FEW], CONTEXTS[FEW]), (H, C, D), CONTEXTS,
        lambda zeta: zeta[np.arange(H), CONTEXTS].sum(axis=1),
    ),
    "binary": (
        lambda: ib.solve_frelu_svm(X[FEW], Y[FEW], BINARY[FEW]), (H, D), BINARY == 1,
        lambda zeta: BINARY @ zeta,
    ),
    "real": (
        lambda: ib.solve_gated_ols(X[FEW], Y[FEW], REAL[FEW]), (H, D), REAL,
        lambda zeta: REAL @ zeta,
    ),
    "global contexts": (
        lambda: ib.solve_shallow_gln_svm(X[:3], Y[:3], TABLE), (3, D), CONTEXTS, seen_in,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_score_is_the_product_with_the_sum_of_what_the_gates_open(name) -> None:
    solved, shape, gates, beta = CASES[name]
    zeta = RNG.normal(size=shape)
    predictor = replace(solved(), zeta=zeta).predictor
    scores = predictor(X, gates)
    np.testing.assert_allclose(scores, np.sum(X * beta(zeta), axis=1), atol=1e-12)
    np.testing.assert_array_equal(predictor.decision_function(X, gates), scores)
    np.testing.assert_array_equal(predictor.predict(X, gates), np.where(scores > 0, 1, -1))
    few = predictor(X[:0], None if gates is None else gates[:0])
    assert few.shape == (0,)


def test_labels_are_of_the_kind_of_the_inputs() -> None:
    limit = ib.solve_linear_svm(torch.tensor(X[FEW]), torch.tensor(Y[FEW]))
    labels = limit.predictor.predict(torch.tensor(X[FEW]))
    assert isinstance(labels, torch.Tensor) and labels.dtype == torch.int64
    np.testing.assert_array_equal(labels, Y[FEW])


def test_a_limit_of_several_classes_predicts_the_class_of_largest_score() -> None:
    teacher = RNG.normal(size=(4, 3))
    (head,) = ib.heads.solve_exit_heads([np.eye(4)], teacher=teacher, share=0)
    assert head.predictor(np.eye(4)).shape == (4, 3)
    np.testing.assert_array_equal(head.predictor.predict(np.eye(4)), teacher.argmax(axis=1))
    student = ib.distillation.distillation_limit(np.eye(4), teacher.T)
    np.testing.assert_array_equal(student.predictor.predict(np.eye(4)), teacher.argmax(axis=1))
    with pytest.raises(ValueError, match=r"`X` must have shape \(n, 4\), got \(2, 5\)"):
        head.predictor(np.ones((2, 5)))


def test_inputs_that_are_not_finite_are_refused_whatever_the_gates() -> None:
    with pytest.raises(ValueError, match="`X` has entries that are NaN or infinite"):
        ib.solve_linear_svm(X[FEW], Y[FEW]).predictor(np.full((2, D), np.nan))
