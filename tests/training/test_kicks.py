"""Runs that rest before they have separated the data: kicked off, and back where that is worse."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from experiments import starts
from implicit_bias import DeepLinear, FReLU, TrainingSettings, train, train_many
from implicit_bias.training import kicks
from implicit_bias.training.annealed import Annealed
from implicit_bias.training.data import place_data
from implicit_bias.training.kicks import KICKS, keep_best, kicked, no_kicks
from implicit_bias.training.stacked import OneRun

# Each unit sees one sample, x = (1, 2) or (2, 0) of label 1 and -1, and the second is dead: a
# saddle that no gradient leaves. Both samples at margin 1 take products of length 1 / |x|.
X, Y, GATES = np.array([[1.0, 2.0], [2.0, 0.0]]), np.array([1.0, -1.0]), np.eye(2)
OPTIMUM = 1 / np.sqrt(5) + 1 / 2
PATIENCE = 40


@pytest.fixture
def impatient(monkeypatch) -> None:
    """Rests of 200 steps take long to wait for."""
    monkeypatch.setattr(kicks, "PATIENCE", PATIENCE)


def dead_unit(dtype: torch.dtype = torch.float64, second: float = 0.0) -> FReLU:
    """Both units, the second's weights (-1, 0) and 1 times `second`."""
    w1, w2 = np.array([[1.0, 0.0], [-second, 0.0]]), np.array([[1.0, second]])
    return FReLU.from_weights(w1, w2).to(dtype)


def settings_for(steps: int, **changes: Any) -> TrainingSettings:
    fixed = {"trainer": "annealed", "schedule": ((steps, None),), "n_checkpoints": 3}
    return TrainingSettings(**fixed | changes)


def weights_of(network: torch.nn.Module) -> np.ndarray:
    return torch.cat([p.detach().flatten() for p in network.parameters()]).double().numpy()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_run_at_a_saddle_that_no_gradient_leaves_comes_to_the_limit(dtype) -> None:
    network = dead_unit(dtype)
    train(network, X, Y, GATES, settings=settings_for(PATIENCE // 2))
    assert not network.w1[1].any()
    trajectory = train(network, X, Y, GATES, settings=settings_for(PATIENCE + 160))
    least = 0.9999 if dtype is torch.float64 else 0.999
    assert least < trajectory.normalised_margin[-1] * OPTIMUM < 1 + 1e-6


def test_a_deep_gated_network_that_rests_beside_the_data_separates_them() -> None:
    given = starts.problem("deep-dgn gaussian", 3, 4)
    fill, scale = starts.INITS["tiny"]
    network = given.network(init=fill, init_scale=scale, random_state=403)
    trajectory = train(network, *given.train, settings=settings_for(400))
    assert trajectory.smallest_margin[1] < 0 < trajectory.smallest_margin[-1]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("at", [PATIENCE // 2, PATIENCE + 2, PATIENCE + 12])
def test_a_run_that_is_stopped_about_its_kick_goes_on_to_the_bit(tmp_path, at) -> None:
    def stop(step: int, n_steps: int, log_loss: float) -> None:
        if step == at:
            raise KeyboardInterrupt

    settings = settings_for(2 * PATIENCE)
    whole, stopped, resumed = dead_unit(), dead_unit(), dead_unit()
    expected = train(whole, X, Y, GATES, settings=settings)
    file = tmp_path / "run"
    part = train(stopped, X, Y, GATES, settings=settings, state=file, callback=stop)
    assert part.step[-1] == at
    found = train(resumed, X, Y, GATES, settings=settings, state=file, resume=True)
    np.testing.assert_array_equal(weights_of(resumed), weights_of(whole))
    np.testing.assert_array_equal(found.log_loss, expected.log_loss)
    assert expected.smallest_margin[-1] > 0


@pytest.mark.usefixtures("impatient")
def test_a_run_is_kicked_alike_alone_and_among_others_which_do_not_feel_it() -> None:
    networks = [dead_unit(), dead_unit(second=0.7), dead_unit()]
    alone = copy.deepcopy(networks)
    settings = settings_for(PATIENCE + 20)
    train_many(networks, X, Y, GATES, settings=settings)
    for together, network in zip(networks, alone, strict=True):
        train(network, X, Y, GATES, settings=settings)
        np.testing.assert_allclose(weights_of(together), weights_of(network), rtol=1e-7, atol=1e-9)
    assert networks[0].w1[1].any()


def test_a_kick_has_its_length_and_another_direction_every_time() -> None:
    state = {"point": torch.full((2, 50), 3.0), "log_loss": torch.zeros(2).double()}
    state |= no_kicks(state["point"])
    both, first = np.array([True, True]), np.array([True, False])
    assert not keep_best(state, both).any()
    moved = [kicked(state, both, both) - 3, kicked(state, both, first) - 3]
    np.testing.assert_allclose(moved[0].norm(dim=1), 0.1 * 3 * np.sqrt(50), rtol=1e-5)
    assert torch.equal(moved[0][0], moved[0][1])
    cosine = float(moved[0][0] @ moved[1][0] / moved[0][0].norm() / moved[1][0].norm())
    assert abs(cosine) < 0.5
    assert not moved[1][1].any()
    assert state["kicks"].tolist() == [2, 1]


@pytest.mark.usefixtures("impatient")
def test_what_nothing_separates_is_never_worse_than_it_was_and_is_left_alone_at_last() -> None:
    # Labels that no linear predictor has; at a saddle of the loss the three layers rest at 0.
    rng = np.random.default_rng(1)
    inputs, labels = rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], size=12)
    network = DeepLinear(2, hidden_widths=(3, 3), random_state=0)
    data = place_data(network, inputs, labels, None)
    stepper = Annealed(OneRun(network), "logistic", len(labels))

    def loss() -> float:
        scores = network(data.X, None).detach()
        return float(torch.nn.functional.softplus(-data.y * scores).mean().log())

    losses, lost = [], 0
    for _ in range((KICKS + 2) * PATIENCE):
        stepper.step(data, None)
        losses.append(loss())
        lost += float(stepper.state["log_loss"]) > losses[-1] + 1e-6
    assert np.all(np.diff(losses) <= 1e-12)
    assert not bool(stepper.state["separated"])
    assert int(stepper.state["kicks"]) == KICKS
    assert lost > KICKS
    assert float(stepper.state["log_loss"]) == pytest.approx(losses[-1], abs=1e-12)


def test_a_run_whose_last_kick_led_to_worse_goes_back() -> None:
    network = dead_unit()
    data = place_data(network, X, Y, GATES)
    stepper = Annealed(OneRun(network), "logistic", 2)
    for _ in range(20):
        stepper.step(data, None)
    best = stepper.state["point"].clone()
    keep_best(stepper.state, np.array([True]))
    stepper.state["point"] = best + 0.2
    stepper._note(kicks=np.full(1, float(KICKS)), log_loss=np.zeros(1))
    stepper._leave_rests(data, np.array([True]))
    assert torch.equal(stepper.state["point"], best)
    assert float(stepper.state["log_loss"]) == float(stepper.state["best_log_loss"])
    assert float(stepper.state["kicks"]) == KICKS
