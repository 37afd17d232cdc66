"""Networks that stall before they separate the data: restarts, and returns to the best weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from experiments import starts
from implicit_bias import DeepLinear, FReLU, ReLU, TrainingSettings, train, train_many
from implicit_bias.optim import Annealed
from implicit_bias.training import perturbed_best, record_best, restart_state
from tests.long import some_of

# Each unit sees one sample, x = (1, 2) or (2, 0) of label 1 and -1, and the second is dead: a
# saddle that no gradient leaves. Both samples at margin 1 take products of length 1 / |x|.
X, Y, GATES = np.array([[1.0, 2.0], [2.0, 0.0]]), np.array([1.0, -1.0]), np.eye(2)
OPTIMUM = 1 / np.sqrt(5) + 1 / 2
# Steps without a fall of log(loss) before a restart, and restarts at most.
PATIENCE, MAX_RESTARTS = 200, 3


def dead_unit(dtype: torch.dtype = torch.float64, second: float = 0.0) -> FReLU:
    """Both units, the second's weights (-1, 0) and 1 times `second`."""
    w1, w2 = np.array([[1.0, 0.0], [-second, 0.0]]), np.array([[1.0, second]])
    return FReLU.from_weights(w1, w2).to(dtype)


def settings_for(steps: int, **changes: Any) -> TrainingSettings:
    fixed = {"trainer": "annealed", "schedule": ((steps, None),), "n_checkpoints": 3}
    return TrainingSettings(**fixed | changes)


def weights_of(network: torch.nn.Module) -> np.ndarray:
    return torch.cat([p.detach().flatten() for p in network.parameters()]).double().numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_run_at_a_saddle_that_no_gradient_leaves_comes_to_the_limit(dtype) -> None:
    network = dead_unit(dtype)
    train(network, X, Y, GATES, settings=settings_for(PATIENCE // 2))
    assert not network.w1[1].any()
    trajectory = train(network, X, Y, GATES, settings=settings_for(PATIENCE + 160))
    least = 0.9999 if dtype is torch.float64 else 0.999
    assert least < trajectory.normalised_margin[-1] * OPTIMUM < 1 + 1e-6


def test_a_deep_gated_network_that_stalls_beside_the_data_separates_them() -> None:
    given = starts.problem("deep-dgn gaussian", 3, 4)
    fill, scale = starts.INITS["tiny"]
    network = given.network(init=fill, init_scale=scale, random_state=403)
    trajectory = train(network, *given.train, settings=settings_for(400))
    assert trajectory.smallest_margin[1] < 0 < trajectory.smallest_margin[-1]


@pytest.mark.parametrize("at", some_of([PATIENCE, PATIENCE + 4, PATIENCE + 16], one_in=3))
def test_a_run_that_is_stopped_about_its_restart_goes_on_to_the_bit(tmp_path, at) -> None:
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


def test_a_restart_is_the_same_alone_and_among_others_which_it_does_not_change() -> None:
    networks = [dead_unit(), dead_unit(second=0.7), dead_unit()]
    alone = copy.deepcopy(networks)
    settings = settings_for(PATIENCE + 20)
    train_many(networks, X, Y, GATES, settings=settings)
    for together, network in zip(networks, alone, strict=True):
        train(network, X, Y, GATES, settings=settings)
        np.testing.assert_allclose(weights_of(together), weights_of(network), rtol=1e-7, atol=1e-9)
    assert networks[0].w1[1].any()


def test_a_perturbation_has_its_length_and_another_direction_every_time() -> None:
    state = {"point": torch.full((2, 50), 3.0), "log_loss": torch.zeros(2).double()}
    state |= restart_state(state["point"])
    both, first = np.array([True, True]), np.array([True, False])
    assert not record_best(state, both).any()
    moved = [perturbed_best(state, both, both) - 3, perturbed_best(state, both, first) - 3]
    np.testing.assert_allclose(moved[0].norm(dim=1), 0.1 * 3 * np.sqrt(50), rtol=1e-5)
    assert torch.equal(moved[0][0], moved[0][1])
    cosine = float(moved[0][0] @ moved[1][0] / moved[0][0].norm() / moved[1][0].norm())
    assert abs(cosine) < 0.5
    assert not moved[1][1].any()
    assert state["n_restarts"].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("network", "seed"),
    some_of(
        [
            # At a saddle of the loss the three layers stay at 0.
            (DeepLinear(2, hidden_widths=(3, 3), random_state=0), 1),
            # The last restart leads to a worse minimum.
            (ReLU(2, 2, random_state=0), 2),
        ],
        one_in=2,
    ),
)
def test_a_network_that_never_separates_is_never_worse_than_before_and_ends_at_its_best(
    network, seed
) -> None:
    rng = np.random.default_rng(seed)
    inputs, labels = rng.normal(size=(12, 2)), rng.choice([-1.0, 1.0], size=12)
    X, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    optimiser = Annealed(network.parameters(), degree=network.degree, n_samples=len(labels))
    losses, worse = [], 0
    for _ in range((MAX_RESTARTS + 1) * PATIENCE + 60):
        optimiser.step(lambda: y * network(X))
        losses.append(float(torch.nn.functional.softplus(-y * network(X)).mean().log().detach()))
        state = optimiser.state["trainer"]
        worse += float(state["log_loss"]) > losses[-1] + 1e-6
    assert np.all(np.diff(losses) <= 1e-12)
    assert not bool(state["separated"])
    assert int(state["n_restarts"]) == MAX_RESTARTS
    assert worse > MAX_RESTARTS
    assert float(state["log_loss"]) == pytest.approx(losses[-1], abs=1e-12)
