"""Networks with soft gates: their four kinds beside others of the package, and their kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import implicit_bias as ib

D, WIDTHS = 5, (4, 3, 4)
X = np.random.default_rng(0).normal(size=(7, D))
INPUTS = torch.tensor(X)


def jacobian(network: torch.nn.Module, weights: list[torch.nn.Parameter]) -> np.ndarray:
    """Gradients (n, weights) of single scores, by autograd."""
    rows = []
    for score in network(INPUTS):
        parts = torch.autograd.grad(score, weights, retain_graph=True, allow_unused=True)
        rows.append(torch.cat([(torch.zeros_like(w) if g is None else g).ravel()
                               for g, w in zip(parts, weights, strict=True)]))  # fmt: skip
    return torch.stack(rows).numpy()


def test_hard_gates_of_shared_weights_are_those_of_a_relu_network() -> None:
    network = ib.networks.SoftDGN(D, widths=WIDTHS, beta=None, shared=True, random_state=1)
    relu = ib.networks.DeepReLU(D, WIDTHS)
    relu.load_state_dict(dict(zip(relu.state_dict(), network.state_dict().values(), strict=True)))
    torch.testing.assert_close(network(INPUTS), relu(INPUTS))
    assert torch.equal(network.gates(X), relu.gates(X)) and len(network.gating) == 0
    network.eps = 0.1  # each of three layers of gates is open by 1.1
    torch.testing.assert_close(network(INPUTS), 1.1**3 * relu(INPUTS))


def test_hard_gates_of_other_weights_are_those_of_the_other_relu_network() -> None:
    network = ib.networks.SoftDGN(D, widths=WIDTHS, beta=None, random_state=1)
    gates = ib.gates.NetworkGates([V.detach().numpy() for V in network.gating]).fit_transform(X)
    galu = ib.DGN.from_weights(*[W.detach() for W in network.value.layers])
    expected = galu(INPUTS, galu.prepare(gates))
    torch.testing.assert_close(network(INPUTS), expected)
    soft = ib.networks.SoftDGN(D, widths=WIDTHS, random_state=1)
    assert (soft(INPUTS) - expected).abs().max() > 0.1
    soft.beta = 4e3
    torch.testing.assert_close(soft(INPUTS), expected)
    network(INPUTS).sum().backward()
    assert all(V.grad is None or not V.grad.any() for V in network.gating)


def test_printed_signals_are_gated_and_the_others_those_of_soft_gates() -> None:
    ours = ib.networks.SoftDGN(D, widths=WIDTHS, signals="relu", eps=0.1, random_state=2)
    layers = [V.detach().numpy() for V in ours.gating]
    gates = ib.gates.SoftGates(layers, beta=4.0, eps=0.1).fit_transform(X)
    np.testing.assert_allclose(ours.soft_gates(INPUTS).detach(), gates, rtol=1e-12)
    printed = ib.networks.SoftDGN(D, widths=WIDTHS, eps=0.1, random_state=2)
    # Table 2, written out: z = q G, and q of the next layer from it.
    signal, expected = X, []
    for V in layers:
        q = signal @ V.T
        expected.append(1.1 / (1 + np.exp(-4.0 * q)))
        signal = q * expected[-1]
    found = printed.soft_gates(INPUTS).detach().numpy()
    np.testing.assert_allclose(found, np.hstack(expected), rtol=1e-12)
    np.testing.assert_allclose(found[:, :4], gates[:, :4], rtol=1e-12)
    assert abs(found - gates)[:, 4:].max() > 0.05


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("beta", [4.0, None])
def test_tangent_kernels_are_those_of_the_jacobian(shared, beta) -> None:
    network = ib.networks.SoftDGN(D, widths=WIDTHS, beta=beta, shared=shared, random_state=3)
    J = jacobian(network, list(network.parameters()))
    np.testing.assert_allclose(ib.kernels.empirical_ntk(network, X, None), J @ J.T, rtol=1e-9)
    if not shared:
        network.value.requires_grad_(False)
        activation = ib.kernels.empirical_ntk(network, X, None)
        J = J[:, sum(W.numel() for W in network.value.layers) :]
        np.testing.assert_allclose(activation, J @ J.T, rtol=1e-9, atol=1e-12)
        assert activation.any() == (beta is not None)


def test_the_part_of_the_gates_is_the_activation_kernel() -> None:
    network = ib.networks.SoftDGN(D, widths=WIDTHS, signals="relu", random_state=4)
    layers = [V.detach().numpy() for V in network.gating]
    gating = ib.gates.SoftGates(layers, beta=4.0).fit(X)
    gates, slopes = gating.transform(X), gating.jacobian(X)
    activation = ib.kernels.activation_kernel(network.value, X, gates, slopes)
    strengths = ib.kernels.empirical_ntk(network.value, X, gates)
    whole = ib.kernels.empirical_ntk(network, X, None)
    np.testing.assert_allclose(whole, strengths + activation, rtol=1e-9)


def test_gates_alone_are_trained_and_the_value_network_stays() -> None:
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    network = ib.networks.SoftDGN(D, widths=(20, 20), random_state=5)
    network.value.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    settings = ib.TrainingSettings(
        trainer="constant", loss="squared", batch_size=0, schedule=((200, 0.05),)
    )
    run = ib.train(network, X, y, None, settings=settings)
    assert run.log_loss[-1] < run.log_loss[0] - 1
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, before[name]) == name.startswith("value")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": ()}, "`widths`"),
        ({"beta": 0.0}, "`beta`"),
        ({"eps": -0.1}, "`eps`"),
        ({"signals": "hard"}, "`signals`"),
        ({"signals": "relu", "shared": True}, "`signals`"),
    ],
)
def test_wrong_choices_are_refused_by_name(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        ib.networks.SoftDGN(D, **({"widths": WIDTHS} | options))
