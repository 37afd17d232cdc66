"""The group lasso over units with given features, against the programs that it contains."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_bias import solve_frelu_svm, solve_gln_svm, solve_linear_svm
from implicit_bias.limits import solve_l1_svm, solve_limit
from implicit_bias.programs import UnitFeatures

RNG = np.random.default_rng(3)
N, D, H, C = 30, 4, 5, 2
X = RNG.normal(size=(N, D))
Y = np.where(X[:, 0] - X[:, 1] > 0, 1.0, -1.0)
GATES = np.concatenate([np.ones((N, 1)), RNG.integers(0, 2, size=(N, H - 1))], axis=1)
CONTEXTS = RNG.integers(0, C, size=(N, H))
ONE_HOT = np.eye(C)[CONTEXTS]


@pytest.mark.parametrize(
    ("features", "n_units", "known"),
    [
        (np.einsum("nh,nd->nhd", GATES, X), H, lambda: solve_frelu_svm(X, Y, GATES)),
        (np.einsum("nhc,nd->nhcd", ONE_HOT, X), H, lambda: solve_gln_svm(X, Y, CONTEXTS)),
        (X[:, :, None], D, lambda: solve_l1_svm(X, Y)),
        (X, 1, lambda: solve_linear_svm(X, Y)),
        # Units that all see the inputs buy nothing: the hard margin again.
        (np.tile(X, (1, 3)), 3, lambda: solve_linear_svm(X, Y)),
    ],
    ids=["gates", "contexts", "one weight a unit", "one unit", "equal units"],
)
def test_the_optimum_is_that_of_the_special_program(features, n_units, known) -> None:
    limit = solve_limit(UnitFeatures(n_units), features.reshape(N, -1), Y).require()
    assert limit.objective == pytest.approx(known().require().objective, rel=1e-7)
    assert limit.gap <= 1e-8 and limit.unit_norms.shape == (n_units,)


def test_the_program_in_cvxpy_has_the_same_optimum() -> None:
    features = RNG.normal(size=(N, H * 3)) + 0.3 * Y[:, None]
    limit = solve_limit(UnitFeatures(H), features, Y).require()
    literal = UnitFeatures(H).literal(features, Y)
    assert float(literal.solve(solver="CLARABEL")) == pytest.approx(limit.objective, rel=1e-6)


def test_scores_of_new_features_are_linear_in_them() -> None:
    features = np.einsum("nh,nd->nhd", GATES, X).reshape(N, -1)
    limit = solve_limit(UnitFeatures(H), features, Y).require()
    np.testing.assert_allclose(limit.predictor(features), features @ limit.zeta.ravel())
    assert (Y * limit.predictor(features)).min() == pytest.approx(1, abs=1e-6)


def test_columns_that_are_not_as_many_for_each_unit_are_refused() -> None:
    with pytest.raises(ValueError, match="`X` must have as many columns for each of 3 units"):
        solve_limit(UnitFeatures(3), X, Y)
