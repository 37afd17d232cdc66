"""The flow of the smallest margin, beside descent itself, closed forms and certified limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import implicit_bias as ib
from implicit_bias.dynamics import margin_flow


def three_units(live: float, small: float, nu: float) -> tuple[ib.FReLU, tuple[np.ndarray, ...]]:
    """A balanced network whose third unit has the dual norm `nu` while it is small.

    Two samples of unit length, each seen by a unit of its own, whose norm is its margin: both
    multipliers are 1. The third unit sees both, so its dual norm is the length of their sum,
    2 cos(angle / 2).
    """
    half = np.arccos(nu / 2)
    X = np.array([[np.cos(half), np.sin(half)], [np.cos(half), -np.sin(half)]])
    gates = np.array([[1, 0, 1], [0, 1, 1]])
    norms = np.array([live, live, small])
    directions = np.vstack([X, [1.0, 0.0]])
    network = ib.FReLU.from_weights(np.sqrt(norms)[:, None] * directions, np.sqrt(norms))
    return network, (X, np.ones(2), gates)


@pytest.mark.parametrize("nu", [0.6, 1.4])
def test_a_small_unit_grows_like_the_power_that_its_dual_norm_says(nu) -> None:
    network, data = three_units(20.0, 1e-6, nu)
    flow = margin_flow(network, *data, until=1000.0, step=0.02)
    first, last = flow.unit_norms[0], flow.unit_norms[-1]
    measured = np.log(last[2] / first[2]) / np.log(last[0] / first[0])
    assert measured == pytest.approx(nu, abs=0.01)


def test_a_linear_predictor_goes_to_the_hard_margin() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4))
    y = np.sign(X @ np.array([1.0, -2.0, 0.5, 1.0]))
    limit = ib.solve_linear_svm(X, y)
    network = ib.DeepLinear(4)
    ib.train(
        network,
        X,
        y,
        None,
        settings=ib.TrainingSettings(trainer="momentum", schedule=((200, None),)),
    )
    flow = margin_flow(network, X, y, until=1e9)
    direction = flow.network.zeta().detach().numpy().ravel()
    predicted = limit.zeta.ravel()
    cosine = direction @ predicted / np.linalg.norm(direction) / np.linalg.norm(predicted)
    assert cosine == pytest.approx(1.0, abs=1e-9)
    assert flow.normalised_margin[-1] == pytest.approx(1 / limit.objective, rel=1e-4)
    assert np.all(np.diff(flow.normalised_margin) > -1e-12)
    assert flow.shortfall <= 1e-6 and flow.alignment[-1] > 1 - 1e-8


def gradient_flow(network: torch.nn.Module, X, y, gates, until: float) -> None:
    """Descend log(loss), in steps that raise log(1/loss) by 0.02 to first order, in place."""
    X, y = torch.as_tensor(X), torch.as_tensor(y)
    prepared, weights = network.prepare(gates), list(network.parameters())
    for _ in range(20_000):
        log_loss = torch.logsumexp(-y * network(X, prepared), 0)
        if -log_loss.item() >= until:
            return
        slopes = torch.autograd.grad(log_loss, weights)
        size = 0.02 / sum(float(slope.square().sum()) for slope in slopes)
        with torch.no_grad():
            for weight, slope in zip(weights, slopes, strict=True):
                weight -= size * slope
    raise AssertionError(f"log(1/loss) is {-log_loss.item():.3g} after 20,000 steps")


@pytest.mark.long
def test_it_follows_gradient_flow_itself() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(16, 4))
    contexts = rng.integers(0, 2, size=(16, 3))
    y = np.sign(X @ np.array([1.0, 1.0, -1.0, 0.5]))
    network = ib.GLN(4, 3, 2, random_state=1)
    gradient_flow(network, X, y, contexts, 20.0)
    flow = margin_flow(network, X, y, contexts, until=100.0, step=0.02)
    before = flow.unit_norms[0] / flow.unit_norms[0].sum()
    gradient_flow(network, X, y, contexts, 100.0)
    norms = network.unit_norms().detach().numpy()
    reached, predicted = norms / norms.sum(), flow.unit_norms[-1] / flow.unit_norms[-1].sum()
    assert np.abs(before - reached).max() > 0.05  # there was something to predict
    assert np.abs(predicted - reached).max() < 0.01


def test_what_the_observer_measures_is_kept_and_the_network_is_left_alone() -> None:
    network, data = three_units(30.0, 1.0, 1.2)
    weights = [p.detach().clone() for p in network.parameters()]

    def share(network: torch.nn.Module) -> dict[str, float]:
        norms = network.unit_norms().detach()
        return {"share": float(norms[2] / norms.sum())}

    flow = margin_flow(network, *data, until=1e8, observer=share)
    assert all(torch.equal(a, b) for a, b in zip(weights, network.parameters(), strict=True))
    at = flow.first("share", 0.1)
    shares, times = flow.observed["share"], flow.log_inverse_loss
    assert shares[times < at].max() < 0.1 < shares[times > at].min()
    assert flow.first("share", 2.0) == np.inf and flow.first("share", 0.0) == times[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": -np.ones(2)}, "every sample has a positive margin"),
        ({"until": -1.0}, "must be positive"),
        ({"step": 0.0}, "must be positive"),
        ({"X": np.full((2, 2), np.nan)}, "finite"),
    ],
)
def test_what_it_cannot_follow_is_refused(change, message) -> None:
    network, (X, y, gates) = three_units(30.0, 1.0, 1.2)
    given = {"X": X, "y": y, "gates": gates} | change
    with pytest.raises(ValueError, match=message):
        margin_flow(network, **given)
    with pytest.raises(TypeError, match="degree"):
        margin_flow(torch.nn.Linear(2, 1), X, y)
