"""Figures of the thesis: each from the real path, on small sizes."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

import implicit_bias as ib
from experiments.exit_heads import Draw, reported
from experiments.thesis import exits, labels, layers, surfaces
from tests.experiments.test_tables_of_pages import ROOT, rows


def test_surfaces_have_the_order_of_their_network_but_where_nothing_bends() -> None:
    found = surfaces.surfaces()
    assert [found[f"2.1, order {k}"].order for k in (1, 2, 3)] == [1, 2, 3]
    flat = found["2.2"]
    assert sorted(flat.layer) == [1, 1, 2, 2] and flat.order == 1
    # The greedy assignment puts four folds of the third layer into the second.
    deepest = found["2.1, order 3"]
    assert np.sum((deepest.index == 2) & (deepest.layer == 3)) == 4
    assert (deepest.index <= deepest.layer).all()
    assert len(surfaces.draw().axes) == 9


def test_rows_of_every_layer_lie_near_a_plane() -> None:
    table = rows("thesis_layers")
    keys = ["network", "seed", "layer"]
    singular = table[table.kind == "singular"]
    values, starts = (singular.pivot_table(index=keys, columns="number", values=name)
                      for name in ("x", "start"))  # fmt: skip
    assert len(values) == 5 * (1 + 3) and (values[3] < 0.38 * values[2]).all()
    # Two values grow, and the others are those of the start.
    assert (values[2] > 2 * starts[2]).all()
    np.testing.assert_allclose(values[range(3, 11)], starts[range(3, 11)], rtol=0.12)
    neurons = table[table.kind == "neuron"]
    for key, one in neurons.groupby(keys):
        # In the plane of both directions the sums of squares are those of the singular values.
        squares = [np.sum(one.x**2), np.sum(one.y**2)]
        np.testing.assert_allclose(squares, values.loc[key, [1, 2]] ** 2, rtol=1e-3)
    assert len(layers.draw(table).axes) == 10


def test_rows_of_a_small_run_are_those_of_the_networks(monkeypatch) -> None:
    monkeypatch.setattr(layers, "WIDTH", 8)
    settings = ib.TrainingSettings(batch_size=50, schedule=((300, 0.1),))
    monkeypatch.setattr(layers, "SETTINGS", settings)
    table = pd.DataFrame(layers.rows(full=False))
    values = table[table.kind == "singular"]
    assert values.groupby(["network", "layer"]).size().to_dict() == {
        ("two layers", 1): 8, ("residual", 1): 8, ("residual", 2): 8, ("residual", 3): 8
    }  # fmt: skip
    first = table[(table.kind == "neuron") & (table.layer == 1)].set_index("network")
    # The neurons of each sign turn to the max-margin vector of their class.
    long = first.loc["two layers"].query("x**2 + y**2 > 0.01")
    assert len(long) > 2 and (long.cosine > 0.8).all() and set(first.sign.dropna()) == {-1.0, 1.0}


@pytest.fixture(scope="module")
def code() -> labels.Autoencoder:
    return labels.train(1.2, n_draws=5, seed=0, n_steps=300)


def test_a_code_of_labels_comes_to_the_information_asked_for(code) -> None:
    assert code.information() == pytest.approx(1.2, abs=0.15)
    joint = code.joint().double()
    conditional = -torch.xlogy(joint, joint / joint.sum(0)).sum()
    prior = joint.sum(1)
    entropy = -torch.xlogy(prior, prior).sum()
    assert code.information() == pytest.approx(float(entropy - conditional), abs=1e-6)


def test_a_normal_is_split_with_the_information_that_is_asked_for() -> None:
    model = labels.Splitting.random(0)
    assert model.information() < 0.2
    labels.descend(model, 0.8, n_steps=250)
    assert model.information() == pytest.approx(0.8, abs=0.15) and 0 <= model.gap() < 0.2
    # A linear Gaussian model, whose information and bound are known, not at its optimum.
    known = ib.autoencoders.GaussianMAE(0.6, 0.8, 0.5, 0.9)
    linear = labels.Splitting(_linear(0.6, 0.8), _linear(0.5, 0.9), model.critic)
    assert linear.information() == pytest.approx(known.information, abs=1e-4)
    assert linear.gap() == pytest.approx(known.gap, abs=1e-4) and known.gap > 0.01


def _linear(slope: float, deviation: float):
    return lambda at: torch.distributions.Normal(slope * at, torch.full_like(at, deviation))


def test_densities_of_encoder_and_posterior_integrate_to_one(code) -> None:
    step = float(labels.GRID[1] - labels.GRID[0])
    for density in (code.posterior(), code.encoded()):
        np.testing.assert_allclose(density.sum(0) * step, 1, atol=0.05)


def test_the_gradient_of_reinforce_is_that_of_the_sum_over_labels(code) -> None:
    # (C.17) and (C.19): a sum over the labels, and its estimate from samples of them.
    z = torch.randn(20_000)
    every = code.likelihood(z)
    critic = code.critic(torch.arange(10)[:, None]).log_prob(z).detach()
    exact = (every.probs.T * critic).sum(0).mean()
    bias = code.decoder[-1].bias
    (expected,) = torch.autograd.grad(exact, bias)
    term = code.information_slope(z, code.likelihood(z).sample())
    (found,) = torch.autograd.grad(term, bias)
    assert float(torch.linalg.norm(expected)) > 5e-3
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert float(torch.nn.functional.cosine_similarity(found, expected, dim=0)) > 0.9


def test_draws_that_are_resampled_raise_the_bound_and_one_is_the_usual_elbo(code) -> None:
    torch.manual_seed(0)
    given = torch.arange(10).repeat(400)
    with torch.no_grad():
        several = float(code.elbo(given))
        one = float(labels.Autoencoder(code.decoder, code.encoder, code.critic, 1).elbo(given))
    assert one < several < -math.log(10) + 0.02


def test_exits_of_convolutions_learn_and_the_last_one_teaches_once() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(10, 64))
    labelled = np.repeat(np.arange(10), 4)
    X = kinds[labelled] + 0.1 * rng.normal(size=(40, 64))
    hidden = labelled.copy()
    hidden[1::4] = -1
    draw = Draw(X, hidden, X, labelled, X, labelled)
    network, course = exits.train(draw, 0, n_steps=60, annealed=True, unlabelled=True)
    budget, anytime = exits.accuracies(network.logits, draw)
    assert budget[-1] > 0.8 and len(anytime) == len(exits.CHANNELS)
    # The temperature rises by 5 % after a step whose teacher is surer than 0.5, and never falls.
    factors = course[1:, 2] / course[:-1, 2]
    np.testing.assert_allclose(factors, np.where(course[:-1, 1] > 0.5, 1.05, 1.0), rtol=1e-12)
    assert course[-1, 2] > 1
    teachers = exits._teachers(network(torch.tensor(X[:3]).float()), later=True)
    assert [len(one) for one in teachers] == [3, 2, 1, 0]


def test_stored_tables_are_those_in_print() -> None:
    seconds = pd.read_csv(ROOT / "experiments/published/phuong_2021/inference_seconds.csv")
    assert seconds.groupby("data").size().to_dict() == {"CIFAR100": 44, "ImageNet": 20}
    one = seconds.set_index(["data", "exit", "mode", "device"])["mean"]
    assert one["CIFAR100", 11, "anytime", "cpu"] == 0.219
    # An exit alone is never slower than the mean of all exits so far, up to the last digit.
    wide = seconds.pivot_table(index=["data", "exit", "device"], columns="mode", values="mean")
    assert (wide["budget"] <= wide["anytime"] + 0.0005).all()
    assert len(reported()) == 2 * (4 * 5 + 4 * 11)
