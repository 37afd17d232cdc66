"""Stationarity from two checkpoints, from gradients in a loop, and heads that are centred."""

from __future__ import annotations

import copy
import math
import pkgutil

import numpy as np
import pytest
import torch

from implicit_bias.dynamics import GradientSum, centred_head, increment_residual
from implicit_bias.measures import kkt_level
from implicit_bias.networks.recognition import Subject, take_subject

X = np.random.default_rng(0).normal(size=(12, 2)) + np.array([[2.0, 1.0]])


def descended(
    network: torch.nn.Module, margins, n_steps: int, met: GradientSum | None = None, sign=False
) -> list[dict[str, torch.Tensor]]:
    """Normalised steps on the exponential loss; the weights at half of the steps and at the end."""
    trained = [p for p in network.parameters() if p.requires_grad]
    kept = []
    for t in range(1, n_steps + 1):
        network.zero_grad()
        (torch.logsumexp(-margins(network), 0)).backward()
        if met is not None:
            met.add()
        with torch.no_grad():
            length = torch.stack([p.grad.square().sum() for p in trained]).sum().sqrt()
            for p in trained:
                p -= 0.1 * (p.grad.sign() if sign else p.grad / length)
        if t in (n_steps // 2, n_steps):
            kept.append(copy.deepcopy(network.state_dict()))
    return kept


def of_all(network: torch.nn.Module) -> torch.Tensor:
    """Margins of samples that are all of one class."""
    return network(torch.tensor(X))[:, 0]


def test_the_increment_of_a_linear_network_points_to_the_largest_margin() -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1, bias=False).double()
    first, last = descended(network, of_all, 1500)
    assert increment_residual(first, last) < 0.02
    # At a start it does not.
    start = {"weight": first["weight"] + torch.tensor([[-30.0, 90.0]])}
    assert increment_residual(start, first) > 0.3
    assert increment_residual(last, first) == 1.0


def test_the_residual_is_a_sine_also_of_tiny_angles() -> None:
    for angle in (1e-9, 1e-3, 1.0):
        later = torch.tensor([3.0, 0.0], dtype=torch.float64)
        step = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
        found = increment_residual({"w": later - step}, {"w": later})
        assert found == pytest.approx(math.sin(angle), rel=1e-6)


def test_trained_weights_alone_are_compared() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).double()
    later = copy.deepcopy(network)
    with torch.no_grad():
        for p in later.parameters():
            p.mul_(3)
        later[1].running_mean += 7
        later[1].num_batches_tracked += 5
    assert increment_residual(network, later) == pytest.approx(0, abs=1e-12)
    assert increment_residual(network.state_dict(), later.state_dict()) == pytest.approx(
        0, abs=1e-12
    )
    later[0].weight.requires_grad_(False)
    with torch.no_grad():
        later[0].weight += 5
    assert increment_residual(network.state_dict(), later) == pytest.approx(0, abs=1e-12)
    assert increment_residual(network.state_dict(), later.state_dict()) > 0.1


def test_what_all_classes_share_in_the_head_is_not_compared() -> None:
    weights = {"w": torch.tensor([[1.0, 2.0], [3.0, -1.0]]), "b": torch.tensor([1.0, -1.0])}
    longer = {name: 2 * w for name, w in weights.items()}
    shifted = {"w": weights["w"] + torch.tensor([[50.0, 7.0]]), "b": weights["b"] + 9}
    assert increment_residual(shifted, longer) > 0.1
    assert increment_residual(shifted, longer, head=["w", "b"]) == pytest.approx(0, abs=1e-6)
    assert centred_head(shifted, ["w"])["w"].sum(0).abs().max() < 1e-5
    assert centred_head(shifted, ["w"])["b"] is shifted["b"]


def test_gradient_flow_conserves_what_is_taken_out() -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 3).double()
    labels = torch.arange(12) % 3
    before = network.weight.detach().mean(0).clone()
    for _ in range(20):
        network.zero_grad()
        torch.nn.functional.cross_entropy(network(torch.tensor(X)), labels).backward()
        with torch.no_grad():
            for p in network.parameters():
                p -= p.grad
    np.testing.assert_allclose(network.weight.detach().mean(0), before, atol=1e-13)


@pytest.mark.parametrize("bias", [True, False])
def test_the_head_is_found_by_its_shift(bias) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3, bias=bias)
    ).double()
    one = take_subject(torch.nn.Linear(2, 1), X, np.ones(12))
    inside = pkgutil.resolve_name("implicit_bias.networks.adapted:with_gates")
    subject = Subject(inside(network), one.data)
    head_of = pkgutil.resolve_name("implicit_bias.measures.increments:head_of")
    assert head_of(subject) == ("2.weight", "2.bias")[: 1 + bias]


def test_gradients_that_are_met_align_with_the_weights_in_the_norm_of_the_steps() -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1, bias=False).double()
    largest, usual = GradientSum(network, norm={"weight": "linf"}), GradientSum(network)
    descended(network, of_all, 1000, largest, sign=True)
    assert math.isnan(usual.alignment())
    assert largest.alignment() == pytest.approx(1, abs=0.03)
    # By the definition, at other weights: <G, theta> over the l1 norm of G and the largest entry.
    G = -np.sum([g / np.linalg.norm(g) for g in (np.array([3.0, -4.0]), np.array([0.0, 2.0]))], 0)
    largest.restart()
    for gradient in ([[3.0, -4.0]], [[0.0, 2e-300]], [[0.0, 0.0]]):
        network.weight.grad = torch.tensor(gradient, dtype=torch.float64)
        largest.add()
    assert largest.n_steps == 2
    w = network.weight.detach().numpy()[0]
    expected = G @ w / np.abs(G).sum() / np.abs(w).max()
    assert largest.alignment() == pytest.approx(expected, rel=1e-9)


def test_what_is_met_is_no_more_than_the_ratio_of_the_same_problem() -> None:
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1, bias=False).double()
    met = GradientSum(network)
    descended(network, of_all, 500, met)
    # Linear: gradients never turn, and the excess of margins is all that the bound leaves out.
    found = kkt_level(network, X, np.ones(12))
    assert found.residual <= math.sqrt(1 - met.alignment() ** 2) + 1e-6


def changed(**tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"w": torch.ones(2)} | tensors


@pytest.mark.parametrize(
    "earlier, later, head, said",
    [
        (changed(), changed(), (), "same weights"),
        (changed(), {"v": torch.ones(2)}, (), "`earlier` has no tensor 'v'"),
        (changed(), changed(w=torch.ones(3)), (), "of the shape"),
        (changed(), changed(w=torch.tensor([1.0, math.nan])), (), "'w' are NaN"),
        (changed(), changed(w=torch.zeros(2)), ["head"], "`head`"),
        (changed(), {}, (), "`later`"),
        (3, changed(), (), "`earlier`"),
    ],
)
def test_checkpoints_that_say_nothing_are_refused(earlier, later, head, said) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        increment_residual(earlier, later, head=head)


def test_gradients_that_are_no_numbers_are_refused() -> None:
    network = torch.nn.Linear(2, 1)
    met = GradientSum(network)
    network.weight.grad = torch.full((1, 2), math.inf)
    with pytest.raises(FloatingPointError, match="NaN or infinite"):
        met.add()
    with pytest.raises(ValueError, match="nothing to train"):
        GradientSum(network.requires_grad_(False))
    with pytest.raises(TypeError, match="`network`"):
        GradientSum("network")
