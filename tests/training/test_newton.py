"""Newton steps: one for a square, the minimiser of least norm, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

import implicit_bias as ib
from implicit_bias.networks import SoftLabelHead

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.normal(size=12)
NEWTON = ib.TrainingSettings(trainer="newton", loss="squared", schedule=((3, None),))


def linear(seed: int = 0, n_inputs: int = 5) -> ib.DeepLinear:
    return ib.DeepLinear(n_inputs, random_state=seed)


def weights_of(network: torch.nn.Module) -> np.ndarray:
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()


def test_one_step_is_least_squares() -> None:
    network = linear()
    trajectory = ib.train(network, X, Y, settings=NEWTON)
    expected, (residual,), *_ = np.linalg.lstsq(X, Y, rcond=None)
    np.testing.assert_allclose(weights_of(network), expected, rtol=1e-9)
    assert trajectory.loss[1:] == pytest.approx(residual / 2 / len(Y), rel=1e-9)


def test_directions_without_curvature_stay_as_they_are() -> None:
    few, network = X[:3], linear()
    start = weights_of(network).copy()
    ib.train(network, few, Y[:3], settings=NEWTON)
    span = np.linalg.pinv(few) @ few
    expected = np.linalg.lstsq(few, Y[:3], rcond=None)[0] + start - span @ start
    np.testing.assert_allclose(weights_of(network), expected, atol=1e-9)


def test_a_head_on_soft_and_hard_labels_comes_to_its_certified_minimiser() -> None:
    labels, teacher = RNG.integers(3, size=12), RNG.normal(size=(12, 3))
    (limit,) = ib.heads.solve_exit_heads([X], labels, teacher=teacher, share=0.5, temperature=2.0)
    head = SoftLabelHead(3, 5, temperature=2.0)
    hard, soft = np.eye(3)[labels], softmax(teacher / 2.0, axis=1)
    gates = np.concatenate([0.5 * hard, 0.5 * soft], axis=1)
    settings = ib.TrainingSettings(trainer="newton", loss="excess", schedule=((12, None),))
    ib.train(head, X, np.zeros(12), gates, settings=settings)
    (weight,) = head.parameters()
    np.testing.assert_allclose(weight.detach().numpy(), limit.zeta, atol=1e-6)


def test_networks_side_by_side_each_take_their_own_steps() -> None:
    alone, together = [linear(seed) for seed in (1, 2)], [linear(seed) for seed in (1, 2)]
    for network in alone:
        ib.train(network, X[:3], Y[:3], settings=NEWTON)
    ib.train_many(together, X[:3], Y[:3], settings=NEWTON)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(weights_of(one), weights_of(other), rtol=1e-9)


def test_a_loss_that_is_not_convex_is_refused() -> None:
    network = ib.DeepLinear(5, hidden_widths=(3,), random_state=0)
    with pytest.raises(ValueError, match="convex in the weights, and this one is not"):
        ib.train(network, X, Y, settings=NEWTON)
