"""Networks that were read wrongly, or trained without a word of what went wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import implicit_bias as ib

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


class Surrogate(torch.autograd.Function):
    """z |z|, whose backward is that of the identity."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return z * z.abs()

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx, slope: Tensor) -> Tensor:
        return slope


class Pointwise(nn.Module):
    """A function of each hidden number."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, z: Tensor) -> Tensor:
        return self.function(z)


def two_layers(function) -> nn.Module:
    torch.manual_seed(0)
    first, second = nn.Linear(3, 8, bias=False), nn.Linear(8, 1, bias=False)
    return nn.Sequential(first, Pointwise(function), second).double()


class LogPeriodic(nn.Module):
    """Scores that double with the weights, and at no factor that is no power of two scale so."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, -0.3, 0.2], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        wave = torch.sin(2 * math.pi * torch.log2(self.w.norm()))
        return (x @ self.w) * (1 + 0.2 * wave)


def test_a_backward_that_is_not_the_derivative_of_its_forward_is_named_as_the_cause() -> None:
    network = two_layers(Surrogate.apply)
    # z |z| between two layers scales as a^3, whatever the backward says.
    with torch.no_grad():
        before = network(torch.from_numpy(X))
        longer = torch.func.functional_call(
            network, {k: 3 * p for k, p in network.named_parameters()}, torch.from_numpy(X)
        )
    assert torch.allclose(longer, 27 * before, rtol=1e-12)
    shown = str(ib.diagnose(network, X, Y))
    assert "a sum of terms" not in shown
    assert "its gradients are not theirs" in " ".join(shown.split()) and "surrogate" in shown
    faults = ib.check_network(network, X).faults
    assert any("not a surrogate" in fault for fault in faults)


def test_a_small_constant_under_a_root_is_no_sum_of_terms_of_one_degree() -> None:
    network = two_layers(lambda z: torch.sqrt(z**2 + 1e-16))
    shown = " ".join(str(ib.diagnose(network, X, Y)).split())
    assert "a sum of terms" not in shown
    assert "nearly of degree 2" in shown and "a small constant under a root" in shown
    # Both doors say the same of one network.
    found = ib.check_network(network, X)
    assert found.degree is None and "a small constant under a root" in found.faults[0]


def test_scores_that_only_double_with_their_weights_have_no_degree() -> None:
    found = ib.check_network(LogPeriodic(), X)
    assert found.degree is None
    assert len(found.faults) == 1 and "scores are not homogeneous" in found.faults[0]


def test_inputs_of_true_and_false_leave_a_linear_network_its_degree() -> None:
    for hidden in ((), (4,), (4, 2)):
        found = ib.check_network(ib.DeepLinear(3, hidden_widths=hidden), X > 0)
        assert found and found.degree == len(hidden) + 1
