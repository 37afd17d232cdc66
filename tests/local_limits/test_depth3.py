"""Kernel machines at a network's own layer weights, against the network and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from implicit_bias import DGN, DeepLinear, local_limit
from implicit_bias.kernels import depth3_kernel
from tests.oracles import hard_margin

N, D, H1, H2 = 14, 4, 6, 5
RNG = np.random.default_rng(4)
X, GATES = RNG.normal(size=(N, D)), (RNG.random((N, H1 + H2)) < 0.8).astype(float)


def network_and_labels(inputs, gates, seed=0):
    """A network that separates its own labels, margins not too small."""
    network = DGN(inputs.shape[1], widths=(H1, H2), init="gaussian", random_state=seed)
    with torch.no_grad():
        scores = network(torch.tensor(inputs), torch.tensor(gates)).numpy()
    return network, np.where(scores > 0, 1.0, -1.0)


def least_norm(kernel, y):
    """Least RKHS norm at margins 1, by non-negative least squares on a root of the kernel."""
    values, vectors = np.linalg.eigh(kernel)
    root = vectors * np.sqrt(values.clip(min=0))
    return np.linalg.norm(hard_margin(y[:, None] * root))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_local_limit_is_the_kernel_machine_at_its_own_layer_weights(seed) -> None:
    network, y = network_and_labels(X, GATES, seed)
    limit = local_limit(network, X, y, GATES)
    assert limit.residual < 1e-10
    at_limit = least_norm(depth3_kernel(limit.network)(X, GATES), y)
    assert at_limit == pytest.approx(limit.value, rel=1e-8)
    # Elsewhere it is a lower bound of the network's value.
    assert least_norm(depth3_kernel(network)(X, GATES), y) < 0.99 * limit.start_value


def test_constant_experts_mix_the_overlaps_of_both_layers() -> None:
    network, _ = network_and_labels(np.ones((N, 1)), GATES)
    kernel = depth3_kernel(network)
    W1, W3 = (network.layers[i].detach().numpy() for i in (0, 2))
    assert kernel.t.sum() == pytest.approx(1) and kernel.p.sum() == pytest.approx(1)
    np.testing.assert_allclose(kernel.t, W1[:, 0] ** 2 / (W1**2).sum())
    G1, G2 = GATES[:, :H1], GATES[:, H1:]
    t, p = np.diag(W1[:, 0] ** 2) / (W1**2).sum(), np.diag(W3[0] ** 2) / (W3**2).sum()
    np.testing.assert_allclose(
        kernel(np.ones((N, 1)), GATES), (G1 @ t @ G1.T) * (G2 @ p @ G2.T), atol=1e-14
    )


def test_an_open_first_layer_is_a_metric_on_the_inputs() -> None:
    gates = GATES.copy()
    gates[:, :H1] = 1
    kernel = depth3_kernel(network_and_labels(X, gates)[0])
    assert np.trace(kernel.S) == pytest.approx(1)
    overlap = gates[:, H1:] @ np.diag(kernel.p) @ gates[:, H1:].T
    np.testing.assert_allclose(kernel(X, gates), overlap * (X @ kernel.S @ X.T), atol=1e-14)
    np.testing.assert_allclose(kernel(X[:3], gates[:3], X, gates), kernel(X, gates)[:3], atol=1e-14)


def test_other_networks_and_gates_are_refused() -> None:
    with pytest.raises(TypeError, match=r"W_3 \(1, H2\), got DeepLinear with \[\(1, 4\)\]"):
        depth3_kernel(DeepLinear(D))
    kernel = depth3_kernel(DGN(D, widths=(H1, H2)))
    with pytest.raises(ValueError, match=r"`gates` must have shape \(14, 11\), got \(14, 6\)"):
        kernel(X, GATES[:, :H1])
