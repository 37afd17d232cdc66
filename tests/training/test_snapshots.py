"""Copies of a network at chosen times of its training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from implicit_bias import DeepLinear, TrainingSettings, train
from implicit_bias.training import NetworkSnapshots, logarithmic_steps

X, Y = np.array([[1.0, 0.5], [-0.5, 1.0], [0.2, -1.0]]), np.array([1.0, -1.0, 1.0])


def weights_after(n_steps: int) -> torch.Tensor:
    network = DeepLinear(2)
    settings = TrainingSettings(schedule=((n_steps, 0.1),), batch_size=0)
    train(network, X, Y, None, settings=settings)
    return network.zeta().detach()


def test_a_copy_is_the_network_of_a_run_that_ends_there() -> None:
    network = DeepLinear(2)
    snapshots = NetworkSnapshots(network, [0, 1, 40])
    settings = TrainingSettings(schedule=((40, 0.1),), batch_size=0)
    train(network, X, Y, None, settings=settings, callback=snapshots)
    assert snapshots.steps == [0, 1, 40]
    for step, then in snapshots:
        wanted = weights_after(step) if step else DeepLinear(2).zeta()
        assert torch.equal(then.zeta(), wanted)


def test_a_step_without_a_report_is_taken_at_the_next_one() -> None:
    snapshots = NetworkSnapshots(DeepLinear(2), [3, 4, 20, 99])
    for step in (0, 5, 5, 10, 30):
        snapshots(step, 30, 0.0)
    assert snapshots.steps == [5, 30]
    snapshots.take(30)
    assert len(snapshots) == 2


@pytest.mark.parametrize(
    ("n_steps", "n", "wanted"),
    [(1000, 4, [0, 10, 100, 1000]), (1, 5, [0, 1]), (2, 4, [0, 1, 2]), (16, 2, [0, 16])],
)
def test_steps_are_spread_by_equal_factors(n_steps, n, wanted) -> None:
    assert logarithmic_steps(n_steps, n) == wanted


@pytest.mark.parametrize(("n_steps", "n"), [(0, 3), (5, 1)])
def test_no_steps_cannot_be_spread(n_steps, n) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        logarithmic_steps(n_steps, n)
