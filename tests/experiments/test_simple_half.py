"""Simple and complex classes: what is measured of them, against autograd and by construction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from experiments import simple_half
from experiments.simple_half import CLASSES, Classifier, log_ratio, parts

X = torch.tensor(np.random.default_rng(0).normal(size=(5, 6))).float()


@pytest.mark.parametrize("kind", simple_half.NETWORKS)
def test_the_kernel_s_diagonal_is_that_of_the_jacobian(kind, monkeypatch) -> None:
    monkeypatch.setattr(simple_half, "WIDTHS", (4, 3))
    network = Classifier(6, kind, seed=1)
    for n, expected in enumerate(network.kernel_diagonal(X)):
        squares = 0.0
        for c in range(CLASSES):
            score = network(X[n : n + 1])[0, c]
            slopes = torch.autograd.grad(score, list(network.parameters()))
            squares += sum(float(slope.square().sum()) for slope in slopes)
        assert expected == pytest.approx(squares, rel=1e-5)
    gates = network.gates(X)
    assert gates.shape == (5, 7)
    first = (network.gating if kind == "dlgn-pwc" else network.value)[0]
    np.testing.assert_array_equal(gates[:, :4], (X @ first.T >= 0).detach().numpy())


def test_clusters_of_the_complex_half_get_its_labels_and_the_simple_half_keeps_its_own() -> None:
    train, _ = parts(None, "5-9", seed=3)
    _, plain = parts(None, "0-4", seed=3)
    labels = train.labels.numpy()
    assert set(labels[train.simple]) == set(range(5, 10))
    assert set(labels[~train.simple]) == set(range(5))
    assert np.bincount(labels).min() > 30
    # The other arm has the same images and leaves to 0 to 4 what they are.
    _, test = parts(None, "5-9", seed=3)
    assert torch.equal(test.X, plain.X) and (test.simple == ~plain.simple).all()
    assert (plain.labels[plain.simple] != test.labels[plain.simple]).float().mean() > 0.5


def test_both_arms_together_know_nothing_of_the_classes() -> None:
    values, easy = np.arange(1.0, 7.0), np.array([True, False] * 3)
    assert log_ratio(values, easy) + log_ratio(values, ~easy) == pytest.approx(0, abs=1e-12)
    assert log_ratio(values, easy) == pytest.approx(np.log2(9 / 12))


def test_a_run_begins_with_both_arms_at_0_and_its_rows_are_in_the_picture(monkeypatch) -> None:
    monkeypatch.setattr(simple_half, "WIDTHS", (16, 16))
    monkeypatch.setattr(simple_half, "CHECKPOINTS", (0, 40))
    monkeypatch.setattr(simple_half, "RATE", 1e-2)
    runs = [simple_half.run(None, "relu", simple, 2) for simple in simple_half.HALVES]
    table = pd.concat(runs, ignore_index=True)
    start, end = (table[table["step"] == step] for step in (0, 40))
    for name in simple_half.PANELS:
        assert start[name].sum() == pytest.approx(0, abs=1e-5) and abs(start[name].iloc[0]) > 1e-3
    # Classes are learned before labels of clusters, in either arm.
    assert (end["train_simple"] > end["train_complex"]).all()
    assert (
        simple_half.summary(table)["paths_mean"].index.get_level_values("step") == [0, 40]
    ).all()
    paths = simple_half.draw(table, "digits").axes[0]
    np.testing.assert_allclose(paths.lines[0].get_ydata(), runs[0]["paths"])
