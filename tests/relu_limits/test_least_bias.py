"""The least last bias: a closed form on one ray, and cvxpy on other data."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias.limits.relu import solve_least_bias

RAY = np.array([[0.6, 0.8], [1.2, 1.6]])


def network(units, outputs, bias, first=None, act=nn.ReLU) -> nn.Sequential:
    """Two layers of given weights."""
    units = torch.tensor(units, dtype=torch.float64)
    n_units, n_inputs = units.shape
    inner = nn.Linear(n_inputs, n_units, bias=first is not None)
    layers = nn.Sequential(inner, act(), nn.Linear(n_units, 1)).double()
    with torch.no_grad():
        layers[0].weight.copy_(units)
        layers[2].weight.copy_(torch.tensor(np.array([outputs])))
        layers[2].bias.fill_(bias)
        if first is not None:
            layers[0].bias.copy_(torch.tensor(first))
    return layers


def test_a_ray_with_both_labels_needs_three_times_the_margin() -> None:
    # Units give a and 2 a: a + b >= 1 and -2 a - b >= 1, so a <= -2 and b >= 3.
    found = solve_least_bias(network([[3.0, 4.0], [1.0, -1.0]], [-2.0, 1.0], 5.0), RAY, [1.0, -1.0])
    assert found.bias == pytest.approx(3) and found.lower_bound == pytest.approx(3)
    assert found.gap < 1e-9 and found.residual < 1e-9
    assert "samples 0 and 1" in found.needed and "on one ray" in found.needed
    units = np.maximum(RAY @ found.units.T, 0) @ found.signs
    assert units == pytest.approx([-2, -4])


def test_a_first_bias_tells_the_samples_of_a_ray_apart() -> None:
    # Two units of opposite signs, one of them open at the second sample alone.
    inner = network([[0.6, 0.8], [0.6, 0.8]], [1.0, -4.0], 1.0, first=[0.0, -1.5])
    found = solve_least_bias(inner, RAY, [1.0, -1.0])
    assert found.bias == pytest.approx(0, abs=1e-9) and found.lower_bound < 1e-9
    assert found.needed == ""


@pytest.mark.parametrize("act", [nn.ReLU, nn.LeakyReLU])
def test_other_data_have_the_optimum_of_cvxpy(act) -> None:
    rng = np.random.default_rng(0)
    X, W, a = rng.normal(size=(10, 2)), rng.normal(size=(6, 2)), np.resize([1.0, -1.0], 6)
    slope = 0.0 if act is nn.ReLU else 0.01
    units = np.where(X @ W.T > 0, 1.0, slope) * (X @ W.T) @ a
    # The labels are those of a network with a bias, which tells two samples of a ray apart.
    lowest = np.argmin(units)
    X, units = np.vstack([X, X[lowest] / 5]), np.append(units, units[lowest] / 5)
    bias = -units[lowest] / 2
    y = np.sign(units + bias)
    found = solve_least_bias(network(W, a, bias, act=act), X, y)
    gates = X @ W.T > 0
    u, b = cp.Variable(W.shape), cp.Variable()
    scores = cp.multiply(np.where(gates, 1.0, slope), X @ u.T) @ a + b
    kept = cp.multiply(np.where(gates, 1.0, -1.0), X @ u.T) >= 0
    program = cp.Problem(cp.Minimize(cp.abs(b)), [cp.multiply(y, scores) >= 1, kept])
    expected = program.solve(solver="CLARABEL")
    assert expected > 0.1
    assert abs(found.bias) == pytest.approx(expected, rel=1e-6)
    assert found.lower_bound == pytest.approx(expected, rel=1e-6) and found.gap < 1e-8
    z = X @ found.units.T
    margins = y * (np.where(z > 0, 1, slope) * z @ a + found.bias)
    assert margins.min() == pytest.approx(1)
    assert "on one ray" in found.needed


def test_networks_without_a_last_bias_are_refused() -> None:
    plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False)).double()
    with pytest.raises(ValueError, match="`network` must have two layers, one output and a bias"):
        solve_least_bias(plain, RAY, [1.0, -1.0])
