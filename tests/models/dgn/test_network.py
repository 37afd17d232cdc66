"""Deep gated networks: their function by paths, their starts, and every way to train them."""

from __future__ import annotations

import copy
import math
import signal
from itertools import product

import numpy as np
import pytest
import torch

from implicit_bias import (
    DGN,
    DeepLinear,
    FReLU,
    Sample,
    TrainingSettings,
    kkt_distance,
    solve_linear_svm,
    train,
    train_many,
)
from implicit_bias.measures import Distances
from implicit_bias.networks import DeepGLN, DeepReLU, initial_variance
from tests.long import some_of

N, D, C = 12, 5, 3
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, D))
WIDTHS = [(), (3,), (3, 4), (4, 2, 3)]


def layers_of(network: torch.nn.Module) -> list[np.ndarray]:
    return [W.detach().numpy() for W in network.layers]


def parts(gates: np.ndarray, widths: tuple[int, ...]) -> list[np.ndarray]:
    return np.split(gates, np.cumsum(widths)[:-1], axis=1) if widths else []


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("init", ["sign", "gaussian", "kaiming", "orthogonal", "balanced"])
def test_scores_are_the_sum_over_paths_written_out(widths, init) -> None:
    network, gates = DGN(D, widths=widths, init=init), RNG.uniform(size=(N, sum(widths)))
    weights, of_layer = layers_of(network), parts(gates, widths)
    strengths = network.path_strengths().detach().numpy()
    expected = np.zeros(N)
    for number, path in enumerate(product(*map(range, widths))):
        zeta, activity = weights[0][path[0] if path else 0], np.ones(N)
        for layer, unit in enumerate(path):
            above = path[layer + 1] if layer + 1 < len(path) else 0
            zeta = weights[layer + 1][above, unit] * zeta
            activity = activity * of_layer[layer][:, unit]
        np.testing.assert_allclose(strengths[number], zeta, rtol=1e-12)
        expected += activity * (X @ zeta)
    scores = network(torch.tensor(X), network.prepare(gates)).detach()
    np.testing.assert_allclose(scores, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("widths", WIDTHS[1:])
def test_contexts_are_one_column_of_weights_each(widths) -> None:
    network = DeepGLN(D, widths=widths, n_contexts=C, init="gaussian")
    contexts = RNG.integers(0, C, size=(N, sum(widths)))
    weights, strengths = layers_of(network), network.path_strengths().detach().numpy()
    expected = np.empty(N)
    for n in range(N):
        hidden = X[n]
        for W, c in zip(weights, parts(contexts[n : n + 1], widths), strict=False):
            hidden = np.array([W[i, c[0, i]] @ hidden for i in range(len(W))])
        expected[n] = weights[-1][0] @ hidden
    scores = network(torch.tensor(X), network.prepare(contexts)).detach()
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    activity = np.ones((N, 1))
    for c in parts(contexts, widths):
        columns = np.eye(C)[c].reshape(N, -1)
        activity = (activity[:, :, None] * columns[:, None]).reshape(N, -1)
    np.testing.assert_allclose(np.sum(activity * (X @ strengths.T), axis=1), expected, rtol=1e-11)


def test_special_gates_give_the_networks_that_are_known() -> None:
    inputs = torch.tensor(X)
    relu = DeepReLU(D, (4, 3), random_state=2)
    own = DGN.from_weights(*relu.layers)
    torch.testing.assert_close(own(inputs, own.prepare(relu.gates(inputs))), relu(inputs))
    linear = DeepLinear.from_weights(*own.layers)
    torch.testing.assert_close(own(inputs, own.prepare(np.ones((N, 7)))), linear(inputs))
    first, *upper = own.layers
    frozen, gates = FReLU.from_weights(first, *upper), RNG.integers(0, 2, (N, 4))
    below = np.hstack([gates, np.ones((N, 3))])
    torch.testing.assert_close(
        own(inputs, own.prepare(below)), frozen(inputs, frozen.prepare(gates))
    )
    one = DeepGLN(D, widths=(4, 3), n_contexts=1)
    alike = DGN.from_weights(*(W.squeeze(1) if W.ndim == 3 else W for W in one.layers))
    closed = one(inputs, one.prepare(np.zeros((N, 7), dtype=int)))
    torch.testing.assert_close(closed, alike(inputs, alike.prepare(np.ones((N, 7)))))


def test_random_starts_have_the_variance_they_promise() -> None:
    widths, rate = (100, 400), 0.25
    assert initial_variance(widths=widths, gate_rate=rate) == pytest.approx(1 / (rate * 200))
    sigma = 3 / math.sqrt(rate * 200)
    for W in layers_of(DGN(50, widths=widths, gate_rate=rate, init_scale=3.0)):
        np.testing.assert_allclose(np.abs(W), sigma, rtol=1e-14)
        assert abs(W.mean()) < 5 * sigma / math.sqrt(W.size)
    for W in layers_of(DGN(50, widths=widths, init="gaussian", gate_rate=rate, init_scale=3.0)):
        # Second and fourth moments, five standard errors.
        assert np.mean(W**2) == pytest.approx(sigma**2, rel=5 * math.sqrt(2 / W.size))
        assert np.mean(W**4) == pytest.approx(3 * sigma**4, rel=5 * math.sqrt(32 / 3 / W.size))


@pytest.mark.parametrize("kind", [DGN, DeepGLN])
def test_balanced_units_are_balanced_one_by_one(kind) -> None:
    sizes = {"widths": (4, 3)} | ({"n_contexts": C} if kind is DeepGLN else {})
    assert float(kind(D, **sizes, init="balanced").imbalance().detach().abs().max()) < 1e-14
    assert float(kind(D, **sizes, init="gaussian").imbalance().detach().abs().max()) > 1e-2


def teacher(kind: type) -> tuple[torch.nn.Module, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    if kind is DGN:
        network, gates = DGN(D, widths=(6, 5), random_state=4), 1.0 * (rng.random((N, 11)) < 0.8)
    else:
        network, gates = (
            DeepGLN(D, widths=(4, 3), n_contexts=2, random_state=4),
            rng.integers(0, 2, (N, 7)),
        )
    y = np.sign(network(torch.tensor(X), network.prepare(gates)).detach().numpy())
    return network, gates, np.where(y == 0, 1.0, y)


TRAINERS = {"constant": ((400, 0.1),)} | dict.fromkeys(
    ("normalised", "momentum", "annealed"), ((200, None),)
)


@pytest.mark.parametrize(("trainer", "kind"), some_of(product(TRAINERS, [DGN, DeepGLN]), one_in=3))
def test_every_trainer_brings_them_nearer_to_a_kkt_point_and_conserves_balance(
    kind, trainer
) -> None:
    network, gates, y = teacher(kind)
    before, sample = kkt_distance(network, X, y, gates).residual, Sample(X, y, gates)
    settings = TrainingSettings(trainer=trainer, batch_size=0, schedule=TRAINERS[trainer])
    watch = Distances(None, sample, sample)
    observed = train(network, X, y, gates, settings=settings, observer=watch).observed
    if trainer != "annealed":  # whose steps are those of no flow
        assert np.nanmax(observed["balancedness_drift"]) < 0.15
    assert observed["error_network"][-1] == 0
    assert observed["kkt_residual"][-1] < 0.8 * before
    assert "dual_norms" not in observed and "zeta_cosine" not in observed


@pytest.mark.parametrize("kind", [DGN, DeepGLN])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(kind, tmp_path) -> None:
    network, gates, y = teacher(kind)
    whole = copy.deepcopy(network)
    settings = TrainingSettings(trainer="annealed", batch_size=0, schedule=((60, None),))
    train(whole, X, y, gates, settings=settings)

    def stop(step: int, n_steps: int, log_loss: float) -> None:
        if step >= 20:
            signal.raise_signal(signal.SIGINT)

    kept = tmp_path / "run"
    begun = train(network, X, y, gates, settings=settings, state=kept, callback=stop)
    assert not begun.finished
    train(network, X, y, gates, settings=settings, state=kept, resume=True)
    for a, b in zip(network.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)


def test_without_hidden_layers_it_is_linear_and_takes_the_dual_trainer() -> None:
    network, y = DGN(D, widths=()), np.sign(X @ np.arange(D) - 1e-3)
    settings = TrainingSettings(trainer="dual", batch_size=0, schedule=((300, None),))
    train(network, X, y, np.ones((N, 0)), settings=settings)
    limit = solve_linear_svm(X, y).require()
    w = network.path_strengths().detach().numpy()[0]
    assert w @ limit.zeta / np.linalg.norm(w) / np.linalg.norm(limit.zeta) > 0.999


@pytest.mark.parametrize("kind", [DGN, DeepGLN])
def test_networks_side_by_side_train_as_each_by_itself(kind) -> None:
    network, gates, y = teacher(kind)
    rest = {"n_contexts": 2} if kind is DeepGLN else {}
    pair = [kind(D, widths=network.widths, **rest, random_state=seed) for seed in (0, 1)]
    alone = copy.deepcopy(pair)
    settings = TrainingSettings(schedule=((50, 0.05),))
    train_many(pair, X, y, gates, settings=settings)
    for together, single in zip(pair, alone, strict=True):
        train(single, X, y, gates, settings=settings)
        for a, b in zip(together.parameters(), single.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


T = torch.tensor


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DGN(D, widths=(3, 0)), ValueError, r"`widths\[1\]` must be at least 1"),
        (lambda: DGN(D, widths=(3,), gate_rate=0.0),
         ValueError, r"`gate_rate` must lie in \(0, 1\]"),
        (lambda: DGN(D, widths=(3, 2)).prepare(np.ones((4, 3))), ValueError,
         r"`gates` must have shape \(4, 5\), got \(4, 3\).*layer after layer"),
        (lambda: DGN(D, widths=(3,)).prepare([[1.0, np.nan, 0.0]]),
         ValueError, "NaN or infinite"),
        (lambda: DGN(D, widths=(3,)).prepare([[1.0, -0.1, 0.0]]),
         ValueError, "must not be negative"),
        (lambda: DGN.from_weights(np.ones((3, 2)), np.ones((1, 4))), ValueError, "shapes"),
        (lambda: DGN.from_weights(np.ones((3, 2))), ValueError, "shapes"),
        (lambda: DGN(2, widths=(200,) * 4).path_strengths(), ValueError, "1600000000 paths"),
        (lambda: DeepGLN(D, widths=(3,), n_contexts=0),
         ValueError, "`n_contexts` must be at least 1"),
        (lambda: DeepGLN(D, widths=(3,), n_contexts=2).prepare([[0, 1, 2]]),
         ValueError, r"lie in 0\.\.1"),
        (lambda: DeepGLN(D, widths=(3,), n_contexts=2).prepare([[0.0, 1.0, 1.0]]),
         TypeError, "integers"),
        (lambda: DeepGLN.from_weights(np.ones((3, 2, 4)), np.ones((2, 3, 3)), np.ones((1, 2))),
         ValueError, "one number of contexts"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_by_name(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
