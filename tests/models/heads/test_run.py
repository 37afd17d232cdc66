"""`compare --model heads`: heads that descend by the one loop, beside certified limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from scipy.special import log_softmax, softmax
from torch.nn.functional import cross_entropy, one_hot

import implicit_bias as ib
from implicit_bias.networks import LabelledHead, SoftLabelHead
from tests.commands import cut, results, run, saved_arrays, without_times

QUICK = ("--model", "heads", "--n-train", "60", "--n-val", "200", "--hidden-units", "8",
         "--trunk-steps", "40", "--exits", "1,3")  # fmt: skip
RNG = np.random.default_rng(0)
PHI, LABELS = torch.tensor(RNG.normal(size=(9, 4))), torch.tensor(RNG.integers(0, 3, 9))
W = torch.tensor(3 * RNG.normal(size=(3, 4)))


def test_the_logistic_loss_of_a_labelled_head_is_cross_entropy() -> None:
    head = LabelledHead(3, 4)
    head.weight.data = W
    margins = head(PHI, one_hot(LABELS, 3).double())
    expected = cross_entropy(PHI @ W.T, LABELS, reduction="none")
    torch.testing.assert_close(torch.log1p(torch.exp(-margins)), expected, rtol=1e-12, atol=1e-14)


def test_a_taught_head_returns_the_mixed_loss_and_excess_is_what_the_loop_descends() -> None:
    head, teacher = SoftLabelHead(3, 4, temperature=2.0), softmax(RNG.normal(size=(9, 3)), axis=1)
    head.weight.data = W.clone()
    hard = 0.3 * one_hot(LABELS, 3).double()
    gates = torch.cat([hard, 0.7 * torch.tensor(teacher)], dim=1)
    u = (PHI @ W.T).numpy()
    expected = 0.3 * -log_softmax(u, axis=1)[np.arange(9), LABELS.numpy()]
    expected -= 0.7 * 4 * np.sum(teacher * log_softmax(u / 2, axis=1), axis=1)
    assert head(PHI, gates).detach().numpy() == pytest.approx(expected, rel=1e-12)
    settings = ib.TrainingSettings(loss="excess", batch_size=0, schedule=((1, 0.1),))
    path = ib.train(head, PHI, np.full(9, 0.25), gates, settings=settings)
    assert path.loss[0] == pytest.approx(expected.mean() - 0.25, rel=1e-12)
    # One step along the gradient of the mean, by its closed form.
    slope = 0.3 * (softmax(u, axis=1) - np.eye(3)[LABELS.numpy()])
    slope += 0.7 * 2 * (softmax(u / 2, axis=1) - teacher)
    moved = W.numpy() - 0.1 * slope.T @ PHI.numpy() / 9
    assert head.weight.detach().numpy() == pytest.approx(moved, rel=1e-12)


@pytest.mark.parametrize(
    ("trainer", "how"), [("newton", {}), ("constant", {"steps": 1500, "momentum": 0.95})]
)
def test_training_comes_to_the_limits_of_soft_and_mixed_labels(trainer, how) -> None:
    for share, temperature in ((0.0, 4.0), (0.4, 2.0)):
        report = ib.run(
            "heads", data="iris", n_train=90, n_val=50, share=share, temperature=temperature,
            trunk="random", depth=1, hidden_units=3, trunk_steps=60, trainer=trainer, **how,
        )  # fmt: skip
        (one,) = report.comparison.exits
        assert report.status.name == "SOLVED" and report.limit[1].kind == "minimiser"
        assert one.error < 1e-3 and 0 <= one.excess + 1e-12 < 1e-6 and one.agreement == 1


def test_a_head_with_as_many_features_as_samples_interpolates_its_teacher() -> None:
    report = ib.run("heads", n_train=40, share=0, hidden_units=64, depth=1, steps=30, tol=1e-4)
    (one,), limit = report.comparison.exits, report.limit[1]
    assert limit.kind == "interpolant" and limit.rank == 40
    exits = report.objects["exits"]
    centred = exits.teacher - exits.teacher.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(exits.features[0] @ limit.zeta.T, centred, atol=1e-6)
    assert one.score_cosine > 0.97


def test_steps_that_lead_away_from_a_minimiser_are_not_said_to_be_too_few() -> None:
    small = {"n_train": 30, "n_val": 20, "hidden_units": 4, "depth": 1, "trunk_steps": 10}
    how = {"share": 0, "trainer": "constant", "steps": (4,), "momentum": 0.0}
    for rate, way in ((4.0, "a smaller `--learning-rate`"), (0.1, "more `--steps`")):
        report = ib.run("heads", **small, **how, learning_rate=(rate,))
        assert report.failure is None and f"so give {way}" in report.row()["verdict_sentence"]


def test_hard_labels_alone_lead_along_the_joint_direction_far_enough_to_see() -> None:
    report = ib.run(
        "heads", n_train=80, n_val=300, share=1, hidden_units=16, exits=(2,), steps=1000
    )
    (one,) = report.comparison.exits
    assert one.kind == "direction" and report.status.name == "SOLVED"
    assert 0.95 < one.margin_ratio <= 1 + 1e-6 and np.degrees(one.angle) < 8
    # The limit's margin is 1 over its norm: it is scaled to margin 1.
    assert one.limit.margin == pytest.approx(1 / np.linalg.norm(report.limit[2].zeta), rel=1e-3)
    assert report.trajectory[2].loss[-1] < 1e-6
    assert "temperature" not in report.results["teacher"]


def test_unlabelled_samples_are_of_the_teacher_alone_and_classes_may_be_two() -> None:
    report = ib.run("heads", n_train=60, n_labelled=30, classes="two", hidden_units=6, steps=0)
    exits = report.objects["exits"]
    assert exits.labels.n_classes == 2 and exits.teacher.shape == (60, 2)
    assert (exits.labels.train[30:] == -1).all() and (exits.labels.train[:30] >= 0).all()
    alone = ib.heads.solve_exit_heads(
        exits.features, exits.labels.train, teacher=exits.teacher, temperature=3.0, tol=1e-6
    )
    for head, limit in zip(alone, report.limit.values(), strict=True):
        np.testing.assert_array_equal(head.zeta, limit.zeta)


def test_the_network_of_a_report_predicts_what_the_comparison_says(tmp_path) -> None:
    report = ib.run("heads", n_train=60, n_val=80, hidden_units=8, depth=2, steps=50, save=tmp_path)
    exits, again = report.objects["exits"], ib.load(tmp_path)
    for network in (report.network, again.network):
        averages = network.predict(exits.labels.X_val)
        for one, p in zip(report.comparison.exits, averages, strict=True):
            assert np.mean(p.argmax(axis=1) == exits.labels.val) == one.network.anytime_accuracy
    limit = ib.heads.HeadLimit.load(tmp_path / "limit-exit2.safetensors")
    np.testing.assert_array_equal(limit.zeta, report.limit[2].zeta)
    path = load_file(tmp_path / "path.safetensors")
    np.testing.assert_array_equal(path["weights.2"][-1], report.network.heads[1].weight.detach())


def test_a_run_that_is_resumed_ends_like_one_that_never_stopped(monkeypatch, tmp_path) -> None:
    arguments = (*QUICK, "--steps", "60")
    whole = results(*arguments, "--save", tmp_path / "whole")
    there = (*arguments, "--save", tmp_path / "cut")
    cut(monkeypatch, there, "training a head at exit 3", at=0.6)
    assert without_times(results(*there, "--resume")) == without_times(whole)
    expected, found = saved_arrays(tmp_path / "whole"), saved_arrays(tmp_path / "cut")
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--exits 1,4", "ascending from 1 to `--depth` 3, got 1,4"),
        ("--exits 3,1", "ascending from 1"),
        ("--share 1.5", "`--share` of hard labels must lie"),
        ("--share 1 --temperature 2", "is of soft labels"),
        ("--temperature 0", "`--temperature` must be positive"),
        ("--trainer momentum", "give `--share 1`"),
        ("--share 1 --trainer annealed", "is not one of 'constant', 'momentum', 'newton'"),
        ("--share 1 --trainer newton", "which that of hard labels alone does not have"),
        ("--share 1 --momentum 0.5", "has a momentum of its own"),
        ("--n-labelled 61", "more than the 60 training samples"),
        ("--n-labelled 9", "no labelled sample is of class"),
        ("--tol 0", "`--tol` must lie"),
        ("--data quadrants", "needs data of several classes"),
        ("--trainer constant --learning-rate 9999 --steps 30", "diverged"),
    ],
)
def test_what_cannot_be_run_is_one_message(arguments, message) -> None:
    done = run(*QUICK, *arguments.split())
    assert done.exit_code == 2
    assert message in done.stderr and done.stderr.count("Error:") <= 1


def test_a_head_that_does_not_separate_yet_and_a_certificate_that_misses_have_their_codes() -> None:
    done = run(*QUICK, "--hidden-units", "16", "--share", "1", "--steps", "1")
    assert done.exit_code == 5 and "does not separate its labelled samples" in done.stderr
    done = run(*QUICK, "--tol", "1e-15", "--steps", "0")
    assert done.exit_code == 4 and "INACCURATE" in done.stderr
    # Too few open units at the third layer to tell all classes apart, and too many to hold them.
    done = run(*QUICK, "--share", "1", "--steps", "0")
    assert done.exit_code == 4 and "NO_MINIMISER (head of exit 3)" in done.stderr
