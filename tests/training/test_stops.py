"""Runs that stand still: each says since when and why, and the verdict says it too."""

from __future__ import annotations

from pkgutil import resolve_name

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.networks import DeepReLU

RNG = np.random.default_rng(4)
X = RNG.normal(size=(8, 2))
COIN = np.where(RNG.random(8) < 0.5, -1.0, 1.0)


def flat(network: torch.nn.Module) -> dict[str, np.ndarray]:
    return {"weights": torch.cat([p.detach().flatten() for p in network.parameters()]).numpy()}


def run(network, X, y, *, trainer="constant", rate=None, steps=200, **further):
    settings = ib.TrainingSettings(
        trainer=trainer, batch_size=0, schedule=((steps, rate),), **further
    )
    return ib.train(network.double(), X, y, settings=settings, observer=flat)


def stands_still(trajectory) -> bool:
    """Whether the weights themselves stay in the last quarter of the steps."""
    weights, end = trajectory.observed["weights"], trajectory.observed["weights"][-1]
    last = trajectory.step >= 0.75 * trajectory.step[-1]
    return bool(np.abs(weights[last] - end).max() <= 1e-6 * np.linalg.norm(end))


def log_loss(w1: np.ndarray, w2: np.ndarray) -> float:
    """Of a two-layer ReLU network, by the definition."""
    return float(np.log(np.log1p(np.exp(-COIN * (np.maximum(X @ w1.T, 0) @ w2.ravel()))).mean()))


def slopes(w1: np.ndarray, w2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of `log_loss`, by hand: -sum_n q_n y_n df(x_n), and df by the rule for two layers."""
    open_ = X @ w1.T > 0
    margins = COIN * ((X @ w1.T * open_) @ w2.ravel())
    q = 1 / (1 + np.exp(margins)) / np.log1p(np.exp(-margins)).sum()
    by_unit = -(q * COIN)[:, None] * open_
    return by_unit.T @ X * w2.reshape(-1, 1), (by_unit * (X @ w1.T)).sum(axis=0).reshape(w2.shape)


@pytest.mark.parametrize(("trainer", "seed"), [("normalised", 4), ("normalised", 2), ("sign", 2)])
def test_a_trainer_that_moves_no_more_says_so_with_the_slope_that_it_leaves(trainer, seed) -> None:
    network = ib.ReLU(2, 3, random_state=seed)
    trajectory = run(network, X, COIN, trainer=trainer, steps=200)
    assert stands_still(trajectory)
    assert f"'{trainer}' moves them no more" in trajectory.stopped
    w = [p.detach().numpy() for p in network.parameters()]
    g = slopes(*w)
    size, length = (np.sqrt(sum((one**2).sum() for one in each)) for each in (g, w))
    assert size * length > 0.01 and f"weights is {size * length:.2g}," in trajectory.stopped
    # What it says of a short step is so.
    share = 6e-6
    stepped = log_loss(*(a - share * length / size * b for a, b in zip(w, g, strict=True)))
    falls = log_loss(*w) - stepped > 0.5 * share * length * size
    assert ("and a short step" in trajectory.stopped) == falls
    assert ("at a kink" in trajectory.stopped) == (not falls)
    # Since the step that it names nothing has moved, and before it has.
    since = int(trajectory.stopped.partition("since step ")[2].partition(":")[0])
    (row,) = np.flatnonzero(trajectory.step == since)
    away = np.abs(trajectory.log_loss - trajectory.log_loss[-1])
    moved = np.abs(trajectory.weight_norm / trajectory.weight_norm[-1] - 1)
    assert max(away[row:].max(), moved[row:].max()) <= 1e-6
    assert max(away[row - 1], moved[row - 1]) > 1e-6


def test_a_loss_with_a_least_value_is_told_in_the_same_words() -> None:
    find_stop = resolve_name("implicit_bias.training.stops:find_stop")
    data = resolve_name("implicit_bias.networks.placed_data:GatedData")
    network = ib.DeepLinear.from_weights([[1.0, 2.0]])
    settings = ib.TrainingSettings(trainer="newton", loss="squared")
    stop = find_stop(network, data(torch.tensor(X), torch.tensor(COIN), None), settings, 2.0, 3)
    residual = X @ [1.0, 2.0] - COIN
    # In the unit of the first loss.
    slope = np.linalg.norm(residual @ X) / len(X) / 2.0 * np.sqrt(5)
    assert stop.stuck and f"weights is {slope:.2g}, and a short step" in stop.text


def test_networks_that_no_step_moves_say_that_no_score_depends_on_them(caplog) -> None:
    closed = ib.ReLU.from_weights([[-1.0, -1.0]], [1.0])
    for network in (closed, ib.DeepLinear.from_weights([[0.0, 0.0]], [[0.0]])):
        caplog.clear()
        trajectory = run(network, np.abs(X), COIN, rate=0.1)
        assert "no score depends on the weights" in trajectory.stopped
        assert "since step 0" in trajectory.stopped
        assert len(caplog.records) == 1 and "training has stopped" in caplog.text


def test_steps_that_are_too_short_are_called_so() -> None:
    trajectory = run(ib.DeepLinear(2), X, COIN, rate=1e-9)
    assert "steps are too short" in trajectory.stopped and "larger learning rate" in (
        trajectory.stopped
    )


@pytest.mark.parametrize(("rate", "seed"), [(1e30, 0), (1e4, 0), (1e4, 1), (1e3, 0)])
def test_no_larger_rate_is_advised_where_a_step_has_jumped(rate: float, seed: int) -> None:
    labels = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    best = ib.solve_linear_svm(X, labels).require().zeta.ravel()

    def off(**settings) -> tuple[float, str]:
        network = ib.DeepLinear(2, hidden_widths=(), random_state=seed)
        trajectory = run(network, X, labels, **settings)
        w = trajectory.observed["weights"][-1]
        return 1 - w @ best / np.linalg.norm(w) / np.linalg.norm(best), trajectory.stopped

    jumped, stopped = off(rate=rate)
    assert "larger" not in stopped and "begin again at a smaller learning rate" in stopped
    # Both ways out lead nearer to the limit.
    assert off(rate=1.0)[0] < jumped
    assert off(trainer="normalised")[0] < min(jumped, 0.002)


def test_a_rate_that_has_become_too_small_is_not_called_too_large() -> None:
    labels = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    settings = ib.TrainingSettings(batch_size=0, schedule=((100, 0.5), (1000, 1e-12)))
    trajectory = ib.train(ib.DeepLinear(2).double(), X, labels, settings=settings)
    assert trajectory.loss[-1] < 0.2 * trajectory.loss[0]
    assert "give a larger learning rate" in trajectory.stopped


def test_a_loss_at_its_least_value_is_at_rest_and_warns_of_nothing(caplog) -> None:
    for loss in ("logistic", "squared"):
        trajectory = run(ib.DeepLinear(1), [[1.0], [2.0]], [1.0, -1.0], rate=0.3, loss=loss)
        assert "the slope of the loss is 0" in trajectory.stopped
    decayed = run(ib.DeepLinear(2), X, COIN, rate=0.3, weight_decay=0.1)
    assert "in balance" in decayed.stopped
    teacher = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    ended = run(ib.DeepLinear(2), X, teacher, trainer="annealed", steps=600)
    assert "along the weights alone" in ended.stopped
    assert caplog.records == []


@pytest.mark.parametrize("trainer", ["constant", "normalised", "momentum", "sign", "adam"])
def test_runs_that_go_on_have_not_stopped(trainer) -> None:
    teacher = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    rate = 0.1 if trainer == "constant" else None
    trajectory = run(ib.DeepLinear(2), X, teacher, trainer=trainer, rate=rate, steps=60)
    assert not stands_still(trajectory) and trajectory.stopped == ""


def test_why_it_stopped_is_saved_and_told_of_each_of_several_networks(tmp_path) -> None:
    settings = ib.TrainingSettings(batch_size=0, schedule=((20, 0.1),))
    networks = [DeepReLU(2, (3,), random_state=seed) for seed in (0, 1)]
    with torch.no_grad():
        for weight in networks[1].parameters():
            weight.zero_()
    going, stopped = ib.train_many(networks, X, COIN, settings=settings)
    assert going.stopped == "" and "no score depends" in stopped.stopped
    stopped.save(tmp_path / "path.safetensors")
    assert ib.Trajectory.load(tmp_path / "path.safetensors").stopped == stopped.stopped
    assert stopped.to_dict()["stopped"] == stopped.stopped


def test_a_verdict_names_why_its_network_stands_still_and_asks_for_no_more_steps(tmp_path) -> None:
    settings = {"learning_rate": 1e-9, "trainer": "constant", "steps": 50}
    y = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    network = ib.run("linear", X=X, y=y, X_val=X, y_val=y, **settings).network
    with torch.no_grad():
        y = np.sign(network(torch.tensor(X).to(next(network.parameters()))).numpy())
    # Of labels that it has wrong, and of those that it has right, far from their limit.
    for labels, word in ((-y, "NOT SEPARATED"), (y, "NOT THERE YET")):
        report = ib.run("linear", X=X, y=labels, X_val=X, y_val=labels, **settings)
        stopped = report.trajectory.stopped
        assert report.verdict.word == word and "steps are too short" in stopped
        assert stopped in report.verdict.sentence and "`--steps`" not in report.verdict.sentence
    report.save(tmp_path)
    assert stopped in ib.load(tmp_path).verdict.sentence


def test_weights_whose_squares_overflow_end_in_a_verdict_and_no_error() -> None:
    y = np.where(X @ [1.0, 2.0] > 0, 1.0, -1.0)
    given = {"trainer": "constant", "learning_rate": 1e300, "steps": 50}
    report = ib.run("linear", X=X, y=y, X_val=X, y_val=y, **given)
    assert report.verdict.word == "DIVERGED" and "overflows" in report.verdict.sentence
