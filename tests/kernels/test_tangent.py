"""Tangent kernels against automatic differentiation and against sums over pairs of paths."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from implicit_bias import DGN
from implicit_bias.gates import SoftGates
from implicit_bias.kernels import activation_kernel, empirical_ntk
from implicit_bias.networks import DeepGLN, DeepReLU

RNG = np.random.default_rng(3)
N, M = 6, 4


def jacobian(network: torch.nn.Module, X: np.ndarray, gates: np.ndarray | None) -> np.ndarray:
    """(n, weights) gradients of the scores."""
    data, rows = [None if a is None else torch.tensor(a) for a in (X, gates)], []
    for score in network(*data):
        parts = torch.autograd.grad(score, list(network.parameters()), retain_graph=True)
        rows.append(torch.cat([part.flatten() for part in parts]).numpy())
    return np.stack(rows)


@pytest.mark.parametrize(
    ("network", "gates", "gates2"),
    [
        (DGN(3, widths=(4, 2, 3)), RNG.uniform(size=(N, 9)), RNG.uniform(size=(M, 9))),
        (DGN(3, widths=()), np.ones((N, 0)), np.ones((M, 0))),
        (
            DeepGLN(3, widths=(4, 2), n_contexts=3),
            RNG.integers(0, 3, (N, 6)),
            RNG.integers(0, 3, (M, 6)),
        ),
        (DeepReLU(3, (4, 2)), None, None),
    ],
)
def test_layer_by_layer_it_is_that_of_automatic_differentiation(network, gates, gates2) -> None:
    X, X2 = RNG.normal(size=(N, 3)), RNG.normal(size=(M, 3))
    J, J2 = jacobian(network, X, gates), jacobian(network, X2, gates2)
    np.testing.assert_allclose(empirical_ntk(network, X, gates), J @ J.T, rtol=1e-11, atol=1e-14)
    cross = empirical_ntk(network, X, gates, X2, gates2)
    np.testing.assert_allclose(cross, J @ J2.T, rtol=1e-11, atol=1e-14)


def test_weights_that_are_not_trained_are_left_out() -> None:
    network, gates = DGN(3, widths=(4, 2)), RNG.uniform(size=(N, 6))
    network.layers[1].requires_grad_(False)
    X = RNG.normal(size=(N, 3))
    J = jacobian(DGN.from_weights(*network.layers), X, gates)
    kept = np.r_[:12, 20:22]
    np.testing.assert_allclose(
        empirical_ntk(network, X, gates), J[:, kept] @ J[:, kept].T, rtol=1e-11
    )


def by_pairs_of_paths(
    network: DGN, x: np.ndarray, x2: np.ndarray, gates: np.ndarray, *, same_input: bool
) -> float:
    """Sum over pairs of paths that share a weight, that weight left out of both."""
    weights = [W.detach().numpy() for W in network.layers]
    split = np.split(gates, np.cumsum(network.widths)[:-1], axis=1)
    paths = list(product(range(network.n_inputs), *map(range, network.widths)))
    total = 0.0
    for p, q in product(paths, paths):
        if same_input and p[0] != q[0]:
            continue
        activity = x[p[0]] * x2[q[0]]
        for layer, g in enumerate(split):
            activity *= g[0, p[layer + 1]] * g[1, q[layer + 1]]
        edges = [
            [(k, above, below) for k, (below, above) in enumerate(zip(r, (*r[1:], 0), strict=True))]
            for r in (p, q)
        ]
        for shared in set(edges[0]) & set(edges[1]):
            rest = [weights[k][a, b] for r in edges for k, a, b in r if (k, a, b) != shared]
            total += activity * np.prod(rest)
    return float(total)


@pytest.mark.parametrize("n_inputs", [1, 3])
def test_it_is_the_sum_over_all_pairs_of_paths_not_those_of_one_input_alone(n_inputs) -> None:
    # The printed signal-wire identity keeps pairs of one input node: true for one input only.
    network, gates = DGN(n_inputs, widths=(3, 3), random_state=1), RNG.uniform(size=(2, 6))
    X = RNG.normal(size=(2, n_inputs))
    exact = empirical_ntk(network, X, gates)[0, 1]
    assert by_pairs_of_paths(network, *X, gates, same_input=False) == pytest.approx(exact, rel=1e-9)
    printed = by_pairs_of_paths(network, *X, gates, same_input=True)
    assert (abs(printed - exact) < 1e-9 * abs(exact)) == (n_inputs == 1)


def test_a_step_on_half_the_squared_errors_multiplies_them_by_one_less_the_kernel() -> None:
    network, gates = DGN(3, widths=(5, 4), random_state=2), RNG.uniform(size=(N, 9))
    X, y = RNG.normal(size=(N, 3)), RNG.normal(size=N)
    K, data = empirical_ntk(network, X, gates), [torch.tensor(X), torch.tensor(gates)]
    start = network(*data).detach().numpy() - y
    J = jacobian(network, X, gates)

    def missed(loss_slope: float, factor: float, rate: float) -> float:
        stepped = DGN.from_weights(*network.layers)
        moved = torch.tensor(rate * loss_slope * J.T @ start)
        with torch.no_grad():
            for p, step in zip(
                stepped.parameters(),
                torch.split(moved, [p.numel() for p in network.parameters()]),
                strict=True,
            ):
                p.sub_(step.view_as(p))
        errors = stepped(*data).detach().numpy() - y
        return float(np.abs(errors - (start - factor * rate * K @ start)).max())

    half = [missed(1.0, 1.0, rate) for rate in (1e-4, 1e-5)]
    assert half[0] / half[1] == pytest.approx(100, rel=0.1)  # O(rate^2)
    # The printed loss, without the half, has slope 2: with (I - rate K) it is off in first order.
    printed = [missed(2.0, 1.0, rate) for rate in (1e-4, 1e-5)]
    assert printed[0] / printed[1] == pytest.approx(10, rel=0.1)
    double = [missed(2.0, 2.0, rate) for rate in (1e-4, 1e-5)]
    assert double[0] / double[1] == pytest.approx(100, rel=0.1)


def test_path_weights_and_gate_weights_share_the_kernel_of_a_soft_galu_between_them() -> None:
    X, X2 = RNG.normal(size=(N, 3)), RNG.normal(size=(M, 3))
    source = [RNG.normal(size=(4, 3)), RNG.normal(size=(2, 4))]
    gating, network = SoftGates(source, 1.5, 0.1).fit(X), DGN(3, widths=(4, 2), random_state=4)
    given = [torch.tensor(W, requires_grad=True) for W in source]

    def gradients(inputs: np.ndarray) -> np.ndarray:
        x, rows = torch.tensor(inputs), []
        first = x @ given[0].T
        q = torch.cat([first, first.clamp(min=0) @ given[1].T], dim=1)
        for score in network(x, 1.1 * torch.sigmoid(1.5 * q)):
            every = [*network.parameters(), *given]
            parts = torch.autograd.grad(score, every, retain_graph=True)
            rows.append(torch.cat([part.flatten() for part in parts]).numpy())
        return np.stack(rows)

    one, two = [(x, gating.transform(x), gating.jacobian(x)) for x in (X, X2)]
    strength = empirical_ntk(network, *one[:2], *two[:2])
    activation = activation_kernel(network, *one, *two)
    expected = gradients(X) @ gradients(X2).T
    np.testing.assert_allclose(strength + activation, expected, rtol=1e-10, atol=1e-13)
    assert np.linalg.norm(activation) > 0.05 * np.linalg.norm(expected)


def test_what_has_no_kernel_is_refused() -> None:
    with pytest.raises(TypeError, match="Linear has no `gradient_factors`"):
        empirical_ntk(torch.nn.Linear(3, 1), np.ones((2, 3)), None)
    with pytest.raises(ValueError, match=r"`jacobian` must have shape \(n, gates, weights\)"):
        activation_kernel(DGN(3, widths=(4,)), np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 3, 5)))
