"""The least last bias: a closed form on one ray, and cvxpy on other data."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias.limits.relu import LeastBias, solve_least_bias
from tests.commands import home

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


def test_the_other_labels_need_the_opposite_bias_and_the_signs_of_the_outputs_are_kept() -> None:
    found = solve_least_bias(network([[3.0, 4.0], [1.0, 1.0]], [0.0, 0.5], 0.0), RAY, [-1.0, 1.0])
    assert found.bias == pytest.approx(-3) and found.gap < 1e-9
    assert found.signs.tolist() == [1.0, 1.0]


def test_labels_that_alternate_on_a_ray_have_no_bias_in_these_cells() -> None:
    X = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    found = solve_least_bias(network([[1.0, 1.0]], [1.0], 0.0), X, [1.0, -1.0, 1.0])
    assert np.isnan(found.bias) and np.isnan(found.units).all()
    assert (found.lower_bound, found.residual, found.gap) == (0.0, np.inf, np.inf)


def test_the_gap_is_relative_to_the_bound_and_none_without_one() -> None:
    for bias, bound, gap in ((3, 2, 0.5), (-0.5, 0.25, 1), (0, 0, 0), (1, 0, np.inf)):
        found = LeastBias(bias, bound, 0.0, np.zeros((1, 2)), np.ones(1), "")
        assert found.gap == gap


def test_answers_of_the_solver_are_measured_by_what_they_are(monkeypatch) -> None:
    """Any answer is a network of its own margins, and multipliers with their own residual."""
    program, asked = home(LeastBias).linear_program, []

    def answered(cost, left, right, **how):
        asked.append(left)
        found = program(cost, left, right, **how)
        marginals = -np.abs(change * rng.normal(size=len(left)))
        return SimpleNamespace(x=times * found.x, ineqlin=SimpleNamespace(marginals=marginals))

    monkeypatch.setattr(home(LeastBias), "linear_program", answered)
    y, inner = np.array([1.0, -1.0]), network([[3.0, 4.0], [1.0, -1.0]], [-2.0, 1.0], 5.0)
    cases = [(1.0, 1.0, seed) for seed in range(12)]
    for times, change, seed in (*cases, (2.0, 1.0, 0), (0.5, 0.0, 0), (0.0, 0.0, 0)):
        rng = np.random.default_rng(seed)
        found = solve_least_bias(inner, RAY, y)
        rows = asked.pop()[:, :-2]
        m = np.abs(change * np.random.default_rng(seed).normal(size=len(rows)))
        terms = np.abs(rows).T @ m
        residual = np.abs(rows.T @ m).max() / terms.max() if change else 0.0
        assert found.residual == pytest.approx(residual)
        bound = m[:2].sum() / abs(m[0] - m[1]) if change else 0.0
        assert found.lower_bound == pytest.approx(bound)
        if not times:  # margins of 0
            assert np.isnan(found.bias)
            continue
        margins = y * (np.maximum(RAY @ found.units.T, 0) @ found.signs + found.bias)
        assert found.bias == pytest.approx(3) and margins.min() == pytest.approx(1)


def test_networks_without_a_last_bias_are_refused() -> None:
    plain = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1, bias=False)).double()
    with pytest.raises(ValueError, match="`network` must have two layers, one output and a bias"):
        solve_least_bias(plain, RAY, [1.0, -1.0])
    several = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    deep = nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(), nn.Linear(3, 3), nn.ReLU(),
                         nn.Linear(3, 1)).double()  # fmt: skip
    for other in (several, deep):
        with pytest.raises(ValueError, match="`network` must have two layers, one output"):
            solve_least_bias(other, RAY, [1.0, -1.0])
