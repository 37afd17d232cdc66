"""Decoders of next tokens come to their limit, in two parts soon and by descent slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import implicit_bias as ib
from implicit_bias.datasets import TokenCounts
from implicit_bias.limits import solve_next_token
from implicit_bias.networks import TokenDecoder
from tests.commands import cut, results, without_times
from tests.models.next_token.test_limit import WEIGHTS, H, P, swapped

SHARES = WEIGHTS / WEIGHTS.sum()
SHORT: dict[str, Any] = {"steps": 200, "descent_steps": 200, "checkpoints": 6}


@pytest.fixture(scope="module")
def report() -> ib.Report:
    return ib.run("next-token", n_train=120, context=2, dimension=48, **SHORT)


def trained(part: Any, decoder: TokenDecoder, p: np.ndarray = P, **settings: Any) -> ib.Trajectory:
    """Train a part of a decoder on the weighted chances of the contexts."""
    weights, inside = len(p) * SHARES, part != "outside"
    y = weights * TokenCounts(H, p).entropies if inside else np.ones(len(p))
    how = ib.TrainingSettings(loss="excess" if inside else "logistic", **settings)
    return ib.train(decoder.of(part), H, y, weights[:, None] * p, settings=how)


def test_both_parts_of_a_decoder_come_to_their_limits_by_the_trainers_of_the_library() -> None:
    limit, decoder = solve_next_token(H, P, WEIGHTS).require(), TokenDecoder(H, P > 0)
    trained("inside", decoder, trainer="newton", schedule=((9, None),))
    finite = decoder.weight.detach().numpy()
    assert finite == pytest.approx(limit.finite, abs=1e-12)
    path = trained("outside", decoder, trainer="momentum", schedule=((300, None),))
    assert path.log_loss[-1] < -100  # long after softmax has rounded to 1
    V = decoder.weight.detach().numpy() - finite
    scores = H @ V.T
    lead = np.where(P > 0, scores, -np.inf).max(axis=1)[:, None] - scores
    ratio = lead[P == 0].min() / np.linalg.norm(V) * limit.dual_objective
    assert 0.98 < ratio <= 1
    # It has not moved the other part.
    assert decoder.basis @ torch.tensor(V).ravel() == pytest.approx(np.zeros(16), abs=1e-9)


def test_descent_on_a_decoder_is_descent_on_its_weights_and_slow() -> None:
    limit, decoder = solve_next_token(H, P, WEIGHTS), TokenDecoder(H, P > 0)
    W, rate, off = np.zeros((6, 10)), 0.1, []
    for steps in (900, 900, 1800):
        schedule = ((steps, rate),)
        trained("whole", decoder, batch_size=0, schedule=schedule)
        for _ in range(steps):
            q = np.exp(H @ W.T)
            q /= q.sum(axis=1, keepdims=True)
            W -= rate * (SHARES[:, None] * (q - P)).T @ H
        assert decoder.weight.detach().numpy() == pytest.approx(W, abs=1e-9)
        inside = (decoder.basis.T @ decoder.inside).detach().numpy().reshape(6, 10)
        off.append(np.linalg.norm(inside - limit.finite))
    assert off[1] / off[2] == pytest.approx(2, rel=0.2)  # like one over the steps
    V = W - inside
    cosine = np.vdot(V, limit.zeta) / np.linalg.norm(V) / np.linalg.norm(limit.zeta)
    assert 0.9 < cosine < 0.99


def test_what_a_part_is_trained_on_adds_up_to_the_cross_entropy() -> None:
    decoder = TokenDecoder(H, P > 0)
    with torch.no_grad():
        decoder.inside.normal_(generator=torch.Generator().manual_seed(0))
        decoder.outside.normal_(generator=torch.Generator().manual_seed(1))
    X, p = torch.tensor(H), torch.tensor(P)
    whole, inside, margins = (decoder.of(part)(X, p) for part in ("whole", "inside", "outside"))
    assert decoder(X).shape == (8, 6)
    losses = -(p * torch.log_softmax(decoder(X), dim=1)).sum(1)
    torch.testing.assert_close(whole, losses)
    torch.testing.assert_close(whole, inside + torch.log1p(torch.exp(-margins)))
    margins.sum().backward()
    assert decoder.inside.grad is None and decoder.outside.grad is not None
    with pytest.raises(ValueError, match="`in_support` must have a token in every row"):
        TokenDecoder(H[:2], [[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="`part` must be one of"):
        decoder.of("all")  # type: ignore[arg-type]


def test_a_text_has_a_decoder_at_its_limit_and_one_that_descends(report) -> None:
    assert report.limit.status is ib.Status.SOLVED and report.limit.compatible
    verdicts = {one.network: one for one in report.verdicts}
    assert {name: one.word for name, one in verdicts.items()} == {
        "in two parts": "AT ITS LIMIT", "descent": "NOT THERE YET",
    }  # fmt: skip
    parts, descent = report.comparison["in two parts"], report.comparison["descent"]
    assert 0.99 < parts.margin_ratio <= 1 and parts.limit_error < 1e-9
    assert descent.margin_ratio < 0.8 and 1e-3 < descent.limit_error < 1
    assert parts.excess < 1e-12 < descent.excess
    decoder = report.network["in two parts"]
    assert decoder.weight.shape == report.limit.zeta.shape == (21, 48)
    # Along the way: both fall.
    course = report.trajectory["descent"].observed
    assert course["margin_ratio"][-1] > course["margin_ratio"][2]
    assert (
        course["limit_error"][-1]
        < course["limit_error"][0]
        == pytest.approx(min(1.0, float(np.linalg.norm(report.limit.finite))))
    )


def test_a_saved_report_is_drawn_as_it_was(report, tmp_path) -> None:
    report.save(tmp_path / "run")
    again = ib.load(tmp_path / "run")
    titles = [ax.get_title() for ax in again.plot().axes]
    assert "cosines of tokens: limit" in titles and "cosines of tokens: descent" in titles
    assert str(again) == str(report)
    assert "in two parts" in str(report) and "descent" in str(report)


def test_a_decoder_trained_elsewhere_is_compared_with_its_limit() -> None:
    counts = TokenCounts(H, P, WEIGHTS)
    limit = solve_next_token(H, P, WEIGHTS)
    size = float(np.linalg.norm(limit.finite))
    found = ib.measures.compare_decoder(limit, 3 * limit.finite + 0.1 * limit.zeta, counts)
    assert found.margin_ratio == pytest.approx(1) == found.zeta_cosine
    assert found.limit_error == pytest.approx(2 * size / max(size, 1))
    assert found.excess > 0.1 and found.word_cosines.shape == (6, 6)
    nothing = ib.measures.compare_decoder(limit, np.zeros((6, 10)), counts)
    assert np.isnan(nothing.margin_ratio) and nothing.limit_error == pytest.approx(
        size / max(size, 1)
    )
    with pytest.raises(ValueError, match="`weight` must have shape"):
        ib.measures.compare_decoder(limit, np.zeros((5, 10)), counts)
    with pytest.raises(ValueError, match="`limit` must be of the l2 norm"):
        ib.measures.compare_decoder(solve_next_token(H, P, norm="linf"), np.zeros((6, 10)), counts)


def test_a_run_goes_on_where_it_was_interrupted(monkeypatch, tmp_path) -> None:
    words = ("--model", "next-token", "--n-train", 40, "--steps", 30, "--descent-steps", 20)
    whole = results(*words)
    for stage in ("training the direction", "descending"):
        folder = ("--save", tmp_path / stage)
        cut(monkeypatch, (*words, *folder), stage, at=0.5)
        resumed = results(*words, *folder, "--resume")
        assert without_times(resumed["comparison"]) == without_times(whole["comparison"])


def test_soft_labels_and_files_of_ones_own_are_taken(tmp_path) -> None:
    by_hand = solve_next_token(H, P)
    report = ib.run("next-token", X=H, y=P, **SHORT)
    assert report.limit.objective == pytest.approx(by_hand.objective)
    assert report.results["data"]["n_train"] == 8
    text = ["a", "b", "a", "c", "b", "c"]
    table = pd.DataFrame({"x1": [1, 1, 1, 0, 0, 0], "x2": [0, 0, 0, 1, 1, 1], "word": text})
    table.to_csv(tmp_path / "text.csv", index=False)
    found = ib.run("next-token", data=tmp_path / "text.csv", label="word", steps=0)
    p = [[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]]
    assert found.limit.objective == pytest.approx(solve_next_token(np.eye(2), p).objective)
    assert "6 tokens of text.csv" in found.heading.setup
    weights = np.arange(1, 9)
    np.savez(tmp_path / "chances.npz", X=H, y=P, weights=weights)
    for n_train, m in ((None, 8), (5, 5)):
        stored = ib.run("next-token", data=tmp_path / "chances.npz", n_train=n_train, steps=0)
        limit = solve_next_token(H[:m], P[:m], weights[:m])
        assert stored.limit.objective == pytest.approx(limit.objective)
        assert stored.limit.entropy == pytest.approx(limit.entropy)
        assert f"contexts of chances.npz: {m} contexts" in stored.heading.setup
    for options, message in (
        ({"X": H, "y": np.arange(8) / 2}, "`y` must be whole numbers"),
        ({"X": H, "y": P / 2}, "`y` must have rows of sum 1"),
        ({"X": H, "y": P, "context": 2}, "`--context` is of `--data text`"),
        ({"label": "word"}, "`--label` is of a file"),
    ):
        with pytest.raises(ValueError, match=message):
            ib.run("next-token", **options)


def test_contexts_that_lack_a_part_are_trained_as_far_as_they_have_one() -> None:
    none, every = np.eye(6)[P.argmax(axis=1)], np.full((8, 6), 1 / 6)
    for p, near in ((none, {"margin_ratio", "limit_error"}), (every, {"limit_error"})):
        report = ib.run("next-token", X=H, y=p, **SHORT)
        verdict = next(one for one in report.verdicts if one.network == "in two parts")
        assert verdict.word == "AT ITS LIMIT" and set(verdict.numbers) == near
    # Odds that contradict each other have a limit all the same.
    inputs, p = swapped()
    report = ib.run("next-token", X=inputs, y=p, **SHORT)
    assert next(iter(report.comparison.values())).limit_error < 1e-9
    assert {one.name for one in report.assumptions if one.holds is False} == {"compatible odds"}
    # Contexts count as often as they occur, which their finite part depends on then.
    X, y = np.array([[1.0], [1.0], [1.0], [2.0], [2.0]]), np.array([0, 0, 1, 0, 1])
    report = ib.run("next-token", X=X, y=y, **SHORT | {"descent_steps": 0})
    assert report.comparison["in two parts"].limit_error < 1e-9 and not report.limit.compatible
    # Where tokens cannot part, what grows does not follow from the contexts alone.
    stuck = ib.run("next-token", X=np.vstack([H, -H[:1]]), y=np.vstack([P, P[:1]]), **SHORT)
    assert list(stuck.comparison) == ["descent"] and stuck.limit.n_stuck > 0
    assert "separable contexts" in {one.name for one in stuck.assumptions if one.holds is False}
