"""`compare --model distillation`, and students that are trained: beside their flow and limit."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file
from scipy.special import expit, softmax

import implicit_bias as ib
from implicit_bias.data import load_pair
from implicit_bias.models.distillation import image_task
from implicit_bias.networks import LinearStudent
from tests.commands import cut, results, run, saved_arrays, without_times, write_mnist

QUICK = ("--model", "distillation", "--n-train", "6", "--n-val", "200")


@pytest.mark.long
def test_with_its_defaults_a_student_follows_its_flow_to_the_limit() -> None:
    report = ib.run("distillation", steps=(1000, 6000))
    found, limit, row = report.comparison, report.limit, report.row()
    assert report.status is not None and report.status.name == "SOLVED"
    assert all(assumption.holds is not False for assumption in report.assumptions)
    assert sum(assumption.holds is True for assumption in report.assumptions) >= 5
    assert found.path_error < 0.03 and found.network.error < 0.05
    # What no sample sees has come to its length, which the bound exceeds by a fifth.
    assert found.network.null_norm == pytest.approx(limit.null_norm, rel=1e-3)
    assert limit.null_bound > 1.1 * limit.null_norm
    assert (row["risk_limit"], row["risk"]) == (found.limit.risk, found.network.risk)
    assert row["agreement"] > 0.99 and row["risk"] < row["risk_bound"] < 0.3
    assert row["stationarity"] < 1e-12 and row["limit"] == "distillation limit"
    assert report.results["risk"]["angle_rises"] == 0
    figure = report.figure()
    assert figure is not None
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert "off the span of the samples" in labels and "risk" in labels


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_error_of_descent_is_proportional_to_its_rate(depth) -> None:
    errors = []
    for halving in (1, 2):
        report = ib.run(
            "distillation", depth=depth, n_train=6, n_val=50, init_scale=0.05,
            steps=200 * halving, learning_rate=0.2 / halving,
        )  # fmt: skip
        assert report.comparison.time == pytest.approx(40.0)
        errors.append(report.comparison.path_error)
    assert 1.7 < errors[0] / errors[1] < 2.3


def test_enough_soft_labels_teach_all_of_the_teacher() -> None:
    rng = np.random.default_rng(0)
    X, teacher = rng.normal(size=(30, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    network = ib.DeepLinear.from_zeta([0.1, 0.0, 0.0, 0.0], hidden_widths=(3,))
    settings = ib.TrainingSettings(loss="cross-entropy", batch_size=0, schedule=((4000, 0.3),))
    path = ib.train(network, X, expit(X @ teacher), None, settings=settings)
    np.testing.assert_allclose(network.zeta().detach(), teacher, atol=1e-9)
    assert np.isnan(path.smallest_margin).all() and path.loss[-1] < 1e-18
    with pytest.raises(ValueError, match=r"soft labels in \[0, 1\]"):
        ib.train(network, X, X @ teacher, None, settings=settings)
    with pytest.raises(ValueError, match="take one of"):
        ib.TrainingSettings(loss="cross-entropy", trainer="annealed")


def test_k_classes_learn_soft_labels_in_the_one_loop() -> None:
    rng = np.random.default_rng(0)
    X, teacher, W0 = rng.normal(size=(30, 4)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    labels = softmax(X @ teacher.T, axis=1)
    settings = ib.TrainingSettings(
        loss="softmax", batch_size=0, momentum=0.9, schedule=((600, 0.5),)
    )
    networks = [LinearStudent(W0), LinearStudent(0 * W0)]
    paths = [ib.train(net, X, labels, None, settings=settings, X_val=X[:5]) for net in networks]
    # Rows less their mean are the teacher's; the mean, which no label sees, stays.
    seen = teacher - teacher.mean(axis=0)
    for network, begun in zip(networks, (W0, 0 * W0), strict=True):
        expected = seen + begun.mean(axis=0)
        np.testing.assert_allclose(network.zeta().detach(), expected, atol=1e-8)
    assert paths[0].loss[-1] < 1e-16 < paths[0].loss[0]
    assert paths[0].scores.shape == (len(paths[0].step), 5, 3)
    together = [LinearStudent(W0), LinearStudent(0 * W0)]
    ib.train_many(together, X, labels, None, settings=settings)
    for one, other in zip(networks, together, strict=True):
        np.testing.assert_allclose(one.zeta().detach(), other.zeta().detach(), atol=1e-12)
    for wrong, message in (
        (labels[:, 0], r"`y` must have shape \(30, K\)"),
        (2 * labels, "with sum 1"),
        (labels[:, :1] / labels[:, :1], "K >= 2"),
        (labels[:, :2] / labels[:, :2].sum(axis=1)[:, None], r"scores of shape \(30, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            ib.train(LinearStudent(W0), X, wrong, None, settings=settings)


def test_a_student_of_all_classes_follows_its_flow_at_every_temperature() -> None:
    sizes = {"classes": "all", "n_val": 400, "steps": (50, 400)}
    warm, cold = (ib.run("distillation", temperature=tau, **sizes) for tau in (4.0, 1.0))
    for report in (warm, cold):
        found, row = report.comparison, report.row()
        assert report.status is not None and report.status.name == "SOLVED"
        assert found.path_error < 0.03 and all(one.holds for one in report.assumptions)
        assert found.network.null_norm == pytest.approx(report.limit.null_norm, rel=1e-9)
        assert row["n_classes"] == 10 and row["angle_limit"] is None
        assert row["risk"] == found.network.risk
    # The temperature changes the way, and not the limit; here warm students get on faster.
    np.testing.assert_allclose(warm.limit.zeta, cold.limit.zeta, atol=1e-12)
    assert warm.comparison.network.error < 0.6 < cold.comparison.network.error
    assert warm.limit.zeta.shape == (10, 65)
    figure = warm.figure()
    assert figure is not None and len(figure.axes) == 2


def test_what_is_kept_gives_its_numbers_again(tmp_path) -> None:
    record = results(*QUICK, "--steps", "40,60", "--save", tmp_path)
    limit = ib.distillation.DistillationLimit.load(tmp_path / "limit.safetensors")
    assert limit.null_norm == record["limit"]["null_norm"]
    path = load_file(tmp_path / "path.safetensors")
    rates = record["options"]["learning_rate"]
    assert path["time"][-1] == pytest.approx(40 * rates[0] + 60 * rates[1])
    off = np.linalg.norm(path["weights"][-1] - limit.zeta) / np.linalg.norm(limit.zeta)
    assert off == pytest.approx(record["comparison"]["network"]["error"])
    layers = load_file(tmp_path / "network.safetensors")
    product = layers["layers.1"] @ layers["layers.0"]
    np.testing.assert_allclose(product[0], path["weights"][-1], rtol=1e-12)


def test_a_run_that_is_resumed_ends_like_one_that_never_stopped(monkeypatch, tmp_path) -> None:
    arguments = (*QUICK, "--steps", "60,60")
    whole = results(*arguments, "--save", tmp_path / "whole")
    there = (*arguments, "--save", tmp_path / "cut")
    cut(monkeypatch, there, "training a student", at=0.6)
    assert without_times(results(*there, "--resume")) == without_times(whole)
    expected, found = saved_arrays(tmp_path / "whole"), saved_arrays(tmp_path / "cut")
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_images_of_0_and_1_have_a_teacher_from_other_images(tmp_path) -> None:
    task = image_task(load_pair(n_train=30, random_state=1))
    assert task.X.shape == (30, 65) and len(task.X_val) == 165
    assert "of which 165 teach" in task.description
    nested = load_pair(n_train=40, n_val=100, random_state=1)
    np.testing.assert_array_equal(nested.X_train[:30], task.X)
    assert nested.X_val.shape == (100, 65)
    with pytest.raises(ValueError, match="at most 360"):
        load_pair(n_train=300, n_val=100)
    write_mnist(tmp_path, n=300)
    record = results(
        "--model", "distillation", "--data", "mnist", "--data-dir", tmp_path, "--n-train", "20",
        "--steps", "5",
    )  # fmt: skip
    assert (record["data"]["n_train"], record["data"]["n_val"]) == (20, 20)
    assert record["data"]["n_inputs"] == 785


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--init-scale 0", "a deep student that begins at 0 stays there"),
        ("--init-scale nan", "is no finite number"),
        ("--kappa 0", "`kappa` must be positive and finite"),
        ("--kappa 2 --data digits", "`--kappa` is of `--data angles`"),
        ("--data mnist", "needs `--data-dir DIR`"),
        ("--data-dir x", "is for `--data mnist`"),
        ("--tol 0", "`tol` must lie"),
        ("--temperature 0", "`temperature` must be positive"),
        ("--classes all --data angles", "needs images"),
        ("--classes all --depth 2 --n-train 30", "1 for K classes, got 2"),
        ("--learning-rate 9999 --steps 50", "diverged"),
    ],
)
def test_what_cannot_be_run_is_one_message(arguments, message) -> None:
    done = run(*QUICK, *arguments.split())
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_certificate_above_its_tolerance_has_its_exit_code() -> None:
    done = run(*QUICK, "--tol", "1e-17", "--steps", "0")
    assert done.exit_code == 4
    assert "INACCURATE: inaccurate: the weights miss" in done.stderr
