"""Next tokens: the direction with its equalities, and the finite part on the log-odds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import implicit_bias as ib
from experiments.next_token import compared, drawn
from implicit_bias.datasets import text_contexts, token_counts
from implicit_bias.limits import NextTokenLimit, solve_multiclass_svm, solve_next_token
from implicit_bias.programs import InSupportLoss, NextTokenSVM


def contexts() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eight contexts in ten dimensions, three of six tokens after each."""
    rng = np.random.default_rng(0)
    H, p = rng.normal(size=(8, 10)), np.zeros((8, 6))
    for row in p:
        tokens = rng.choice(6, 3, replace=False)
        row[tokens] = rng.uniform(0.2, 1, 3)
    return H, p / p.sum(axis=1, keepdims=True), rng.uniform(0.5, 1.5, 8)


H, P, WEIGHTS = contexts()
OPTIMA = {
    "l2": 3.14056626, "spectral": 1.96643219, "nuclear": 6.0582586, "linf": 0.65088625,
    "l1": 16.9135391,
}  # fmt: skip


def swapped() -> tuple[np.ndarray, np.ndarray]:
    """The first two contexts parallel, with the chances of their tokens in opposite orders."""
    inputs, p = H.copy(), P.copy()
    inputs[1], p[1] = 2 * H[0], 0
    tokens = np.flatnonzero(P[0])
    p[1, tokens] = P[0, tokens[::-1]]
    return inputs, p


def repeated(p: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts and tokens of a text in which they occur in these whole numbers."""
    counts = np.rint(total * p).astype(int)
    assert np.abs(counts - total * p).max() < 1e-9
    j, z = np.nonzero(counts)
    return np.repeat(j, counts[j, z]), np.repeat(z, counts[j, z])


def slopes(limit: NextTokenLimit, inputs: np.ndarray, p: np.ndarray, weights: Any) -> np.ndarray:
    """The gradient of the loss in support at the finite part."""
    chances = np.where(p > 0, np.exp(inputs @ limit.finite.T), 0)
    chances /= chances.sum(axis=1, keepdims=True)
    return np.asarray((weights[:, None] * (chances - p)).T @ inputs)


@pytest.mark.parametrize("norm", OPTIMA)
def test_the_direction_separates_tokens_out_of_support_at_equal_scores_in_it(norm) -> None:
    limit = solve_next_token(H, P, WEIGHTS, norm=norm).require()
    assert limit.objective == pytest.approx(OPTIMA[norm], rel=1e-7) and limit.gap <= 1e-8
    assert (limit.n_equal, limit.n_separable, limit.n_stuck) == (16, 24, 0)
    scores = H @ limit.zeta.T
    inside = np.where(P > 0, scores, np.nan)
    assert np.nanmax(inside, axis=1) == pytest.approx(np.nanmin(inside, axis=1), abs=1e-8)
    margins = np.nanmin(inside, axis=1)[:, None] - scores
    assert margins[P == 0].min() == pytest.approx(1, abs=1e-8)


def test_the_finite_part_has_the_log_odds_and_is_orthogonal_to_the_direction() -> None:
    limit = solve_next_token(H, P, WEIGHTS).require()
    scores = H @ limit.finite.T
    for row, chances in zip(scores, P, strict=True):
        z = np.flatnonzero(chances)
        odds = np.log(chances[z]) - np.log(chances[z[0]])
        assert row[z] - row[z[0]] == pytest.approx(odds, abs=1e-14)
    assert limit.compatible and limit.log_odds_error < 2e-15 and limit.finite_error < 1e-12
    assert limit.rank == 16 and limit.excess < 1e-15
    assert abs(np.vdot(limit.finite, limit.zeta)) < 1e-8
    share = WEIGHTS / WEIGHTS.sum()
    assert limit.entropy == pytest.approx(-share @ (P * np.log(np.where(P > 0, P, 1))).sum(axis=1))
    # Weights of contexts move neither part, where the equations have a solution.
    other = solve_next_token(H, P)
    assert other.finite == pytest.approx(limit.finite, abs=1e-12)


def test_odds_that_contradict_each_other_leave_the_loss_above_the_entropy() -> None:
    inputs, p = swapped()
    limit = solve_next_token(inputs, p, WEIGHTS).require()
    assert not limit.compatible and limit.log_odds_error > 0.1
    assert limit.rank == 14 and limit.n_equal == 16
    assert np.abs(slopes(limit, inputs, p, WEIGHTS)).max() < 1e-12
    problem = InSupportLoss().literal(inputs, p, WEIGHTS)
    problem.solve(solver="CLARABEL")
    assert limit.excess > 1e-4
    assert limit.entropy + limit.excess == pytest.approx(problem.value, rel=1e-7)
    # Its least norm: in the span of differences of tokens in support.
    E = np.array([
        np.outer(np.eye(6)[a] - np.eye(6)[b], h).ravel()
        for h, row in zip(inputs, p, strict=True)
        for a in np.flatnonzero(row) for b in np.flatnonzero(row)
    ])  # fmt: skip
    onto = np.linalg.pinv(E) @ E
    assert onto @ limit.finite.ravel() == pytest.approx(limit.finite.ravel(), abs=1e-12)
    assert np.abs(onto @ limit.zeta.ravel()).max() < 1e-8
    # Here weights count, and nowhere else.
    other = solve_next_token(inputs, p)
    assert other.zeta == pytest.approx(limit.zeta, abs=1e-7)
    assert np.abs(other.finite - limit.finite).max() > 1e-4


def test_a_text_has_the_limit_of_its_tokens_as_labels_that_contradict_each_other() -> None:
    whole = token_counts(*text_contexts(dimension=24, random_state=3)[:2])
    rows = slice(0, 6)
    inputs, p = whole.contexts[rows], whole.probabilities[rows, :8]
    p = np.where(p.sum(axis=1, keepdims=True) > 0, p, np.eye(8)[:6])
    p = np.rint(8 * p / p.sum(axis=1, keepdims=True))
    p[:, 0] += 8 - p.sum(axis=1)
    limit = solve_next_token(inputs, p / 8).require()
    samples, tokens = repeated(p / 8, 8)
    split = solve_multiclass_svm(inputs[samples], tokens, n_classes=8, inseparable="split")
    assert limit.objective == pytest.approx(split.require().objective, rel=1e-8)
    assert limit.zeta == pytest.approx(split.zeta, abs=1e-6)
    assert limit.finite == pytest.approx(split.finite, abs=1e-9)


def test_tokens_that_no_decoder_parts_stay_in_the_finite_part() -> None:
    # A context and its opposite, followed by the same: what grows at one falls at the other.
    inputs, p = np.vstack([H[:3], -H[:1]]), np.vstack([P[:3], P[:1]])
    p = np.rint(20 * p) / np.rint(20 * p).sum(axis=1, keepdims=True)
    limit = solve_next_token(inputs, p).require()
    assert limit.n_stuck == 6 and limit.n_separable == 6 and limit.split_bound <= 2.0**-52
    assert "6 tokens out of support cannot part" in str(limit) and limit.excess > 0.01
    samples, tokens = repeated(p, 20 * 19 * 21)
    pairs = np.unique(np.column_stack([samples, tokens]), axis=0)  # of whatever counts
    split = solve_multiclass_svm(
        inputs[pairs[:, 0]], pairs[:, 1], n_classes=6, inseparable="split"
    ).require()
    assert limit.zeta == pytest.approx(split.zeta, abs=1e-6)
    assert limit.objective == pytest.approx(split.objective, rel=1e-7)
    again = limit.certify(inputs, p)
    assert again.status is ib.Status.SOLVED and again.split_bound == limit.split_bound
    # Multipliers of 0 prove nothing, and neither do those of other pairs.
    for wrong in (0 * limit.split_dual, np.abs(limit.split_dual[::-1]) + 1e-3):
        spoiled = replace(limit, split_dual=wrong).certify(inputs, p)
        assert spoiled.status is ib.Status.UNDECIDED


def test_hard_labels_have_no_finite_part_and_the_margin_of_classes() -> None:
    tokens = P.argmax(axis=1)
    limit = solve_next_token(H, np.eye(6)[tokens]).require()
    classes = solve_multiclass_svm(H, tokens, n_classes=6).require()
    assert limit.objective == pytest.approx(classes.objective, rel=1e-8)
    assert (limit.n_equal, limit.rank, limit.entropy) == (0, 0, 0.0) and not limit.finite.any()
    assert "there is no finite part" in str(limit) and limit.compatible


def test_tokens_that_may_all_follow_have_no_direction() -> None:
    p = np.random.default_rng(1).dirichlet(np.ones(6), size=8)
    limit = solve_next_token(H, p).require()
    assert not limit.separable.any() and not limit.zeta.any() and limit.objective == 0
    assert "nothing grows" in str(limit) and limit.compatible and limit.rank == 40
    scores = H @ limit.finite.T
    odds = np.log(p) - np.log(p).mean(axis=1, keepdims=True)
    assert scores - scores.mean(axis=1, keepdims=True) == pytest.approx(odds, abs=1e-12)
    alone = solve_next_token(H[:1], [[0.0, 1.0]]).require()  # one context, one token
    assert alone.objective == pytest.approx(0.5**0.5 / np.linalg.norm(H[0]))


def test_points_from_elsewhere_are_certified() -> None:
    problem = NextTokenSVM().literal(H, P)
    problem.solve(solver="CLARABEL")
    limit = solve_next_token(H, P)
    own = replace(limit, zeta=problem.var_dict["W"].value, tol=1e-5)
    found = own.certify(H, P)
    assert found.status is ib.Status.SOLVED and found.objective == pytest.approx(3.14056626)
    for part in ("zeta", "dual", "finite"):
        moved = replace(limit, **{part: 1.01 * getattr(limit, part) + 1e-3})
        assert moved.certify(H, P).status is not ib.Status.SOLVED, part
    assert limit.certify(H, P).finite_error == pytest.approx(limit.finite_error)
    # What bounds the error of the finite part does, and not by much more.
    apart = 1e-3 * np.linalg.norm(limit.finite)
    longer = replace(limit, finite=1.001 * limit.finite).certify(H, P)
    assert apart <= longer.finite_error * np.linalg.norm(longer.finite) < 20 * apart
    with pytest.raises(ValueError, match="`zeta` must have shape"):
        limit.certify(H, P[:, :5] / P[:, :5].sum(axis=1, keepdims=True))


def test_limits_are_those_of_the_literal_program_on_odd_shapes() -> None:
    # A sample of those that `python -m experiments.next_token` makes.
    for seed in range(6):
        row = compared(seed)
        assert row["status"] == "SOLVED", row
        assert row["direction"] < 1e-5 and row["loss"] < 1e-6, row
    shapes = {drawn(seed)[1].shape for seed in range(30)}
    assert len(shapes) > 20 and any(m > V for m, V in shapes) and any(V > m for m, V in shapes)


ROW = [[0.5, 0.5, 0.0]]
BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "sum": (([[1.0]], [[0.5, 0.4, 0.0]]), "`probabilities` must have rows of sum 1, got 0.9 in"),
    "negative": (([[1.0]], [[1.5, -0.5, 0.0]]), "`probabilities` must not be negative, got -0.5"),
    "zeros": (([[1.0], [2.0]], [*ROW, [0, 0, 0]]), "`probabilities` has no token .* context 1"),
    "NaN": (([[1.0]], [[np.nan, 1.0]]), "`probabilities` has entries that are NaN"),
    "NaN inputs": (([[np.nan]], ROW), "`contexts` has entries that are NaN"),
    "rows": (([[1.0], [2.0]], ROW), "`probabilities` must have shape"),
    "axes": (([1.0], ROW), "`contexts` must have shape"),
    "one token": (([[1.0]], [[1.0]]), "`probabilities` must have shape"),
    "weights": (([[1.0]], ROW, [0.0]), "`weights` must be 1 positive numbers, .* the least 0"),
    "negative weights": (([[1.0]], ROW, [-1.0]), "`weights` must be 1 positive"),
    "shape of weights": (([[1.0]], ROW, [1.0, 1.0]), "`weights` must have shape"),
}


def test_more_tokens_than_memory_holds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"300 contexts with 9000 tokens .* give fewer"):
        solve_next_token(np.ones((300, 99)), np.full((300, 9000), 1 / 9000))


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name) -> None:
    given, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        solve_next_token(*given)
    with pytest.raises(ValueError, match="norm"):
        solve_next_token([[1.0]], ROW, norm="l3")  # type: ignore[arg-type]


def test_counts_are_those_of_the_text() -> None:
    X, tokens, words = text_contexts(2, 5)
    found = token_counts(X, tokens)
    assert found.contexts.shape[1] == 5 and found.probabilities.shape[1] == len(words) == 21
    (place,) = np.flatnonzero((found.contexts == X[0]).all(axis=1))
    following = [z for x, z in zip(X, tokens, strict=True) if (x == X[0]).all()]
    shares = np.bincount(following, minlength=21) / len(following)
    assert found.probabilities[place].tolist() == shares.tolist()
    assert found.shares[place] == pytest.approx(len(following) / len(tokens))
    assert (text_contexts(2, 5)[0] == X).all() and (
        text_contexts(2, 5, random_state=1)[0] != X
    ).all()
    with pytest.raises(ValueError, match="`tokens` must be whole numbers from 0 to 1"):
        token_counts(np.eye(2), [0, 0.5])
    with pytest.raises(ValueError, match="`context` must be below"):
        text_contexts(1000)
