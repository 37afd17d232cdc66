"""Runs of attention: selected tokens, their program, and the program of the best beside it."""

import numpy as np
import pytest

import implicit_bias as ib
from tests.commands import run as run_command

DATA = ib.datasets.make_tokens(12, 5, 5, random_state=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("attention")


@pytest.fixture(scope="module")
def report(folder) -> ib.Report:
    np.savez(folder / "own.npz", X=DATA.X, queries=DATA.queries, scores=DATA.scores)
    return ib.run("attention", data=folder / "own.npz", steps=1500, checkpoints=6,
                  save=folder / "run")  # fmt: skip


def test_attention_is_at_the_limit_of_the_tokens_that_it_selects_alone(report) -> None:
    W, limit = report.trajectory.observed["zeta"][-1], report.limit
    tokens = np.einsum("ntd,de,ne->nt", DATA.X, W, DATA.queries).argmax(axis=1)
    np.testing.assert_array_equal(limit.tokens, tokens)
    assert limit.is_local and limit.gap < 1e-6
    assert report.verdict.word == "AT ITS LIMIT"
    found = report.comparison
    assert 0.99 < found.margin_ratio <= 1 + 1e-9 and found.zeta_cosine > 0.999
    # The program of the best tokens, of which some are not selected, predicts nothing here.
    best = report.objects["best_limit"]
    np.testing.assert_array_equal(best.tokens, DATA.best)
    assert 0 < (tokens != DATA.best).mean() == pytest.approx(1 - found.best_share)
    assert found.best_margin_ratio == 0 and best.objective > limit.objective
    row = report.row()
    assert row["better_margin"] == limit.better_margin > 1
    assert row["objective"] == limit.objective and row["best_share"] == found.best_share
    logits = np.einsum("ntd,de,ne->nt", DATA.X, W, DATA.queries)
    places, scores = np.arange(12), DATA.scores
    ahead = logits[places, tokens][:, None] - logits
    own = scores[places, tokens][:, None]
    expected = ahead[scores > own].min() / ahead[scores < own].min()
    assert found.own_better_margin == pytest.approx(expected)
    named = {one.name: one.holds for one in report.assumptions}
    assert named["locally optimal tokens"] and named["separable tokens"]


def test_a_saved_run_comes_back_with_its_maps(report, folder) -> None:
    back = ib.load(folder / "run")
    np.testing.assert_array_equal(back.limit.zeta, report.limit.zeta)
    np.testing.assert_array_equal(
        back.network.zeta().detach(), report.trajectory.observed["zeta"][-1]
    )
    assert back.limit.certify(DATA.X, DATA.queries, DATA.scores).status.name == "SOLVED"
    for one in (report, back):
        maps = one.figure().axes[3]
        assert maps.get_title() == "attention after 1500 steps"
        shares = maps.images[0].get_array()
        assert shares.shape == (12, 5) and shares.min() >= 0
        np.testing.assert_array_equal(shares.argmax(axis=1), report.limit.tokens)


def test_arrays_are_the_same_run_as_the_file(report) -> None:
    own = {"X": DATA.X, "y": DATA.scores, "queries": DATA.queries}
    again = ib.run("attention", **own, steps=0)
    assert again.results["data"]["sha256"] == report.results["data"]["sha256"]
    best = report.objects["best_limit"]
    np.testing.assert_array_equal(again.limit.zeta, best.zeta)


def test_cells_of_a_sweep_share_sequences_of_tokens(folder) -> None:
    own = {"X": DATA.X, "y": DATA.scores, "queries": DATA.queries}
    sweep = ib.sweep("attention", {"seed": [0, 3]}, out=folder / "sweep", steps=3, **own)
    for seed, ratio in zip((0, 3), sweep.frame()["objective"], strict=True):
        assert ratio == ib.run("attention", seed=seed, steps=3, **own).row()["objective"]


def test_cells_of_other_queries_are_other_cells(folder) -> None:
    own = {"X": DATA.X, "y": DATA.scores, "steps": 0, "out": folder / "asked"}
    both = [ib.sweep("attention", {"seed": [0]}, queries=z, **own)
            for z in (DATA.queries, -DATA.queries)]  # fmt: skip
    assert [*both[0].cells] != [*both[1].cells]


def test_keys_and_queries_have_the_nuclear_norm_and_say_what_is_not_proved() -> None:
    own = {"X": DATA.X, "y": DATA.scores, "queries": DATA.queries}
    found = ib.run("attention", **own, parameters="key-query", steps=700, checkpoints=2)
    assert found.limit.norm == "nuclear" and 0.92 < found.comparison.margin_ratio < 1 + 1e-6
    assert found.comparison.zeta_cosine is None  # of a norm whose optima need not be unique
    (path,) = (one for one in found.assumptions if one.name == "descent on K and Q")
    assert path.holds is None and "regularisation path" in path.text


def test_tokens_that_are_not_self_consistent_have_no_theorem() -> None:
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 3))
    scores = rng.uniform(-1, 0.5, (4, 5))
    scores[np.arange(4), rng.integers(0, 5, 4)] = 1.0
    own = {"X": X, "y": scores, "queries": z, "init_scale": 2.0, "steps": 300, "checkpoints": 2}
    found = ib.run("attention", seed=1, **own)
    assert found.limit.tokens.tolist() == [4, 0, 3, 2]
    assert found.verdict.word == "NO THEOREM" and "0.963" in found.verdict.sentence
    (local,) = (one for one in found.assumptions if one.name == "locally optimal tokens")
    assert local.holds is False


def test_constant_steps_stop_where_softmax_is_one() -> None:
    own = {"X": DATA.X, "y": DATA.scores, "queries": DATA.queries, "checkpoints": 2}
    found = ib.run("attention", **own, trainer="constant", steps=600, learning_rate=30.0)
    assert found.comparison.margin_ratio < 0.95 and found.comparison.attended > 0.99


@pytest.mark.parametrize(("words", "message"), [
    (("--trainer", "sign", "--parameters", "key-query"), "no norm of W = K Q'"),
    (("--data", "{folder}/own.npz", "--tokens", "4"), "`tokens` is of drawn tokens"),
    (("--data", "{folder}/no.npz"), "there is no file"),
    (("--data", "{folder}/both.npz"), "must hold scores (n, T) or y"),
    (("--data", "{folder}/none.npz"), "must hold the array X"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused_before_any_work(
    words, message, folder, report
) -> None:
    np.savez(folder / "both.npz", X=DATA.X, scores=DATA.scores, y=np.ones(12))
    np.savez(folder / "none.npz", scores=DATA.scores)
    done = run_command("--model", "attention", *(one.format(folder=folder) for one in words))
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())


def test_queries_are_refused_by_models_of_other_inputs() -> None:
    with pytest.raises(ValueError, match="linear takes no `queries`"):
        ib.run("linear", queries=DATA.queries)
