"""The program of selected tokens: oracles, cvxpy, self-consistency, points from anywhere."""

import numpy as np
import pytest

import implicit_bias as ib
from experiments.token_programs import drawn, relative_difference
from implicit_bias.limits import solve_token_svm

# 60 sequences of 8 tokens: optima found by cvxpy and by a prototype.
S = ib.datasets.make_tokens(60, 8, 12, random_state=0)
OPTIMA = {"l2": 1.12089103, "nuclear": 2.885921, "spectral": 0.46755460, "linf": 0.13747460}


@pytest.mark.parametrize("norm", OPTIMA)
def test_optima_are_those_known(norm) -> None:
    limit = solve_token_svm(S.X, S.queries, S.scores, norm=norm)
    assert limit.objective == pytest.approx(OPTIMA[norm], rel=3e-7)
    assert limit.dual_objective <= limit.objective and limit.gap < 1e-6
    assert limit.is_local and limit.better_margin == np.inf
    assert limit.margins.min() == pytest.approx(1)
    np.testing.assert_array_equal(limit.tokens, S.scores.argmax(axis=1))
    # The certificate is arithmetic: norm of a feasible point, and multipliers over a dual norm.
    assert ib.limits.Norm.of(norm).value(limit.zeta) == pytest.approx(limit.objective)
    ahead = S.X[np.arange(60), limit.tokens][:, None] - S.X
    V = np.einsum("nt,ntd,ne->de", limit.dual, ahead, S.queries)
    below = limit.dual.sum() / ib.limits.Norm.of(norm).dual.value(V)
    assert below == pytest.approx(limit.dual_objective)


@pytest.mark.parametrize("number", range(6))
def test_optima_of_odd_shapes_are_those_of_cvxpy(number) -> None:
    assert relative_difference(*drawn(number)) < 2e-5


def test_tokens_of_lower_scores_alone_have_rows_and_better_ones_a_margin() -> None:
    X, z = np.eye(3)[None], np.array([[1.0]])
    limit = solve_token_svm(X, z, [[0.0, 1.0, 2.0]], [1]).require()
    np.testing.assert_allclose(limit.zeta[:, 0], [-0.5, 0.5, 0], atol=1e-9)
    assert limit.better_margin == pytest.approx(0.5) and not limit.is_local
    assert limit.support.tolist() == [[True, False, False]]
    # Further away the better token does no harm: its gain falls faster than the loss of the lower.
    far = solve_token_svm(np.array([[[1.0], [0.0], [-3.0]]]), z, [[1.0, 0.0, 2.0]], [0])
    assert far.better_margin == pytest.approx(4) and far.is_local


def test_equal_tokens_of_other_scores_are_proved_inseparable() -> None:
    limit = solve_token_svm(np.ones((2, 3, 2)), np.ones((2, 1)), [[1.0, 0.0, 0.0]] * 2)
    assert limit.status is ib.Status.NOT_SEPARABLE and not limit.is_local


def test_a_matrix_from_anywhere_is_bounded_beside_the_limit() -> None:
    data = S.X, S.queries, S.scores
    limit = solve_token_svm(*data)
    again = limit.certify(*data)
    assert again.status is ib.Status.SOLVED and again.objective == pytest.approx(
        limit.objective, rel=2e-15
    )
    W = 7 * (limit.zeta + 0.02 * np.random.default_rng(0).normal(size=(12, 12)))
    found = limit.certify(*data, W=W)
    logits = np.einsum("ntd,de,ne->nt", S.X, W, S.queries)
    others = np.where(np.arange(8) == S.best[:, None], -np.inf, logits)
    margin = (logits.max(axis=1) - others.max(axis=1)).min()
    assert found.objective == pytest.approx(np.linalg.norm(W) / margin)
    assert found.dual_objective == pytest.approx(limit.dual_objective)
    assert found.objective > limit.objective and found.status is ib.Status.INACCURATE
    assert limit.certify(*data, W=-W).objective == np.inf


def test_queries_are_last_tokens_by_default_and_labels_have_the_head_of_their_means() -> None:
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    data = ib.datasets.TokenData(S.X, S.X[:, -1], y)
    found, named = (solve_token_svm(S.X, z, y) for z in (None, S.X[:, -1]))
    np.testing.assert_array_equal(found.zeta, named.zeta)
    head = (y[:, None, None] * S.X).sum(axis=(0, 1))
    np.testing.assert_allclose(data.scores, y[:, None] * (S.X @ head) / np.linalg.norm(head))


@pytest.mark.parametrize(("given", "name"), [
    ({"X": S.X[:, :1], "scores": S.scores[:, :1]}, "X"),
    ({"X": S.X[0]}, "X"),
    ({"X": np.where(S.X > 3, np.nan, S.X)}, "X"),
    ({"queries": S.queries[:9]}, "queries"),
    ({"scores": np.ones((60, 8))}, "scores` must differ within a sequence"),
    ({"scores": np.minimum(S.scores, 0.0)}, "scores` must have one best token"),
    ({"scores": S.scores[:, :5]}, "scores"),
    ({"tokens": np.full(60, 8)}, "tokens"),
    ({"tokens": S.best[:5]}, "tokens"),
    ({"tokens": S.scores.argmin(axis=1)}, "tokens"),
])  # fmt: skip
def test_what_is_no_such_data_is_refused_by_the_name_of_the_argument(given, name) -> None:
    data = {"X": S.X, "queries": S.queries, "scores": S.scores}
    with pytest.raises(ValueError, match=f"^`{name}"):
        solve_token_svm(**(data | given))
