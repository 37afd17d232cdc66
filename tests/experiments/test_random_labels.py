"""Labels and pixels at random: what is random in them, and whose gates stay."""

from __future__ import annotations

import numpy as np
import torch

from experiments.random_labels import images, run
from experiments.simple_half import Classifier


def test_labels_and_pixels_are_permuted_and_nothing_else() -> None:
    (X, labels), held_out = images(None, 300, "standard", 1)
    (same, mixed), untouched = images(None, 300, "random labels", 1)
    assert torch.equal(X, same) and torch.equal(held_out[0], untouched[0])
    assert torch.equal(labels.bincount(), mixed.bincount()) and (labels != mixed).sum() > 200
    (pixels, kept), others = images(None, 300, "random pixels", 1)
    assert torch.equal(labels, kept) and torch.equal(pixels[:, -1], X[:, -1])
    assert torch.equal(pixels.sort(dim=1).values, X.sort(dim=1).values)
    assert not torch.equal(others[0], held_out[0])
    # Each image by a permutation of its own: equal pixels of all images do not stay together.
    constant = (X == X[0]).all(dim=0)[:-1]
    assert constant.any() and not (pixels[:, :-1] == pixels[0, :-1]).all(dim=0).any()


def test_gates_of_galu_are_those_of_another_relu_network_and_stay() -> None:
    X = torch.tensor(np.random.default_rng(0).normal(size=(20, 6))).float()
    galu, relu = Classifier(6, "galu", 3, (8, 5)), Classifier(6, "relu", 3, (8, 5))
    for own, other in zip(galu.value, relu.value, strict=True):
        assert torch.equal(own, other)
    first, second = (layer.detach() for layer in galu.gating)
    opened = torch.cat([X @ first.T >= 0, (X @ first.T).relu() @ second.T >= 0], dim=1)
    np.testing.assert_array_equal(galu.gates(X), opened.numpy())
    hidden = X
    for layer, gate in zip(galu.value, opened.split([8, 5], dim=1), strict=False):
        hidden = gate * (hidden @ layer.T)
    torch.testing.assert_close(galu(X), hidden @ galu.value[-1].T)
    rows = list(run((X, torch.arange(20) % 10), (X, torch.arange(20) % 10), "galu", 3, 3, (8, 5)))
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]
    assert rows[-1]["loss"] < rows[0]["loss"]
