"""Features layer by layer, against loops over all pairs."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias.measures import LEVELS, layer_features, separability_by_layer
from implicit_bias.networks import BalancedReLU

RNG = np.random.default_rng(5)
IMAGES = RNG.normal(size=(12, 1, 5, 5))
LABELS = np.where(np.arange(12) % 3 == 0, 1.0, -1.0)


def convolutional() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4), nn.ReLU(), nn.Linear(4, 1)
    ).double()


def by_hand(network: nn.Sequential, images: np.ndarray) -> list[np.ndarray]:
    """The images, and what comes out of modules 0, 3 and 5."""
    X, found = torch.as_tensor(images), [images.reshape(len(images), -1)]
    for index, module in enumerate(network):
        X = module(X)
        if index in (0, 3, 5):
            found.append(X.detach().numpy().reshape(len(images), -1))
    return found


def test_every_layer_has_what_loops_over_all_pairs_count() -> None:
    network = convolutional()
    layers = separability_by_layer(network, IMAGES, LABELS.astype(int))
    assert [layer.layer for layer in layers] == ["inputs", "0", "3", "5"]
    verdicts = set()
    for layer, F in zip(layers, by_hand(network, IMAGES), strict=True):
        found, products = layer.separability, {}
        for i, j in combinations_with_replacement(range(12), 2):
            products[i, j] = float(F[i] @ F[j])
        across = [v for (i, j), v in products.items() if LABELS[i] != LABELS[j]]
        within = [v for (i, j), v in products.items() if LABELS[i] == LABELS[j]]
        assert found.share_across == pytest.approx(np.mean(np.array(across) > 0))
        assert found.share_within == pytest.approx(np.mean(np.array(within) <= 0))
        assert (found.n_across, found.n_pairs) == (len(across), 78)
        kinds = {"across": [], 1.0: [], -1.0: []}
        for i, j in combinations(range(12), 2):
            kind = LABELS[i] if LABELS[i] == LABELS[j] else "across"
            kinds[kind].append(products[i, j] / np.linalg.norm(F[i]) / np.linalg.norm(F[j]))
        for quantiles, values in zip(
            (layer.across, layer.positive, layer.negative), kinds.values(), strict=True
        ):
            np.testing.assert_allclose(quantiles, np.quantile(values, LEVELS), atol=1e-12)
        values = np.linalg.svd(F, compute_uv=False)
        np.testing.assert_allclose(layer.singular_values, values, atol=2e-7 * values[0])
        assert layer.n_features == F.shape[1]
        verdicts.add(bool(layer))
    assert False in verdicts


def test_features_are_those_of_all_samples_however_many_go_through_at_once() -> None:
    images = RNG.normal(size=(300, 1, 5, 5))
    network = convolutional()
    found = dict(layer_features(network, images))
    for F, expected in zip(found.values(), by_hand(network, images), strict=True):
        np.testing.assert_allclose(F, expected, atol=1e-12)


def test_after_a_relu_no_product_is_negative_and_a_score_separates_what_it_labels_rightly() -> None:
    network = convolutional()
    after = separability_by_layer(network, IMAGES, LABELS, layers=["1", "4"])
    assert [layer.layer for layer in after] == ["inputs", "1", "4"]
    assert all(layer.across[0] >= 0 for layer in after[1:])
    with torch.no_grad():
        network[-1].bias -= network(torch.as_tensor(IMAGES)).median() + 0.01
    own = np.sign(network(torch.as_tensor(IMAGES)).detach().numpy()[:, 0])
    assert len(set(own)) == 2
    before, last = (separability_by_layer(network, IMAGES, y)[-1] for y in (LABELS, own))
    assert last and not before


def test_gates_go_to_the_network_and_one_class_has_no_pairs_across() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(2, 3), nn.Linear(3, 1)

        def forward(self, X: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
            return self.last(gates * self.first(X)).squeeze(-1)

    X, gates = RNG.normal(size=(4, 2)), np.zeros((4, 3))
    last = separability_by_layer(Gated(), X, np.ones(4), gates)[-1]
    # Behind closed gates there is the output's bias alone.
    assert last.positive[0] == pytest.approx(1) and last.separability.share_within == 0
    assert np.isnan(last.across).all() and np.isnan(last.separability.share_across)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(2, 2)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.map(self.map(X)).sum(1)


@pytest.mark.parametrize(
    ("network", "layers", "message"),
    [
        (BalancedReLU(2, 3), None, "has no submodule with a weight matrix"),
        (nn.Sequential(nn.Linear(2, 1)), ["1"], "names of submodules, got '1': one of"),
        (Twice(), None, "'map' must be called once a pass, was called 2 times"),
        (nn.Sequential(nn.Linear(2, 1), nn.Flatten(0)), ["1"], None),
    ],
)
def test_what_is_no_layer_is_refused(network, layers, message) -> None:
    X = [[1.0, 2.0], [3.0, -1.0]]
    if message is None:
        assert len(separability_by_layer(network, X, [1, -1], layers=layers)) == 2
        return
    with pytest.raises(ValueError, match=message):
        separability_by_layer(network, X, [1, -1], layers=layers)


def test_hooks_are_gone_afterwards_even_where_a_layer_is_refused() -> None:
    network = Twice()
    with pytest.raises(ValueError, match="must be called once"):
        separability_by_layer(network, [[1.0, 2.0]], [1])
    assert not network.map._forward_hooks
