"""Rates, homogenised networks and regimes of modules whose scaling is known on paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from implicit_bias.networks.recognition import (
    ExactRates,
    RegimeName,
    Subject,
    are_scale_free,
    exact_rates,
    find_rates,
    homogenise,
    scales_away,
    take_subject,
    vanishing_tensors,
)
from tests.own_modules import drawn, linear, perceptron

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 5))
Y = np.sign(X[:, 0])
IMAGES, TOKENS = RNG.normal(size=(20, 1, 8, 8)), RNG.normal(size=(20, 4, 5))


def subject_of(network: nn.Module, inputs=X, targets=Y) -> Subject:
    return take_subject(network, inputs, targets)


def normalised(norm: type[nn.Module]) -> nn.Sequential:
    return nn.Sequential(linear(5, 4, bias=True), norm(4), nn.ReLU(), linear(4, 1, bias=True))


class Residual(nn.Module):
    """A score of ``n(x + V relu(U x + bu) + bv)``."""

    def __init__(self, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.U, self.V = linear(5, 4, bias=True), linear(4, 5, bias=True, seed=3)
        self.norm, self.w = norm or nn.Identity(), linear(5, 1, bias=True, seed=6)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        return self.w(self.norm(x + self.V(torch.relu(self.U(x)))))


class Attention(nn.Module):
    """One layer of softmax attention over (T, d) tokens, summed."""

    def __init__(self) -> None:
        super().__init__()
        self.Q, self.K, self.V, self.O = (linear(5, 5, seed=k) for k in range(4))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return self.O(torch.softmax(self.Q(x) @ self.K(x).mT, -1) @ self.V(x)).sum((1, 2))


class Tied(nn.Module):
    """The same matrix in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.W, self.v = linear(5, 5), linear(5, 1, seed=2)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        return self.v(torch.relu(self.W(torch.relu(self.W(x)))))


def convolutions(pool: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(), pool, nn.Conv2d(3, 2, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 1),
    )  # fmt: skip


def frozen_outer() -> nn.Sequential:
    network = perceptron(5, 4, 4, bias=True)
    network[4].requires_grad_(False)
    return network


THREE = (1 / 4, 1 / 4, 1 / 4, 1 / 2, 1 / 2, 1)
HEAD = (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("network", "inputs", "degree", "near", "orders", "rates"),
    [
        (perceptron(5, 4, bias=True), X, 2, True, {3: 2}, (1 / 2, 1 / 2, 1 / 2, 1)),
        (perceptron(5, 4, 4, bias=True), X, 3, True, {3: 2, 5: 3}, THREE),
        (perceptron(5, 4, 4, bias=True, act=nn.LeakyReLU), X, 3, True, {3: 2, 5: 3}, THREE),
        (convolutions(nn.MaxPool2d(2)), IMAGES, 3, True, {3: 2, 5: 3}, THREE),
        (convolutions(nn.AvgPool2d(2)), IMAGES, 3, True, {3: 2, 5: 3}, THREE),
        (frozen_outer(), X, 2, True, {3: 2}, ()),
        (Residual(), X, 3, True, {3: 2, 5: 3}, (0, 0, 0, 0, 1, 1)),
        (perceptron(5, 4, bias=True, act=nn.GELU), X, 2, True, {3: 2}, HEAD),
        (perceptron(5, 4, bias=True, act=nn.SiLU), X, 2, True, {3: 2}, HEAD),
        (perceptron(5, 4, bias=True, act=nn.Tanh), X, 1, False, {}, HEAD),
        (perceptron(5, 4, bias=True, act=nn.Sigmoid), X, 1, False, {}, HEAD),
        (normalised(nn.BatchNorm1d), X, 2, False, {}, (0, 0, 1 / 2, 1 / 2, 1 / 2, 1)),
        (normalised(nn.LayerNorm), X, 2, False, {}, (0, 0, 1 / 2, 1 / 2, 1 / 2, 1)),
        (normalised(lambda d: nn.LayerNorm(d, eps=0)), X, 2, False, {},
         (0, 0, 1 / 2, 1 / 2, 1 / 2, 1)),
        (Residual(nn.LayerNorm(5)), X, 2, False, {}, (0, 0, 0, 0, 1 / 2, 1 / 2, 1 / 2, 1)),
        (nn.Sequential(weight_norm(linear(5, 4, bias=True)), nn.ReLU(), linear(4, 1, bias=True)),
         X, 2, False, {}, (1 / 2, 1 / 2, 0, 1 / 2, 1)),
        (Attention(), TOKENS, 2, False, {}, (0, 0, 1 / 2, 1 / 2)),
        (Tied(), X, 3, True, {}, (1 / 3, 1 / 3)),
    ],
)  # fmt: skip
def test_degree_what_vanishes_and_rates_are_those_on_paper(
    network, inputs, degree, near, orders, rates
) -> None:
    subject = subject_of(network, inputs)
    exact = exact_rates(subject)
    assert tuple(exact.lam.values()) == pytest.approx(rates)
    assert exact.error < 1e-13 if rates else exact.error > 0.1
    if rates:
        assert exact.degree == pytest.approx(1 / max(rates))
    found = homogenise(subject, exact)
    names = list(subject.weights)
    assert (found.degree, found.near) == (degree, near)
    assert dict(found.orders) == {names[k]: order for k, order in orders.items()}


def test_the_null_space_of_a_perceptron_moves_scale_between_its_layers() -> None:
    found = exact_rates(subject_of(perceptron(5, 4, bias=True)))
    (moved,) = found.null.T
    # W1 and b1 up, W2 down, b2 not at all.
    assert moved / moved[0] == pytest.approx([1, 1, -1, 0])


@pytest.mark.parametrize(
    ("lam", "null", "needed"),
    [
        ((1 / 2, 1 / 2), [(1, -1)], (True, True)),  # a b: without one the other stays as it is
        ((1, 1), [], (False, False)),  # a + b
        # a b + c: without c the largest rate falls, and without a that of b.
        ((1 / 2, 1 / 2, 1), [(1, -1, 0)], (True, True, True)),
        ((1, 1 / 2, 1 / 2), [(0, 1, -1)], (True, True, True)),
        ((1 / 2, 1 / 2, 0), [(1, -1, 0), (0, 0, 1)], (True, True, False)),  # a b and c in nothing
        ((1, 1 / 3, 1 / 3, 1 / 3), [(0, 1, -1, 0), (0, 1, 0, -1)], (True,) * 4),  # a + b c d
    ],
)
def test_what_is_needed_is_what_the_rates_of_the_others_fall_without(lam, null, needed) -> None:
    names = "abcd"[: len(lam)]
    basis = np.linalg.qr(np.reshape(null, (-1, len(lam))).T)[0]
    found = ExactRates(dict(zip(names, lam, strict=True)), basis, 0.0)
    assert tuple(found.falls_without(name) for name in names) == needed


@pytest.mark.parametrize(
    ("null", "away"),
    [
        ([(1, 1)], (True, True)),
        ([(1, -1)], (False, False)),
        ([(1, 3, 0)], (True, True, False)),
        ([(1, 0, 1), (0, 1, 1)], (True, True, True)),  # of a b / c one at a time or all together
        ([(1, -1, 0), (0, 0, 1)], (False, False, True)),
        ([], (False, False)),
    ],
)
def test_all_tensors_scale_away_that_some_scaling_shrinks(null, away) -> None:
    basis = np.linalg.qr(np.reshape(null, (-1, len(away))).T)[0]
    assert tuple(scales_away(basis).tolist()) == away


class Activated(nn.Module):
    """Two linear layers and any function between them."""

    def __init__(self, between) -> None:
        super().__init__()
        self.one, self.two, self.between = linear(5, 4), linear(4, 1, seed=1), between

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        return self.two(self.between(self.one(x)))


class SkipBelowNorm(nn.Module):
    """A score of ``n(W x + V relu(U x))``, whose two terms grow together."""

    def __init__(self) -> None:
        super().__init__()
        self.W, self.U, self.V = linear(5, 4), linear(5, 3, seed=1), linear(3, 4, seed=2)
        self.norm = nn.LayerNorm(4, elementwise_affine=False)
        self.top = linear(4, 1, seed=3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        return self.top(self.norm(self.W(x) + self.V(torch.relu(self.U(x)))))


@pytest.mark.parametrize(
    ("network", "below", "free"),
    [
        (normalised(nn.LayerNorm), 2, True),
        (normalised(nn.BatchNorm1d), 2, True),  # whose lower biases move no score at all
        (SkipBelowNorm(), 3, True),
        (Activated(lambda z: torch.log1p(z.abs())), 1, False),  # grows, ever more slowly
        (Activated(lambda z: 1e9 + 1e9 / (1 + z**6)), 1, False),  # is a constant far out
    ],
)
def test_scores_are_free_of_scale_below_a_norm_alone(network, below, free) -> None:
    subject = subject_of(network)
    assert are_scale_free(subject, list(subject.weights)[:below]) is free


def test_scores_that_are_zero_have_no_rates() -> None:
    found = exact_rates(subject_of(Activated(lambda z: 0 * z)))
    assert (found.lam, found.error, found.degree, found.highest) == ({}, np.inf, None, ())


@pytest.mark.parametrize(
    ("missing", "rates", "degree", "highest"),
    [
        ((3, 5), (1 / 3, 1 / 3, 1 / 3, 1 / 3), 3, (0, 1, 2, 4)),
        ((5,), (1 / 4, 1 / 4, 1 / 4, 1 / 2, 1 / 2), 2, (3, 4)),
        ((3,), (1 / 3, 1 / 3, 1 / 3, 1 / 3, 1), 1, (5,)),
    ],
)
def test_rates_of_three_layers_depend_on_the_biases_that_are_kept(
    missing, rates, degree, highest
) -> None:
    network = perceptron(5, 4, 4, bias=True)
    names = [name for name, _ in network.named_parameters()]
    with torch.no_grad():
        for k in missing:
            network.get_parameter(names[k]).zero_().requires_grad_(False)
    found = exact_rates(subject_of(network))
    assert tuple(found.lam.values()) == pytest.approx(rates)
    assert found.degree == pytest.approx(degree)
    assert found.highest == tuple(names[k] for k in highest)


def test_a_bounded_layer_below_many_others_is_found_out() -> None:
    # Among independent scales all nine upper layers would have to grow and the first one stay.
    network = nn.Sequential(linear(5, 5, bias=True), nn.Tanh(), perceptron(*[5] * 9, bias=True))
    found = homogenise(subject_of(network))
    assert (found.degree, found.near) == (9, False)


class Product(nn.Module):
    """A function of ``t_1 t_2 ... <w, x>`` and ``|s|^2`` of numbers t and s, ordered as a word."""

    def __init__(self, word: str, of) -> None:
        super().__init__()
        self.word, self.of, self.w = word, of, drawn(5)
        self.numbers = nn.ParameterList(drawn(1, seed=k) for k in range(len(word)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        t, s = (
            torch.cat([p for p, own in zip(self.numbers, self.word, strict=True) if own == one])
            for one in "ts"
        )
        return self.of((x @ self.w) * t.prod(), s.square().sum())


@pytest.mark.parametrize(
    ("word", "of"),
    [
        ("tstttst", lambda f, s: f * (1 + 1 / (1 + s))),  # two stay behind all others
        ("stsst", lambda f, s: f * (1 + 1 / (1 + s))),  # three do, whatever the others do
        ("tts", lambda f, s: f + 1 / s.sqrt()),  # one shrinks, and none grows
    ],
)
def test_terms_that_show_only_where_certain_tensors_are_small_are_found_out(word, of) -> None:
    found = homogenise(subject_of(Product(word, of)))
    assert (found.degree, found.near) == (1 + word.count("t"), False)


@pytest.mark.parametrize(
    ("word", "of", "order"),
    [
        ("ts", lambda f, s: f + 200 * s.sqrt(), 2),
        ("tts", lambda f, s: f + torch.exp(-s), 3),  # of which nothing is left to see
    ],
)
def test_what_vanishes_has_the_order_that_its_terms_lack(word, of, order) -> None:
    found = homogenise(subject_of(Product(word, of)))
    assert (found.degree, found.near) == (1 + word.count("t"), True)
    assert found.orders == {f"numbers.{len(word) - 1}": order}


class Power(nn.Module):
    """The 60th power of a linear score."""

    def __init__(self) -> None:
        super().__init__()
        self.one = linear(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1)."""
        return self.one(x) ** 60


def test_a_degree_is_found_although_scores_overflow_at_the_first_scale() -> None:
    found = homogenise(subject_of(Power()))
    assert (found.degree, found.near, found.orders) == (60, True, {})
    scores = found.subject.scores({})
    torch.testing.assert_close(scores, Power()(torch.tensor(X))[:, 0].detach(), rtol=1e-12, atol=0)


def bounded() -> nn.Module:
    network = Activated(torch.tanh)
    network.two.requires_grad_(False)
    return network


@pytest.mark.parametrize(
    ("network", "degree", "near"),
    [
        (linear(5, 1, bias=True), 1, True),
        (bounded(), 0, False),
        (Activated(torch.exp), None, False),  # overflows
    ],
)
def test_what_grows_by_a_degree_of_one_at_least_has_a_homogenised_network(
    network, degree, near
) -> None:
    found = homogenise(subject_of(network))
    assert (found.degree, found.near, found.orders) == (degree, near, {})
    assert (found.subject is not None) is near


def test_the_homogenised_perceptron_is_the_one_without_upper_biases() -> None:
    network = perceptron(5, 4, 4, bias=True)
    homogenised = homogenise(subject_of(network)).subject
    with torch.no_grad():
        network[2].bias.zero_()
        network[4].bias.zero_()
        expected = network(torch.tensor(X)).squeeze(1)
    torch.testing.assert_close(homogenised.scores({}), expected, rtol=1e-14, atol=0)
    assert list(homogenised.weights) == ["0.weight", "0.bias", "2.weight", "4.weight"]


def test_a_skip_and_a_curved_activation_leave_their_leading_terms() -> None:
    x = torch.tensor(X)
    network = Residual()
    found = homogenise(subject_of(network)).subject
    inner = torch.relu(x @ network.U.weight.T + network.U.bias)
    expected = inner @ network.V.weight.T @ network.w.weight[0]
    torch.testing.assert_close(found.scores({}), expected, rtol=1e-12, atol=0)

    curved = perceptron(5, 4, bias=True, act=nn.GELU)
    found = homogenise(subject_of(curved)).subject
    expected = torch.relu(curved[0](x)) @ curved[2].weight[0]
    torch.testing.assert_close(found.scores({}), expected, rtol=1e-12, atol=0)


def test_rates_and_orders_do_not_depend_on_the_units_of_the_inputs() -> None:
    found = [homogenise(subject_of(perceptron(5, 4, bias=True), c * X)) for c in (1e-9, 1, 1e12)]
    assert {(one.degree, one.near, tuple(one.orders.items())) for one in found} == {
        (2, True, (("2.bias", 2),))
    }  # fmt: skip


def separating(bias: float, size: float = 3.0) -> nn.Sequential:
    """Two units that score 3 x size x_0, and a bias."""
    network = nn.Sequential(linear(5, 2, bias=True), nn.ReLU(), linear(2, 1, bias=True))
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
        network[0].weight[:, 0] = torch.tensor([size, -size])
        network[2].weight[0] = torch.tensor([3.0, -3.0])
        network[2].bias.fill_(bias)
    return network


FAR = X[np.abs(X[:, 0]) > 0.3]


def test_the_top_regime_is_that_of_weights_whose_homogenised_network_separates() -> None:
    found = find_rates(subject_of(separating(0.5, 30.0), FAR, np.sign(FAR[:, 0]))).regime
    assert found.name is RegimeName.TOP
    assert not found.early and found.log_inverse_loss > 10
    assert (found.kept, found.zeroed) == ((), ("2.bias",))
    assert found.minimised == ("0.weight", "0.bias", "2.weight")
    least = np.abs(FAR[:, 0]).min() * 90
    biased = np.min(np.abs(FAR[:, 0]) * 90 + 0.5 * np.sign(FAR[:, 0]))
    assert found.margin_ratio == pytest.approx(least / biased)


def test_a_bias_that_carries_margins_is_kept_and_has_the_highest_rate() -> None:
    # All that the units do is too little: the bias makes the score of every sample positive.
    found = find_rates(subject_of(separating(30.0, 0.1), X, np.ones(20))).regime
    assert found.name is RegimeName.HIGHEST_RATE
    assert (found.kept, found.zeroed, found.minimised) == (("2.bias",), (), ("2.bias",))
    assert found.rates.degree == 1 and not found.early


@pytest.mark.parametrize(("margin", "early"), [(9.9, True), (10.1, False)])
def test_a_log_inverse_loss_of_less_than_ten_is_too_early(margin, early) -> None:
    # Of one sample log(1/loss) is the margin to exp(-10).
    subject = subject_of(separating(0.0, margin / 3), np.eye(1, 5), np.ones(1))
    found = find_rates(subject).regime
    assert found.name is RegimeName.TOP and found.early is early
    assert found.log_inverse_loss == pytest.approx(margin, abs=1e-4)


@pytest.mark.parametrize(
    ("bias", "name"), [(0.0, RegimeName.NOT_SEPARATED), (0.5, RegimeName.HIGHEST_RATE)]
)
def test_margins_of_0_separate_nothing(bias, name) -> None:
    # Of the input 0 the score is the bias, and that of the homogenised network is 0.
    subject = subject_of(separating(bias), np.array([[0.0] * 5, [1.0] + [0.0] * 4]), np.ones(2))
    assert find_rates(subject).regime.name is name


def test_of_biases_that_do_for_each_other_the_lower_one_is_kept() -> None:
    # Each alone makes the scores positive that layers without them leave at 0 or below.
    network = perceptron(5, 2, 2, bias=True)
    with torch.no_grad():
        for p in network.parameters():
            p.zero_()
        network[4].weight.fill_(1.0)
        network[2].bias.fill_(1.0)
        network[4].bias.fill_(1.0)
    found = find_rates(subject_of(network, X, np.ones(20))).regime
    assert (found.zeroed, found.kept) == (("4.bias",), ("2.bias",))
    assert found.minimised == ("2.bias", "4.weight")


def test_weights_that_do_not_separate_have_no_regime() -> None:
    found = find_rates(subject_of(separating(0.0), X, -Y)).regime
    assert found.name is RegimeName.NOT_SEPARATED and found.subject is None


class TwoOutputs(nn.Module):
    """Scores (0, f) of a module of one score f: softmax of them is logistic regression."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.one = network

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 2)."""
        score = self.one(x)
        return torch.cat([torch.zeros_like(score), score], dim=1)


def test_two_outputs_of_softmax_are_one_score() -> None:
    labels = np.sign(FAR[:, 0])
    one = find_rates(subject_of(separating(0.5), FAR, labels))
    classes = np.eye(2)[(labels > 0).astype(int)]
    two = find_rates(subject_of(TwoOutputs(separating(0.5)), FAR, classes))
    assert list(two.exact.lam.values()) == pytest.approx(list(one.exact.lam.values()))
    assert two.homogenised.degree == one.homogenised.degree
    assert two.regime.name is one.regime.name
    assert two.regime.margin_ratio == pytest.approx(one.regime.margin_ratio)
    assert two.regime.log_inverse_loss == pytest.approx(one.regime.log_inverse_loss)


def scored_below_a_norm(act: type[nn.Module]) -> nn.Sequential:
    """Batch statistics below a linear score, whose last bias the margins do not need."""
    network = nn.Sequential(linear(5, 2, bias=True), act(2), linear(2, 1, bias=True))
    with torch.no_grad():
        network[0].weight.zero_()
        network[0].weight[:, 0] = torch.tensor([1.0, -1.0])
        network[2].weight[0] = torch.tensor([0.3, -0.3])
        network[2].bias.fill_(0.001)
    return network


def test_below_a_batch_norm_directions_alone_count_and_the_last_bias_is_left_out() -> None:
    inputs = np.vstack([FAR, -FAR])
    subject = subject_of(scored_below_a_norm(nn.BatchNorm1d), inputs, np.sign(inputs[:, 0]))
    found = find_rates(subject).regime
    assert found.name is RegimeName.HIGHEST_RATE
    assert found.zeroed == ("2.bias",) and found.rates.degree == pytest.approx(2)
    assert found.minimised == ("1.weight", "1.bias", "2.weight")


def test_what_saturates_is_an_open_regime() -> None:
    network = nn.Sequential(linear(5, 2, bias=True), nn.Tanh(), linear(2, 1, bias=True))
    with torch.no_grad():
        network.load_state_dict(separating(0.0).state_dict())
    found = find_rates(subject_of(network, FAR, np.sign(FAR[:, 0]))).regime
    assert found.name is RegimeName.OPEN and found.subject is None


def flowed(layers: int, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Gradient flow of the score of one sample x = 1 from weights 1 and biases 0, by SciPy.

    f = a2 relu(a1 + b1) + b2, or one layer more; weights (a1, b1, a2, b2, ...) at f = until and at
    ten times that.
    """

    def score(w):
        inner = w[0] + w[1]
        for a, b in w[2:].reshape(-1, 2):
            inner = a * inner + b
        return inner

    def slope(_, w):
        inner, parts = [w[0] + w[1]], np.empty_like(w)
        for a, b in w[2:].reshape(-1, 2):
            inner.append(a * inner[-1] + b)
        back = 1.0
        for k in range(layers - 1, 0, -1):
            parts[2 * k], parts[2 * k + 1] = back * inner[k - 1], back
            back *= w[2 * k]
        parts[:2] = back
        return parts / score(w)  # at a pace of its own: log f grows

    def reached(value):
        event = lambda _, w: np.log(score(w) / value)  # noqa: E731
        event.terminal = True
        start = np.tile([1.0, 0.0], layers)
        return solve_ivp(slope, (0, 1e9), start, events=event, rtol=1e-10, atol=1e-12).y[:, -1]

    return reached(until), reached(10 * until)


def one_sample(weights: np.ndarray) -> Subject:
    layers = len(weights) // 2
    network = perceptron(*[1] * layers, bias=True)
    with torch.no_grad():
        for p, value in zip(network.parameters(), weights, strict=True):
            p.fill_(value)
    return subject_of(network, np.ones((1, 1)), np.ones(1))


def test_a_vanishing_bias_of_two_layers_grows_by_the_logarithm() -> None:
    now, later = flowed(2, 1e4)
    subject = one_sample(now)
    rates = find_rates(subject)
    (found,) = vanishing_tensors(subject, rates, multipliers=torch.full((1,), 3.0))
    # On paper: at the limit a1 = b1 = 1/2, a2 = gamma = 2^-1/2, and G = 1 / (2 gamma).
    assert found.order == 2 and found.growth == pytest.approx(2**-0.5, rel=1e-3)
    measured = (later[3] - now[3]) / np.log(np.linalg.norm(later) / np.linalg.norm(now))
    assert found.growth == pytest.approx(measured, rel=5e-3)
    assert found.share == pytest.approx(now[3] / np.linalg.norm(now))
    assert found.later_share == pytest.approx(later[3] / np.linalg.norm(later), rel=5e-3)
    assert found.effect == pytest.approx(now[3] / 1e4)
    assert found.later_effect == pytest.approx(later[3] / 1e5, rel=5e-3)

    (seen,) = vanishing_tensors(one_sample(later), rates, earlier=subject.weights)
    assert seen.growth == pytest.approx(measured, rel=1e-9)


def test_a_vanishing_bias_of_three_layers_tends_to_a_constant() -> None:
    now, later = flowed(3, 1e4)
    subject = one_sample(now)
    upper, last = vanishing_tensors(subject, find_rates(subject), multipliers=torch.ones(1))
    assert (upper.order, last.order) == (2, 3)
    # Two layers above a1 (x + 1): a1 = b1 = 6^-1/2, a2 = a3 = 3^-1/2, gamma = a3 a2 (a1 + b1).
    gamma = (2 / 3) / np.sqrt(6)
    assert last.growth == pytest.approx(1 / (3 * gamma), rel=1e-2)
    fallen = 1 / np.linalg.norm(now) - 1 / np.linalg.norm(later)
    assert last.growth * fallen == pytest.approx(later[5] - now[5], rel=5e-3)
    assert last.later_share == pytest.approx(later[5] / np.linalg.norm(later), rel=2e-3)
    # From f = 10 to 1,000 what is of lower order still counts: it rises by .3005, and not by .2906.
    near, far = flowed(3, 10.0)[0], flowed(3, 100.0)[1]
    fallen = 1 / np.linalg.norm(near) - 1 / np.linalg.norm(far)
    assert far[5] - near[5] == pytest.approx(0.3005, abs=5e-5)
    assert fallen / (3 * gamma) == pytest.approx(0.2906, abs=5e-5)
    assert upper.later_share == pytest.approx(later[3] / np.linalg.norm(later), rel=2e-2)


def test_what_is_not_known_of_growth_is_not_predicted() -> None:
    subject = one_sample(flowed(3, 100.0)[0])
    upper, last = vanishing_tensors(subject, find_rates(subject))
    assert np.isnan(upper.growth) and np.isnan(upper.later_share)
    # The norm of order 3 stays.
    assert last.later_share == pytest.approx(last.share * 10 ** (-1 / 3))
    assert last.later_effect == pytest.approx(last.effect / 10)


class PowerAndBias(nn.Module):
    """A score of ``(w x)^k + b (w x)^j``, of one input; or half of it, and the opposite."""

    def __init__(self, k: int, w: float, b: float, j: int = 0, n_outputs: int = 1) -> None:
        super().__init__()
        self.powers, self.n_outputs = (k, j), n_outputs
        self.w, self.b = (nn.Parameter(torch.tensor([p], dtype=torch.float64)) for p in (w, b))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n, 1), or (n, 2)."""
        k, j = self.powers
        score = (x * self.w) ** k + self.b * (x * self.w) ** j
        return score if self.n_outputs == 1 else torch.cat([-score, score], dim=1) / 2


def at_one(k: int, w: float, b: float, j: int = 0) -> Subject:
    return subject_of(PowerAndBias(k, w, b, j), np.ones((1, 1)), np.ones(1))


@pytest.mark.parametrize(("k", "j"), [(4, 0), (60, 30)])
def test_a_bias_beside_a_power_grows_by_its_degree(k, j) -> None:
    # At the limit w = 1 the margin is 1, and its slope in b is 1: G = 1 / k.
    subject = at_one(k, 1.1, 0.5, j)
    (found,) = vanishing_tensors(subject, find_rates(subject), multipliers=torch.ones(1))
    assert (found.order, found.growth) == (k - j, pytest.approx(1 / k))
    network = PowerAndBias(k, 1.1, 0.5, j, n_outputs=2)
    two = subject_of(network, np.ones((2, 1)), np.eye(2)[[1, 1]])
    lam = torch.tensor([[5.0, 0.0], [1.0, 0.0]])
    (found,) = vanishing_tensors(two, find_rates(two), multipliers=lam)
    assert (found.order, found.growth) == (k - j, pytest.approx(1 / k))


def test_growth_between_two_times_is_that_of_the_norm_to_the_power_of_the_order() -> None:
    now, earlier = at_one(4, 2.0, 0.5), at_one(4, 1.0, 0.3)
    (found,) = vanishing_tensors(now, find_rates(now), earlier=earlier.weights)
    # b rises by G times the integral of rho^-3, of norms^2 1.09 and 4.25.
    assert found.growth == pytest.approx((0.5 - 0.3) / ((1 / 1.09 - 1 / 4.25) / 2))
    (back,) = vanishing_tensors(earlier, find_rates(earlier), earlier=now.weights)
    assert np.isnan(back.growth)  # the norm fell


@pytest.mark.parametrize(
    ("w", "b", "effect", "later"),
    [
        (0.5, 0.01, 0.01 / 0.135, 0.01 / 0.135 / 10),  # of (w^3, b) the first alone grows
        (-1.0, 0.5, np.inf, np.nan),  # a margin of -1/2
        (0.5, 0.0, 0.0, np.nan),
    ],
)
def test_effects_are_of_the_least_margin_where_there_is_one(w, b, effect, later) -> None:
    subject = at_one(3, w, b)
    (found,) = vanishing_tensors(subject, find_rates(subject))
    assert (found.effect, found.later_effect) == pytest.approx((effect, later), nan_ok=True)


def test_scalings_that_rounding_leaves_take_no_weights_away() -> None:
    # The second tensor scales alone, the first against the third; far out, rounding is 1e-8.
    rng = np.random.default_rng(0)
    null = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]) / [2**0.5, 1.0]
    for noise in (0.0, 1e-16, 1e-8):
        rounded = np.linalg.qr(null + noise * rng.normal(size=null.shape))[0]
        assert scales_away(rounded).tolist() == [False, True, False]
