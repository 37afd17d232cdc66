"""The trainer that rounds kinks: it ends at certified local optima, alone, together and resumed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from implicit_bias import GLN, DeepLinear, ReLU, TrainingSettings, train, train_many
from implicit_bias.datasets import make_orthosep
from implicit_bias.limits import relu_local_limit
from implicit_bias.networks import DeepReLU
from implicit_bias.training import GatedData, StackedNetworks, make_stepper


def diamond() -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(1).uniform(-1, 1, (40, 2))
    y = np.where(np.abs(points).sum(axis=1) < 0.8, 1.0, -1.0)
    return np.column_stack([points, np.ones(40)]), y


def settings(n_steps: int, trainer="smoothed") -> TrainingSettings:
    return TrainingSettings(trainer=trainer, schedule=((n_steps, None),), n_checkpoints=8)


def start(seed: int, n_units: int = 40, **other) -> ReLU:
    return ReLU(3, n_units, init_scale=0.3, random_state=seed, **other)


@pytest.mark.long
def test_it_ends_at_its_own_certified_local_optimum() -> None:
    X, y = diamond()
    excess = {}
    for trainer in ("annealed", "smoothed"):
        network = start(0, 14)
        train(network, X, y, settings=settings(1500, trainer))
        limit = relu_local_limit(network, X, y)
        assert limit.gap < 1e-8
        excess[trainer] = limit.start_value / limit.value - 1
    # After 12,000 steps 2e-6 to 8e-5.
    assert 0 <= excess["smoothed"] < 0.01
    assert excess["smoothed"] < excess["annealed"]


def test_weights_of_float32_are_trained_as_well() -> None:
    X, y = make_orthosep(20, 3, random_state=0)
    network = start(0, 8, dtype=torch.float32)
    train(network, X, y, settings=settings(600))
    limit = relu_local_limit(network, X, y)
    assert limit.start_value / limit.value - 1 < 0.02
    assert network.w1.dtype == torch.float32


def test_gradients_are_those_of_autograd_at_any_depth_and_slope() -> None:
    X, y = make_orthosep(20, 3, random_state=0)
    batch = GatedData(torch.as_tensor(X), torch.as_tensor(y), None)
    for widths, slope in (([8], 0.0), ([6, 4, 5], 0.1)):
        networks = [DeepReLU(3, widths, slope=slope, random_state=seed) for seed in range(2)]
        stepper = make_stepper(StackedNetworks(networks), settings(100), len(y))
        stages, margins = np.array([2.0, 9.0]), np.array([0.4, 0.1])
        stepper._set(stage=stages, margin=margins)
        point = stepper._flat().requires_grad_()
        losses, gradient = stepper._evaluate(batch, point.detach())
        scores = stepper._scores(batch, point, 0.3 / (20 * 1.4**stages))
        beta = torch.as_tensor(20 * 1.4**stages / margins)[:, None]
        expected = torch.logsumexp(-beta * batch.y * scores, dim=1)
        torch.testing.assert_close(torch.as_tensor(losses), expected.detach())
        (by_autograd,) = torch.autograd.grad(expected.sum(), point)
        torch.testing.assert_close(gradient, by_autograd, rtol=1e-10, atol=1e-12)


def test_networks_trained_together_take_the_steps_of_each() -> None:
    X, y = diamond()
    together, alone = [start(seed, 12) for seed in range(3)], [start(seed, 12) for seed in range(3)]
    train_many(together, X, y, settings=settings(60))
    for one, other in zip(together, alone, strict=True):
        train(other, X, y, settings=settings(60))
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


def test_a_resumed_run_is_the_run_that_never_stopped(tmp_path) -> None:
    X, y = diamond()
    whole, parts = start(0, 12), start(0, 12)
    train(whole, X, y, settings=settings(300))

    def interrupt(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 120:
            raise KeyboardInterrupt

    file = tmp_path / "run"
    stopped = train(parts, X, y, settings=settings(300), callback=interrupt, state=file)
    assert not stopped.finished and 100 < stopped.step[-1] < 200
    train(parts, X, y, settings=settings(300), state=file, resume=True)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.long
def test_several_hidden_layers_are_trained_to_larger_margins() -> None:
    X, y = make_orthosep(20, 3, random_state=0)
    margins = []
    for n_steps in (60, 900):
        network = DeepReLU(3, (8, 6), init_scale=0.5, random_state=0)
        train(network, X, y, settings=settings(n_steps))
        with torch.no_grad():
            smallest = float((torch.tensor(y) * network(torch.tensor(X))).min())
            norm = float(sum((W**2).sum() for W in network.layers)) ** 0.5
        margins.append(smallest / norm**3)
    assert 0 < margins[0] < margins[1]


@pytest.mark.parametrize(
    ("network", "gates"), [(GLN(3, 2, 2), np.ones((40, 2), dtype=int)), (DeepLinear(3), None)]
)
def test_other_networks_are_refused(network, gates) -> None:
    X, y = diamond()
    with pytest.raises(ValueError, match="rounds the kinks of ReLU networks"):
        train(network, X, y, gates, settings=settings(5))
