"""Homogeneity by Euler's identity and finite factors, of modules whose degrees are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias import GLN, HyperplaneContexts
from implicit_bias.networks.recognition import (
    Form,
    measure_homogeneity,
    recognise,
    take_subject,
)
from tests.own_modules import (
    LogPeriodic,
    OfTwo,
    ResidualPerceptron,
    TiedAutoencoder,
    convolution,
    drawn,
    linear,
    perceptron,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
IMAGES = RNG.normal(size=(40, 1, 6, 6))


def measured(network, inputs=X, gates=None):
    return measure_homogeneity(take_subject(network, inputs, Y, gates))


@pytest.mark.parametrize(
    ("network", "inputs", "degree"),
    [
        (linear(6, 1, bias=True), X, 1),
        (perceptron(6, 5), X, 2),
        (perceptron(6, 5, 4, act=nn.LeakyReLU), X, 3),
        (perceptron(6, 5, 4, 3, act=nn.Identity), X, 4),
        (perceptron(6, 5, bias=True, last_bias=False), X, 2),
        (convolution(), IMAGES, 2),
        (TiedAutoencoder(6, 4), X, 2),
    ],
)
def test_the_degree_is_the_number_of_layers_and_euler_agrees(network, inputs, degree) -> None:
    found = measured(network, inputs)
    assert found.degree == found.whole_degree == degree
    assert found.error < 1e-9 and found.euler_error < 1e-9
    assert found.mixed == () and found.powers == ()
    # Euler's identity in all parameters is the sum of those in groups of them.
    assert sum({one.together or one.name: one.degree for one in found.groups}.values()) == degree


class OfScore(nn.Module):
    """A function of a linear score and of its weights."""

    def __init__(self, of) -> None:
        super().__init__()
        self.of, self.w = of, drawn(6)

    def forward(self, x):
        return self.of(x @ self.w, self.w)


@pytest.mark.parametrize(
    ("of", "degree", "whole"),
    [
        (lambda z, w: z**7, 7, 7),
        (lambda z, w: z * z.abs().sqrt(), 1.5, None),
        (lambda z, w: z / w.norm(), 0, None),
        (lambda z, w: z / w.norm() ** 3, -2, None),
        # Twice the weights give the score of the other sign.
        (lambda z, w: z * torch.cos(math.pi * torch.log2(w.norm())), None, None),
        (lambda z, w: z - z.detach(), None, None),  # scores of 0, whose gradients are not
        (lambda z, w: z.where(z.abs() < 100, torch.nan), None, None),
    ],
)
def test_a_whole_degree_is_a_positive_whole_number(of, degree, whole) -> None:
    found = measured(OfScore(of))
    assert (found.degree, found.whole_degree) == (degree, whole)
    assert found.degree_in("w") == degree


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_degrees_do_not_depend_on_the_unit_of_the_inputs(unit) -> None:
    found = measured(perceptron(6, 5), unit * X)
    assert found.degree == 2 and [one.degree for one in found.groups] == [1, 1]


@pytest.mark.parametrize(
    ("of", "mixed", "degree", "exponents"),
    [
        (lambda z, w, b: z**7 + b, ("b",), 7, {"w": 1, "b": 7}),
        (lambda z, w, b: z * (1 + b**2), ("b",), 1, {}),  # whatever b is multiplied by
        (lambda z, w, b: z * torch.cos(math.pi * w.norm().clamp(1e-9).log2()) + b, (), None, {}),
        (lambda z, w, b: 2 * z - z.detach() + b, (), None, {}),  # a gradient of other scores
    ],
)
def test_a_number_is_blamed_where_the_rest_has_a_degree(of, mixed, degree, exponents) -> None:
    found = measured(OfTwo(6, of))
    assert (found.degree, found.mixed, found.degree_without) == (None, mixed, degree)
    assert dict(found.exponents) == exponents


class CutOff(nn.Module):
    """Layers with a cut between them, beyond what their weights reach, the lower one last."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.top, self.inner, self.most = drawn(5), drawn(5, 6, seed=1), most

    def forward(self, x):
        return (x @ self.inner.T).clamp(-self.most, self.most) @ self.top


def test_degrees_in_single_parameters_hold_far_away_too() -> None:
    cut = measured(perceptron(6, 5, act=lambda: nn.Hardtanh(-10.0, 10.0))).groups
    assert {one.name: one.degree for one in cut} == {"0.weight": None, "2.weight": 1}
    cut = measured(CutOff(20.0)).groups
    assert {one.name: one.degree for one in cut} == {"top": 1, "inner": None}


def test_each_matrix_of_a_relu_network_has_degree_one_and_a_first_bias_shares_it() -> None:
    found = measured(perceptron(6, 5, bias=True, last_bias=False))
    assert {one.name: one.degree for one in found.groups} == {
        "0.weight": 1, "0.bias": 1, "2.weight": 1
    }  # fmt: skip
    assert [one.together for one in found.groups] == [("0.weight", "0.bias")] * 2 + [()]


def test_biases_above_the_first_layer_are_named_with_the_degree_of_the_others() -> None:
    found = measured(perceptron(6, 5, 4, bias=True))
    assert found.degree is None and found.whole_degree is None
    assert found.mixed == ("2.bias", "4.bias")
    assert found.degree_without == 3
    # Quasi-homogeneous: a bias scales with all layers below it.
    assert dict(found.exponents) == {
        "0.weight": 1, "0.bias": 1, "2.weight": 1, "2.bias": 2, "4.weight": 1, "4.bias": 3
    }  # fmt: skip
    alone = {one.name: one.degree for one in found.groups}
    assert alone["2.bias"] is None and alone["4.bias"] is None
    assert found.degree_in("2.bias") is None and found.degree_in("0.weight") == 1
    assert alone["0.weight"] == alone["2.weight"] == alone["4.weight"] == 1


def test_biases_that_are_zero_now_are_found_out_all_the_same() -> None:
    network = perceptron(6, 5, bias=True)
    with torch.no_grad():
        network[2].bias.zero_()
    assert measured(network).mixed == ("2.bias",)


def test_a_function_that_is_periodic_in_the_logarithm_of_the_scale_is_found_out() -> None:
    network = LogPeriodic(6)
    x = torch.tensor(X)
    with torch.no_grad():
        before = network(x)
        network.w.mul_(2)
        torch.testing.assert_close(network(x), 2 * before)  # it fools a test at factor 2
    found = measured(network)
    assert found.degree is None and found.error > 0.1 and found.euler_error > 0.1


@pytest.mark.parametrize(
    ("act", "bound"), [(nn.Tanh, 0.1), (nn.ReLU6, 0.1), (nn.Softplus, 0.1), (nn.GELU, 1e-3)]
)
def test_what_saturates_or_curves_at_some_scale_is_not_homogeneous(act, bound) -> None:
    found = measured(perceptron(6, 5, act=act))
    assert found.degree is None and found.error > bound


def test_a_sum_of_terms_says_their_degrees() -> None:
    found = measured(ResidualPerceptron(6))
    assert found.degree is None
    assert found.powers == (1, 3) and found.mixed == ()


def test_gated_networks_are_measured_behind_their_gates() -> None:
    contexts = HyperplaneContexts(4, 2, random_state=0).fit_transform(X)
    found = measured(GLN(6, 4, 2, upper_widths=(3,)), gates=contexts)
    assert found.degree == 3
    assert [one.degree for one in found.groups] == [1, 1, 1]


def test_gradients_that_do_not_belong_to_the_scores_show_in_eulers_identity() -> None:
    class Detached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = perceptron(6, 5)

        def forward(self, x):
            hidden = self.inner[1](self.inner[0](x)).detach()
            return self.inner[2](hidden) + 0 * self.inner(x)

    found = measured(Detached())
    assert found.error < 1e-9 and found.euler_error > 0.1
    assert found.degree is None


def test_no_weights_are_blamed_whose_absence_leaves_nothing_but_a_constant() -> None:
    normalised = nn.Sequential(
        linear(6, 5), nn.BatchNorm1d(5).double(), nn.ReLU(), linear(5, 1, seed=5)
    )
    normalised(torch.tensor(X))  # one batch, so that the running mean is not zero
    found = measured(normalised.eval())
    # Without the scales of the normalisation relu(bias) is left, which no input changes.
    assert found.degree is None and found.mixed == ()


def test_a_trained_slope_of_the_activation_is_blamed_by_its_terms() -> None:
    network = nn.Sequential(linear(6, 5), nn.PReLU().double(), linear(5, 1, seed=5))
    found = measured(network)
    assert found.mixed == ("1.weight",) and found.degree_without == 2
    assert found.powers == (2, 3)


@pytest.mark.parametrize(
    "act", [lambda: nn.Hardtanh(-300.0, 300.0), lambda: nn.Hardshrink(1e-5)], ids=["far", "near 0"]
)
def test_what_is_linear_at_usual_sizes_alone_is_found_out_by_far_factors(act) -> None:
    network = perceptron(6, 5, act=act)
    plain = perceptron(6, 5, act=nn.Identity)
    with torch.no_grad():
        torch.testing.assert_close(network(torch.tensor(X)), plain(torch.tensor(X)))
    found = measured(network)
    assert found.euler_error < 1e-9  # nothing shows near by
    assert found.degree is None and found.error > 1e-3


class Counting(nn.Module):
    """Counts the calls of a module, those of its copies too."""

    calls = 0

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        Counting.calls += 1
        return self.inner(x)


def blocks(n: int) -> nn.Sequential:
    """Residual blocks with batch normalisation, as those of ResNets."""

    class Block(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                linear(6, 6, seed=seed), nn.BatchNorm1d(6).double(), nn.ReLU(),
                linear(6, 6, seed=seed + 1), nn.BatchNorm1d(6).double(),
            )  # fmt: skip

        def forward(self, x):
            return torch.relu(x + self.body(x))

    return nn.Sequential(*(Block(2 * k) for k in range(n)), linear(6, 1, bias=True, seed=99))


def test_a_normalised_network_is_called_three_times_more_for_every_vector_that_it_has_more() -> (
    None
):
    def calls(n: int) -> int:
        subject = take_subject(Counting(blocks(n)), X, Y)
        Counting.calls = 0
        assert recognise(subject).form is Form.NOT_HOMOGENEOUS
        return Counting.calls

    assert calls(8) - calls(4) <= 3 * 4 * 4  # of four more blocks, four vectors each
