"""Factors of per-sample gradients, layer by layer, beside automatic differentiation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from implicit_bias import GLN, DeepLinear, FReLU, ReLU, ShallowGLN
from implicit_bias.models.orthosep.network import BalancedReLU
from implicit_bias.models.relu.network import DeepReLU
from implicit_bias.training.data import place_data

N, D, H = 9, 5, 3
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(N, D)), np.sign(RNG.normal(size=N))
CONTEXTS, GATES = RNG.integers(0, 2, (N, H)), RNG.integers(0, 2, (N, H)).astype(float)
NETWORKS = {
    "gln": (GLN(D, H, 2), CONTEXTS),
    "gln, four layers": (GLN(D, H, 2, upper_widths=(4, 2)), CONTEXTS),
    "frelu": (FReLU(D, H), GATES),
    "frelu, three layers": (FReLU(D, H, upper_widths=(4,)), GATES),
    "linear": (DeepLinear(D), None),
    "deep linear": (DeepLinear(D, hidden_widths=(3, 4)), None),
    # The last two samples may be in contexts without a predictor.
    "shallow gln": (ShallowGLN(D, CONTEXTS[:-2]), CONTEXTS),
    "relu": (ReLU(D, 4), None),
    "deep relu": (DeepReLU(D, (8, 7, 6), random_state=3), None),
    "orthosep": (BalancedReLU(D, 6, init_scale=1.0), None),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_products_of_factors_are_the_gradients_of_single_scores(name) -> None:
    network, gates = NETWORKS[name]
    data = place_data(network, X, Y, gates)
    factors = network.gradient_factors(data.X, data.gates)
    parameters = list(network.parameters())
    assert len(factors) == len(parameters)
    norms = []
    for k in range(N):
        one = None if data.gates is None else data.gates[k : k + 1]
        score = network(data.X[k : k + 1], one)[0]
        gradients = torch.autograd.grad(score, parameters)
        for (outer, inner), gradient in zip(factors, gradients, strict=True):
            product = torch.outer(outer[k], inner[k])
            assert product.numel() == gradient.numel()
            torch.testing.assert_close(product.flatten(), gradient.flatten(), atol=1e-12, rtol=0)
        norms.append(math.sqrt(sum(float(g.square().sum()) for g in gradients)))
    assert np.median(norms) > 0.1


@pytest.mark.parametrize("name", [n for n in NETWORKS if n not in {"linear", "shallow gln"}])
def test_imbalance_is_a_conserved_quantity_of_the_gradient_of_any_function_of_scores(name) -> None:
    # Along w' = -grad, imbalance' = -2 (<w_in, grad_in> - <w_out, grad_out>) = 0 for every unit.
    network, gates = NETWORKS[name]
    data = place_data(network, X, Y, gates)
    parameters = list(network.parameters())
    objective = torch.sin(network(data.X, data.gates)).sum()
    flow = torch.autograd.grad(objective, parameters)
    imbalance = network.imbalance()
    assert float(imbalance.detach().abs().max()) > 1e-3 or name == "orthosep"
    live = 0.0
    for unit in range(len(imbalance)):
        of_unit = torch.autograd.grad(imbalance[unit], parameters, retain_graph=True,
                                      allow_unused=True)  # fmt: skip
        pairs = zip(of_unit, flow, strict=True)
        change = [float((a * b).sum()) for a, b in pairs if a is not None]
        assert sum(change) == pytest.approx(0, abs=1e-12)
        live = max(live, *map(abs, change))
    assert live > 1e-3
