"""Kernels class by class: their order, their scale, and the moments they are of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments import simple_half, simple_half_figures
from experiments.simple_half import CLASSES, Classifier
from experiments.simple_half_figures import accuracy, class_means, order_of

RNG = np.random.default_rng(0)


def test_class_means_are_those_of_pairs_in_the_given_order() -> None:
    labels = RNG.permutation(np.repeat(np.arange(CLASSES), 3))
    features = RNG.normal(size=(30, 4))
    kernel = features @ features.T
    order = order_of("5-9")
    assert order == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    found = class_means(kernel, labels, order)
    scale = np.mean(np.diag(kernel))
    for a, b in ((0, 0), (0, 7), (9, 3)):
        pairs = kernel[np.ix_(labels == order[a], labels == order[b])]
        assert found[a, b] == pytest.approx(pairs.mean() / scale)


@pytest.mark.parametrize("kind", [*simple_half.NETWORKS, "galu"])
def test_the_kernel_is_that_of_the_jacobians_of_all_scores(kind) -> None:
    network = Classifier(6, kind, 1, (4, 3))
    X = torch.tensor(RNG.normal(size=(5, 6))).float()
    weights = [p for p in network.parameters() if p.requires_grad]
    assert len(weights) == (5 if kind == "dlgn-pwc" else 3)
    expected = np.zeros((5, 5))
    for c in range(CLASSES):
        rows = [torch.autograd.grad(network(X)[n, c], weights) for n in range(5)]
        J = torch.stack([torch.cat([part.ravel() for part in row]) for row in rows])
        expected += (J @ J.T).double().numpy()
    np.testing.assert_allclose(network.kernel(X), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.diag(expected), network.kernel_diagonal(X), rtol=1e-4)


def test_curves_and_kernels_of_a_run_agree_where_both_count(monkeypatch) -> None:
    monkeypatch.setattr(simple_half, "WIDTHS", (16, 16))
    monkeypatch.setattr(simple_half_figures, "EVERY", 20)
    monkeypatch.setattr(simple_half_figures, "RATE", 5e-3)
    curves, kernels = simple_half_figures.run(None, "dlgn-pwc", "0-4", 1, 60)
    assert curves["step"].tolist() == [0, 20, 40, 60]
    moments = kernels.drop_duplicates("moment").set_index("moment")["step"]
    assert moments["start"] == 0 and moments["end"] == 60
    # The middle is a step between two checkpoints: the first with 72 % of the simple half learned.
    middle = moments["middle"]
    monkeypatch.setattr(simple_half_figures, "EVERY", 1)
    monkeypatch.setattr(simple_half_figures, "kernels", lambda *_: {})
    monkeypatch.setattr(
        simple_half_figures, "curve",
        lambda network, train, _: {"train_simple": accuracy(network, train, simple=True)},
    )  # fmt: skip
    every = simple_half_figures.run(None, "dlgn-pwc", "0-4", 1, int(middle))[0]
    learned = every.set_index("step")["train_simple"]
    assert middle % 20 and learned[middle] >= 0.72 > learned[: middle - 1].max()
    told = simple_half_figures.on_diagonal(kernels)
    assert len(told) == 6 and np.isfinite(told["log2"]).all()
    assert curves["test_simple"].iloc[-1] > curves["test_complex"].iloc[-1]
