"""Margins of a module and their gradients, beside those of torch and of formulas."""

from __future__ import annotations

import dataclasses
import pkgutil

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd.functional import jacobian

from implicit_bias.networks.recognition import take_subject

MarginRows = pkgutil.resolve_name("implicit_bias.measures.fit.margin_rows:MarginRows")
RNG = np.random.default_rng(0)
X, GATES = RNG.normal(size=(5, 3)), RNG.integers(1, 3, (5, 3)).astype(float)
SIGNS = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
Y = {1: SIGNS, 3: np.eye(3)[[0, 2, 1, 1, 0]]}
WAYS = {"alone": {}, "together": {"by_sample": False}, "once": {"twice": False}}


class TwoLayers(torch.nn.Module):
    """ReLU units behind gated inputs, a weight of no use and an activation of no use."""

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        rng = np.random.default_rng(n_outputs)
        self.below, self.idle, self.above = (
            torch.nn.Parameter(torch.tensor(rng.normal(size=shape)))
            for shape in ((4, 3), (2,), (n_outputs, 4))
        )
        self.calls = 0

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        self.calls += 1
        z = (X * gates) @ self.below.T
        torch.relu(-z)
        return torch.relu(z) @ self.above.T


def margins_of(n_outputs: int, below: Tensor, above: Tensor, opened: Tensor) -> Tensor:
    """Margins (R,) with gates (n, 4), by their formula."""
    scores = (opened * (torch.tensor(X * GATES) @ below.T)) @ above.T
    y = torch.tensor(Y[n_outputs])
    if n_outputs == 1:
        return y * scores[:, 0]
    return ((y * scores).sum(1, keepdim=True) - scores)[y == 0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gradients_are_those_of_the_formula_with_any_gates(n_outputs, way) -> None:
    network = TwoLayers(n_outputs)
    subject = take_subject(network, X, Y[n_outputs], GATES)
    rows = MarginRows(dataclasses.replace(subject, **WAYS[way]))
    below, above = network.below.detach(), network.above.detach()
    z = torch.tensor(X * GATES) @ below.T

    def gradients(opened: Tensor) -> Tensor:
        of = jacobian(
            lambda *weights: margins_of(n_outputs, *weights, opened), (below, above),
            create_graph=True,
        )  # fmt: skip
        nothing = torch.zeros(len(of[0]), 2)
        return torch.cat([of[0].flatten(1), nothing, of[1].flatten(1)], dim=1)

    opened = (z > 0).double()
    G = gradients(opened)
    every, direction = torch.arange(len(G)), torch.tensor(RNG.normal(size=G.shape[1]))
    lam = torch.tensor(RNG.random(len(G)))
    torch.testing.assert_close(rows.margins, margins_of(n_outputs, below, above, opened))
    for _ in range(2):  # nothing is used up
        torch.testing.assert_close(rows.gradients(every), G)
        torch.testing.assert_close(rows.slopes(direction), G @ direction)
        torch.testing.assert_close(rows.combined(lam), lam @ G)
    assert rows.gradients(every[:0]).shape == (0, G.shape[1])
    parts = rows.named(direction)
    assert {name: part.shape for name, part in parts.items()} == {
        name: p.shape for name, p in network.named_parameters()
    }
    torch.testing.assert_close(torch.cat([p.flatten() for p in parts.values()]), direction)
    if way == "once":
        assert rows.gates == rows.kinks == []
        return
    # Of the activation of no use, and of the other one.
    shape = (5, 4) if way == "alone" else (1, 20)
    for found, own in zip(rows.gates, (1 - opened, opened), strict=True):
        assert torch.equal(found, own.reshape(shape))
    for some in ((torch.rand(5, 4) < 0.5).double(), opened):
        gates = [rows.of_rows(c.reshape(shape), every) for c in (opened, some)]
        torch.testing.assert_close(rows.gradients(every, gates), gradients(some))
        slopes, by_gate = rows.gate_slopes(every, gates, direction)
        torch.testing.assert_close(slopes, gradients(some) @ direction)
        of_gates = jacobian(lambda c: gradients(c) @ direction, some)
        if way == "alone":
            of_gates = of_gates[every, rows.samples]
        torch.testing.assert_close(by_gate[1], of_gates.reshape(by_gate[1].shape))
        assert not by_gate[0].any()


def test_gradients_of_samples_that_are_alone_are_had_at_once() -> None:
    subject = take_subject(TwoLayers(1), X.repeat(20, 0), SIGNS.repeat(20), GATES.repeat(20, 0))
    rows = MarginRows(subject)
    rows.gradients(torch.arange(2))
    module = subject.network.module
    before = module.calls
    rows.gradients(torch.arange(100))
    assert module.calls == before + 1


class OfWeights(torch.nn.Module):
    """Scores that are linear in the positive parts of weights."""

    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [-1.0, 0.5]]).double())

    def forward(self, X: Tensor) -> Tensor:
        return X @ torch.relu(self.w).sum(0)


class OneByOne(OfWeights):
    """The same of products with inputs, one sample after the other."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.stack([torch.relu(self.w @ x).sum() for x in X])


class Masked(OfWeights):
    """The same with inputs of units that are left out, at minus infinity."""

    def forward(self, X: Tensor) -> Tensor:
        z = (X @ self.w.T).masked_fill(torch.tensor([False, True]), -torch.inf)
        return torch.relu(z).sum(1)


class Branching(OfWeights):
    """Units that are told apart by their values."""

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(X @ self.w.T).sum(1) if X.sum() > 0 else X @ self.w[0]


@pytest.mark.parametrize("network, n_gates", [(OfWeights(), 0), (OneByOne(), 0), (Masked(), 0),
                                              (Branching(), 1)])  # fmt: skip
@pytest.mark.parametrize("n", [1, 2, 3])
def test_activations_whose_inputs_are_not_those_of_samples_are_left_as_they_are(
    network, n_gates, n
) -> None:
    inputs = torch.tensor(np.abs(X[:n, :2]) + 1)
    rows = MarginRows(take_subject(network, inputs, np.ones(n)))
    expected = jacobian(lambda w: torch.func.functional_call(network, {"w": w}, inputs), network.w)
    torch.testing.assert_close(rows.gradients(torch.arange(n)), expected.flatten(1))
    if n > 1:
        assert len(rows.gates) == n_gates


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_kinks_are_where_inputs_are_small_beside_the_others(scale) -> None:
    # Their median is 1, but for the units without weights.
    w = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.03, -0.04, 0.06, 1.0, -1.0, 2.0, 3.0]).double()
    network = torch.nn.Sequential(
        torch.nn.Linear(1, 11, bias=False), torch.nn.ReLU(), torch.nn.Linear(11, 1, bias=False)
    ).double()
    with torch.no_grad():
        network[0].weight.copy_(scale * w[:, None])
        network[2].weight.fill_(1.0)
    (kinks,) = MarginRows(take_subject(network, [[1.0]], [1])).kinks
    assert torch.equal(kinks, w[None].abs() <= 0.05)
