"""Forms of scores recognised from their values, on modules built to have them or nearly so."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn

from implicit_bias import DGN, FReLU, HyperplaneContexts, ShallowGLN
from implicit_bias.networks import DLGN, LinearConvolution
from implicit_bias.networks.recognition import (
    Form,
    InputDependence,
    UnitsNetwork,
    measure_dependence,
    measure_homogeneity,
    measure_inputs,
    recognise,
    take_subject,
)
from tests.own_modules import (
    Diagonal,
    HardGated,
    OfTwo,
    OwnGLN,
    ResidualPerceptron,
    TiedAutoencoder,
    TransposedReLU,
    convolution,
    drawn,
    linear,
    of_two_slopes,
    perceptron,
)

RNG = np.random.default_rng(0)
N, D = 40, 6
X = RNG.normal(size=(N, D))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
IMAGES = RNG.normal(size=(N, 1, 6, 6))
CONTEXTS = HyperplaneContexts(4, 2, random_state=0).fit_transform(X)
GATES = (RNG.random((N, 9)) < 0.6).astype(float)
LINEAR_LAYERS = nn.Identity


def recognised(network, inputs=X, gates=None):
    return recognise(take_subject(network, inputs, Y, gates))


@pytest.mark.parametrize(
    ("network", "inputs", "gates", "form"),
    [
        (linear(D, 1, bias=True), X, None, Form.FEATURES),
        (ShallowGLN(D, contexts=CONTEXTS), X, CONTEXTS, Form.FEATURES),
        (HardGated(D, 5), X, None, Form.FEATURES),
        (perceptron(D, 5, 4, act=LINEAR_LAYERS), X, None, Form.LINEAR),
        (Diagonal(D), X, None, Form.UNITS),
        (Diagonal(D), X[:, [0] * D], None, Form.LINEAR),
        (OwnGLN(D, 4, 4), X, CONTEXTS, Form.UNITS),
        (FReLU(D, 9, upper_widths=(3,)), X, GATES, Form.UNITS),
        (DGN(D, widths=(5, 4)), X, GATES, Form.LAYERS),
        (TiedAutoencoder(D, 4), X, None, Form.QUADRATIC),
        (perceptron(D, 5), X, None, Form.TWO_LAYER_RELU),
        (perceptron(D, 5, bias=True, last_bias=False), X, None, Form.TWO_LAYER_RELU),
        (TransposedReLU(D, 5), X, None, Form.TWO_LAYER_RELU),
        (perceptron(D, 5, 4), X, None, Form.DEEP_RELU),
        (perceptron(D, 5, act=nn.LeakyReLU), X, None, Form.TWO_LAYER_RELU),
        (perceptron(D, 5, 4, act=nn.LeakyReLU), X, None, Form.DEEP_RELU),
        (of_two_slopes(D), X, None, Form.PIECEWISE),
        (convolution(), IMAGES, None, Form.PIECEWISE),
        (perceptron(D, 5, bias=True), X, None, Form.NOT_HOMOGENEOUS),
        (ResidualPerceptron(D), X, None, Form.NOT_HOMOGENEOUS),
    ],
)  # fmt: skip
def test_the_form_is_recognised_whatever_the_class(network, inputs, gates, form) -> None:
    assert recognised(network, inputs, gates).form is form


def test_a_compiled_network_has_the_form_of_its_module() -> None:
    assert recognised(torch.compile(perceptron(D, 5))).form is Form.TWO_LAYER_RELU


class Kernels(nn.Module):
    """``sum_pq u_p M(x)_pq v_q`` of two kernels, with the place in M read off a table."""

    def __init__(self, table, shape=(D,), other=(D,)) -> None:
        super().__init__()
        self.table = torch.tensor(table)
        self.u, self.v = drawn(*shape), drawn(*other, seed=1)

    def forward(self, x):
        u, v = self.u.flatten(), self.v.flatten()
        return torch.einsum("npq,p,q->n", x[:, self.table], u, v)


PLACES = np.arange(D)
PERMUTATIONS = [list(one) for one in permutations(range(3))]
OF_THREE = [[PERMUTATIONS.index([p[k] for k in q]) for q in PERMUTATIONS] for p in PERMUTATIONS]


@pytest.mark.parametrize(
    ("network", "form", "circles"),
    [
        (LinearConvolution(D, random_state=0), Form.CONVOLUTION, (D,)),
        (LinearConvolution(D, 3, random_state=0), Form.DEEP_CONVOLUTION, (D,)),
        (LinearConvolution(D, 3, group=OF_THREE, random_state=0), Form.POLYNOMIAL, ()),
        (Kernels((PLACES[:, None] + PLACES) % D), Form.CONVOLUTION, (D,)),  # a correlation
        (Kernels((PLACES[:, None] - PLACES) % D, (1, D, 1)), Form.CONVOLUTION, (D,)),
        (Kernels((PLACES[:, None] - PLACES) % D, (2, 3)), Form.QUADRATIC, ()),
        (Kernels((PLACES[:3, None] - PLACES) % D, (3,), (2, 3)), Form.QUADRATIC, ()),
        (Kernels(OF_THREE), Form.QUADRATIC, ()),
        (Kernels(PLACES[:, None] * PLACES % D), Form.QUADRATIC, ()),
        # Of two circles the places of the one alone are those of a table.
        (Kernels([[3 * (p // 3 * (q // 3) % 2) + (p + q) % 3 for q in PLACES] for p in PLACES],
                 (2, 3)), Form.QUADRATIC, ()),
        (Kernels([[3 * ((p // 3 + q // 3) % 2) + (p + q) % 3 for q in PLACES] for p in PLACES],
                 (2, 3)), Form.CONVOLUTION, (2, 3)),
    ],
)  # fmt: skip
def test_convolutions_are_told_by_the_circles_that_kernels_move_round(
    network, form, circles
) -> None:
    found = recognised(network)
    assert (found.form, found.circles) == (form, circles)


class Other(nn.Module):
    """Any function of one layer, of the first of the inputs."""

    def __init__(self, of, n_inputs: int = D, **how) -> None:
        super().__init__()
        self.of, self.layer = of, linear(n_inputs, 3, **how)

    def forward(self, x):
        return self.of(self.layer(x[:, : self.layer.in_features]))


def two(*between: nn.Module, n_inputs: int = D, width: int = 4, n_outputs: int = 3):
    first, last = linear(n_inputs, width), linear(width, n_outputs, seed=1)
    return nn.Sequential(first, *between, last)


def leaky(z, slope):
    return nn.functional.leaky_relu(z, slope)


OUTER = torch.tensor([0.5, -2.0, 0.0], dtype=torch.float64)


@pytest.mark.parametrize(("slope", "unit"), [(0.0, 1.0), (0.3, 1e-12), (0.999, 1e12)])
def test_outer_weights_that_are_fixed_are_read_off_with_the_slope(slope, unit) -> None:
    outer = recognised(Other(lambda z: leaky(z, slope) @ (unit * OUTER))).outer
    assert outer.name == "layer.weight" and outer.slope == pytest.approx(slope, rel=1e-12)
    torch.testing.assert_close(outer.outer, unit * OUTER, rtol=1e-9, atol=0)
    torch.testing.assert_close(
        outer.scores(torch.tensor(X), {"layer.weight": torch.eye(3, D, dtype=torch.float64)}),
        torch.where(torch.tensor(X[:, :3]) > 0, 1, slope) * torch.tensor(X[:, :3]) @ (unit * OUTER),
    )


@pytest.mark.parametrize(
    "network",
    [
        Other(lambda z: leaky(z[:, 0], 0.3) + leaky(z[:, 1], 0.5)),
        Other(lambda z: leaky(z, 1.5) @ OUTER),
        Other(lambda z: leaky(z, -0.3) @ OUTER),
        Other(lambda z: leaky(z[:, 0] - z[:, 1], 0.3)),
        Other(lambda z: leaky(z, 0.3) @ OUTER, n_inputs=4),
        Other(lambda z: leaky(z, 0.3) @ OUTER, bias=True),
    ],
    ids=["two slopes", "steep", "falling", "sums of units", "fewer inputs", "bias"],
)
def test_what_is_no_leaky_layer_below_fixed_weights_is_not_taken_for_one(network) -> None:
    found = recognised(network)
    assert found.form is Form.PIECEWISE and found.outer is None


@pytest.mark.parametrize(
    ("network", "form"),
    [
        (Other(lambda z: nn.functional.leaky_relu(z) @ OUTER), Form.FIXED_OUTER),
        (Other(lambda z: torch.relu(z).square().sum(1)), Form.PIECEWISE),
        (Other(lambda z: z.norm(dim=1)), Form.HOMOGENEOUS),
        (Other(lambda z: (z - z.mean(0)).sum(1)), Form.HOMOGENEOUS),  # of the whole batch
        (Other(lambda z: z.detach().sum(1) + 2 * (z - z.detach()).sum(1)), Form.SURROGATE),
    ],
)
def test_what_has_no_program_of_many_is_named_for_what_it_lacks(network, form) -> None:
    found = recognised(network)
    assert found.form is form and found.units is None and found.layers is None
    assert (found.outer is not None) is (form is Form.FIXED_OUTER)


class TopFirst(nn.Module):
    """Two matrices, the upper one first, and the other one the other way round or not."""

    def __init__(self, width: int = 4, *, scale: float = 1.0, turned: bool = False) -> None:
        super().__init__()
        self.top, self.scale, self.turned = drawn(3, width), scale, turned
        self.features = drawn(*((N, width) if turned else (width, N)), seed=1)

    def forward(self, x):
        features = self.features if self.turned else self.features.T
        return self.scale * x @ features @ self.top.T


@pytest.mark.parametrize(
    ("network", "inputs", "form"),
    [
        (TopFirst(), np.eye(N), Form.UNCONSTRAINED),
        (TopFirst(N), np.eye(N), Form.UNCONSTRAINED),
        (TopFirst(scale=2.0), np.eye(N), Form.POLYNOMIAL),
        (TopFirst(turned=True), np.eye(N), Form.POLYNOMIAL),
        (two(n_inputs=N, width=2), np.eye(N), Form.UNCONSTRAINED),
        (two(n_inputs=N), np.eye(N)[[0, *range(N - 1)]], Form.POLYNOMIAL),  # one twice
        (two(n_inputs=N), np.vstack([np.zeros(N), np.eye(N)[1:]]), Form.POLYNOMIAL),
        (
            two(n_inputs=N),
            np.vstack([[0.5, 0.5, *[0.0] * (N - 2)], np.eye(N)[2:], np.eye(N)[:1]]),
            Form.POLYNOMIAL,
        ),
        (linear(D, 3), X, Form.FEATURES),
        (two(), X, Form.POLYNOMIAL),
        (two(nn.ReLU()), X, Form.PIECEWISE),
        (two(n_outputs=2), X, Form.POLYNOMIAL),
        (two(n_inputs=N), np.eye(N), Form.UNCONSTRAINED),
        (two(n_inputs=N, n_outputs=2), np.eye(N), Form.UNCONSTRAINED),
        (two(n_inputs=N, width=1), np.eye(N), Form.POLYNOMIAL),  # narrower than K - 1
        (two(n_inputs=N), 2 * np.eye(N), Form.POLYNOMIAL),
        (two(nn.ReLU(), n_inputs=N), np.eye(N), Form.PIECEWISE),
    ],
)
def test_several_outputs_have_forms_of_their_own(network, inputs, form) -> None:
    labels = np.arange(len(inputs)) % network(torch.tensor(inputs[:1])).shape[1]
    assert recognise(take_subject(network, inputs, labels)).form is form


@pytest.mark.parametrize(
    ("labels", "form"),
    [
        (np.arange(N) % 2, Form.POLYNOMIAL),
        (np.minimum(np.arange(N), 2), Form.UNCONSTRAINED),  # one of each of two classes
    ],
)
def test_features_are_unconstrained_where_every_class_has_a_sample(labels, form) -> None:
    assert recognise(take_subject(two(n_inputs=N), np.eye(N), labels)).form is form


def test_gates_that_the_weights_move_are_told_from_fixed_ones_parameter_by_parameter() -> None:
    free = recognised(perceptron(D, 5, 4)).dependence
    assert not free.gates_are_fixed and free.degree is None
    assert free.piecewise == ("0.weight", "2.weight") and free.others == ()
    assert dict(free.in_parameter) == {"0.weight": None, "2.weight": None, "4.weight": 1}
    frozen = recognised(DGN(D, widths=(5, 4)), gates=GATES).dependence
    assert frozen.gates_are_fixed and frozen.degree == 3 and frozen.piecewise == ()


def test_smooth_gates_are_neither_fixed_nor_kinks() -> None:
    subject = take_subject(perceptron(D, 5, act=nn.SiLU), X, Y)
    found = measure_dependence(subject, measure_homogeneity(subject))
    assert found.others == ("0.weight",) and found.piecewise == ()


@pytest.mark.parametrize(
    ("of", "in_w", "in_b", "piecewise"),
    [
        (lambda z, w, b: b * z**2 + 1e6, 2, 1, ()),
        (lambda z, w, b: b * torch.relu(z) + 0 * b, None, 1, ("w",)),
        (lambda z, w, b: torch.relu(z) + 0 * b, None, 0, ("w",)),
        (lambda z, w, b: 0 * z * b, 0, 0, ()),
        (lambda z, w, b: b * z.sign(), None, 1, ("w",)),  # jumps
        (lambda z, w, b: b * z**9 * z.sign(), None, 1, ("w",)),
        (lambda z, w, b: b * z**11 * z.sign(), None, 1, ()),  # of too high a degree to be told
        (lambda z, w, b: b * z * z.abs().sqrt(), None, 1, ()),
        (lambda z, w, b: torch.relu(z * (1 + b)), None, None, ("w", "b")),
        (lambda z, w, b: z * torch.relu(b), 1, None, ("b",)),
        (lambda z, w, b: b * z / w.norm(), None, 1, ()),
    ],
)
def test_the_dependence_on_one_parameter_is_a_polynomial_or_has_kinks_or_neither(
    of, in_w, in_b, piecewise
) -> None:
    subject = take_subject(OfTwo(D, of), 1e6 * X, Y)  # in any unit
    found = measure_dependence(subject, measure_homogeneity(subject))
    assert (dict(found.in_parameter), found.piecewise) == ({"w": in_w, "b": in_b}, piecewise)
    moved = [name for name, degree in found.in_parameter.items() if degree is None]
    assert found.others == tuple(name for name in moved if name not in piecewise)


def test_hard_gates_that_no_gradient_moves_are_set_aside() -> None:
    found = recognised(HardGated(D, 5))
    assert found.still == ("gating",)
    assert set(found.subject.weights) == {"experts"}
    assert found.homogeneity.degree == 1


def test_scores_that_no_weight_moves_are_refused() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = drawn(D)

        def forward(self, x):
            return x @ self.w.detach()

    with pytest.raises(ValueError, match="no gradient moves a weight of `network`"):
        recognised(Cut())


def test_features_of_units_are_those_of_the_gates() -> None:
    network = OwnGLN(D, 4, 4)
    found = recognised(network, gates=CONTEXTS)
    assert found.units.n_layers == found.homogeneity.degree == 2
    features = found.units.features(found.subject).numpy()
    expected = np.zeros((N, 4, 4, D))
    for h in range(4):
        expected[np.arange(N), h, CONTEXTS[:, h]] = X
    np.testing.assert_allclose(features, expected.reshape(N, 4, -1), atol=1e-12)
    zeta = found.units.zeta(found.subject.weights)
    both = (network.readout[:, None, None] * network.weight).detach().flatten(1)
    torch.testing.assert_close(zeta, both)
    units, c = UnitsNetwork(found.subject, found), torch.linspace(-1, 2, N, dtype=torch.float64)
    torch.testing.assert_close(units.zeta().detach(), both)
    torch.testing.assert_close(units.unit_norms().detach(), both.norm(dim=1))
    sums = torch.einsum("n,nhp->hp", c, torch.tensor(expected.reshape(N, 4, -1)))
    dual = units.dual_norms(c, found.subject.data.X, found.subject.data.gates)
    torch.testing.assert_close(dual.detach(), sums.norm(dim=1))
    assert units.degree == 2


def test_gates_of_layers_are_recovered_from_scores_alone() -> None:
    closed = GATES.copy()
    closed[:3, :5] = 0  # samples that no path reaches
    found = recognised(DGN(D, widths=(5, 4)), gates=closed)
    assert found.form is Form.LAYERS and found.layers.widths == (5, 4)
    first, second = (g.numpy() for g in found.layers.gates(found.subject, found.subject.weights))
    reached = (closed[:, :5].any(1) & closed[:, 5:].any(1))[:, None]
    np.testing.assert_array_equal(first, closed[:, :5] * reached)
    np.testing.assert_array_equal(second, closed[:, 5:] * reached)


def test_products_of_real_gates_are_recovered_whatever_their_scale() -> None:
    gates = RNG.uniform(0.1, 1, size=(N, 9))
    found = recognised(DGN(D, widths=(5, 4)), gates=gates)
    assert found.form is Form.LAYERS
    first, second = (g.numpy() for g in found.layers.gates(found.subject, found.subject.weights))
    paths = np.einsum("ni,nj->nij", first, second)
    np.testing.assert_allclose(paths, gates[:, :5, None] * gates[:, None, 5:], atol=1e-9)


@pytest.mark.parametrize(("act", "closed"), [(nn.ReLU, 0.0), (nn.LeakyReLU, 0.01)])
def test_gates_of_a_relu_network_are_its_own(act, closed) -> None:
    found = recognised(perceptron(D, 5, bias=True, last_bias=False, act=act))
    W, b = (p.numpy() for p in list(found.subject.weights.values())[:2])
    (gates,) = found.layers.gates(found.subject, found.subject.weights)
    np.testing.assert_allclose(gates.numpy(), np.where(X @ W.T + b >= 0, 1, closed), rtol=1e-12)
    deep = recognised(perceptron(D, 5, 4, act=act), np.vstack([X[1:], np.zeros(D)]))
    hidden = np.vstack([X[1:], np.zeros(D)])
    weights = deep.subject.weights
    for gates, W in zip(deep.layers.gates(deep.subject, weights), weights.values(), strict=False):
        z = hidden @ W.numpy().T
        np.testing.assert_allclose(gates, np.where(z >= 0, 1, closed), rtol=1e-12)
        hidden = np.where(z >= 0, z, closed * z)
    assert hidden.shape == (N, 4)


class GatedLayers(nn.Module):
    """Layers behind gates, of which the first one has a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.b, self.second = drawn(5, D), drawn(5, seed=1), drawn(4, 5, seed=2)
        self.top = drawn(4, seed=3)

    def forward(self, x, gates):
        hidden = gates[:, :5] * (x @ self.first.T + self.b)
        return gates[:, 5:] * (hidden @ self.second.T) @ self.top


def test_a_bias_below_gates_is_the_weight_of_a_constant_input() -> None:
    network = GatedLayers()
    found = recognised(network, gates=GATES)
    layers, w = found.layers, found.subject.weights
    assert (found.form, layers.bias, layers.n_layers) == (Form.LAYERS, "b", 3)
    first, second = (g.numpy() for g in layers.gates(found.subject, w))
    reached = (GATES[:, :5].any(1) & GATES[:, 5:].any(1))[:, None]
    np.testing.assert_array_equal(first, GATES[:, :5] * reached)
    np.testing.assert_array_equal(second, GATES[:, 5:] * reached)
    inputs, matrices = layers.inputs(found.subject), layers.matrices(w)
    np.testing.assert_array_equal(inputs, np.hstack([X, np.ones((N, 1))]))
    np.testing.assert_array_equal(matrices[0], np.hstack([w["first"], w["b"][:, None]]))


@pytest.mark.parametrize(
    ("network", "gates", "inputs"),
    [
        (perceptron(D, 5, act=LINEAR_LAYERS), None, InputDependence.LINEAR),
        (linear(D, 1, bias=True), None, InputDependence.AFFINE),
        (OwnGLN(D, 4, 4), CONTEXTS, InputDependence.GATED),
        (perceptron(D, 5), None, InputDependence.POSITIVE),
        (perceptron(D, 5, bias=True), None, InputDependence.OTHER),
    ],
)
def test_the_dependence_on_inputs_is_measured_behind_the_gates(network, gates, inputs) -> None:
    assert measure_inputs(take_subject(network, X, Y, gates)) is inputs


def test_one_weight_tied_across_layers_is_no_product_of_layers() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.square, self.top = drawn(D, D), drawn(1, D, seed=1)

        def forward(self, x):
            return (x @ self.square.T @ self.square.T @ self.top.T).squeeze(1)

    found = recognised(Tied())
    assert found.form is Form.POLYNOMIAL and found.homogeneity.degree == 3
    assert found.homogeneity.degree_in("square") == 2


def test_a_dlgn_with_gates_given_is_linear_in_its_paths() -> None:
    network = DLGN(D, widths=(5,))
    found = recognised(network)
    assert found.form in {Form.UNITS, Form.LAYERS}
    assert found.dependence.gates_are_fixed
