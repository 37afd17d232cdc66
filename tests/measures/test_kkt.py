"""KKT distance at optima known in closed form, and how it tells spoiled weights from them."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from implicit_bias import GLN, DeepLinear, kkt_distance, solve_gln_svm
from implicit_bias.measures.fit import gradient_gram
from tests.commands import home
from tests.oracles import A, B, quadrants, quadrants_zeta, rays

QUADRANTS, RAYS = quadrants(), rays()
DEPTHS = [(), (3,), (2, 4)]


@pytest.mark.parametrize("upper_widths", DEPTHS)
@pytest.mark.parametrize("factor", [1e-3, 1.0, 50.0])
def test_distance_is_zero_at_balanced_weights_of_the_optimum_at_any_scale(
    upper_widths, factor
) -> None:
    # Optimum: ||v_0|| = B/A < 1 leaves unit 0 dead, ||v_1|| = 1.
    network = GLN.from_zeta(factor * quadrants_zeta(1), upper_widths=upper_widths)
    distance = kkt_distance(network, *QUADRANTS)
    assert distance.cosine == pytest.approx(1, abs=1e-12)
    assert distance.residual < 1e-6
    assert abs(distance.complementarity) < 1e-12
    np.testing.assert_allclose(distance.dual_norms, [B / A, 1], rtol=1e-9)


def test_multipliers_are_those_of_the_closed_form_and_vanish_off_the_margin() -> None:
    # zeta = d v(lam) with d = ||zeta|| = sqrt(5/4): 2 lam_0 d = 1/2 and 2 lam d = 1 in context 1.
    network = GLN.from_zeta(np.array([[[0.5, 0.0], [1.0, 0.0]]]))
    distance = kkt_distance(network, *RAYS)
    d = math.sqrt(1.25)
    np.testing.assert_allclose(
        distance.multipliers, [0.25 / d, 0, 0.5 / d, 0.5 / d], rtol=1e-9, atol=1e-12
    )
    assert distance.residual < 1e-6
    np.testing.assert_allclose(distance.dual_norms, [1], rtol=1e-12)


def test_complementarity_is_zero_at_the_optimum_though_multipliers_are_not_unique() -> None:
    rng = np.random.default_rng(1)
    X, contexts = rng.normal(size=(40, 5)), rng.integers(0, 2, size=(40, 3))
    y = np.sign((rng.normal(size=(3, 2, 5))[np.arange(3), contexts] * X[:, None]).sum((1, 2)))
    limit = solve_gln_svm(X, y, contexts, tol=1e-10).require()
    distance = kkt_distance(GLN.from_zeta(limit.zeta), X, y, contexts)
    assert distance.residual < 1e-4
    assert abs(distance.complementarity) < 1e-3


def test_unbalanced_weights_of_the_optimum_are_not_stationary() -> None:
    # r w1 and w2 / r compute the same function, but gradients in w1 shrink to 1/r and those in w2
    # grow to r: layers of equal norms 1 become w = (r, 1/r) against a fit along (1/r, r).
    network = GLN.from_zeta(quadrants_zeta(1))
    r = 2.0
    with torch.no_grad():
        network.w1.mul_(r)
        network.upper[0].div_(r)
    distance = kkt_distance(network, *QUADRANTS)
    cosine = 2 / (r**2 + r**-2)
    assert distance.cosine == pytest.approx(cosine, rel=1e-9)
    assert distance.residual == pytest.approx(math.sqrt(1 - cosine**2), rel=1e-9)


@pytest.mark.parametrize("widths", [(), (3,)])
def test_the_margin_bound_is_1_at_the_optimum_and_never_above_the_margin_ratio_elsewhere(
    widths,
) -> None:
    X, y, contexts = QUADRANTS
    limit = solve_gln_svm(X, y, contexts, tol=1e-11)
    zeta, rng = quadrants_zeta(1), np.random.default_rng(0)
    assert (
        kkt_distance(GLN.from_zeta(zeta, upper_widths=widths), *QUADRANTS).margin_bound > 1 - 1e-6
    )
    bounds = []
    for size in (0.01, 0.03, 0.1, 0.2) * 3:
        network = GLN.from_zeta(zeta, upper_widths=widths)
        with torch.no_grad():
            for p in network.parameters():
                p += size * torch.tensor(rng.normal(size=p.shape))
        scores = network(torch.tensor(X), torch.tensor(contexts)).detach().numpy()
        if (y * scores).min() <= 0:
            continue
        ratio = limit.objective * (y * scores).min() / float(network.unit_norms().detach().sum())
        bounds.append(kkt_distance(network, *QUADRANTS).margin_bound)
        assert bounds[-1] <= ratio + 1e-9
    assert len(bounds) > 6
    assert max(bounds) > 0.9


def test_epsilon_and_delta_are_those_of_lyu_and_li_by_their_definition() -> None:
    class Scalar(torch.nn.Module):
        degree = 1

        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))

        def forward(self, X: torch.Tensor, gates: None) -> torch.Tensor:
            return X @ self.w

    # On the axes, w = (3, 4) has margins 1 and 4 / 3 after rescaling: lam = (1, 4 / 3).
    distance = kkt_distance(Scalar(), np.eye(2), np.ones(2), None)
    np.testing.assert_allclose(distance.multipliers, [1, 4 / 3], rtol=1e-5)
    assert distance.epsilon < 1e-5
    assert distance.delta == pytest.approx(4 / 9, rel=1e-5)
    assert distance.complementarity == pytest.approx(4 / 21, rel=1e-5)
    # Stationary, though the optimum is (1, 1), and the margin ratio is 3 sqrt(2) / 5 only: with
    # dual norms, ||lam|| = 5 / 3 over ||w|| = 5 / 3, the bound says what is known, 21 / 25.
    predictor = DeepLinear.from_weights(np.array([[3.0, 4.0]]))
    bound = kkt_distance(predictor, np.eye(2), np.ones(2), None).margin_bound
    assert bound == pytest.approx(21 / 25, rel=1e-5)
    assert bound <= 3 * math.sqrt(2) / 5


def three_layers(noise: float) -> tuple[GLN, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """A network near the optimum of its data, of degree 3, and these with margins that differ."""
    rng = np.random.default_rng(3)
    X, contexts = 0.3 * rng.normal(size=(30, 4)), rng.integers(0, 2, size=(30, 2))
    y = np.sign((rng.normal(size=(2, 2, 4))[np.arange(2), contexts] * X[:, None]).sum((1, 2)))
    network = GLN.from_zeta(solve_gln_svm(X, y, contexts).zeta, upper_widths=(2,))
    with torch.no_grad():
        for p in network.parameters():
            p += noise * p.abs().max() * torch.tensor(rng.normal(size=p.shape))
    return network, (X, y, contexts)


def at_margin_1(network: GLN, X, y, contexts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights (P,) of smallest margin 1 and degree 3, their margins (n,) and gradients (n, P)."""
    network = GLN.from_weights(*network.parameters())
    inputs = torch.tensor(X), torch.tensor(contexts)
    with torch.no_grad():
        least = float((torch.tensor(y) * network(*inputs)).min())
        assert least > 0
        for p in network.parameters():
            p /= least ** (1 / 3)
    m = torch.tensor(y) * network(*inputs)
    rows = [torch.autograd.grad(one, list(network.parameters()), retain_graph=True) for one in m]
    G = np.array([np.concatenate([part.numpy().ravel() for part in row]) for row in rows])
    w = np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])
    return w, m.detach().numpy(), G


@pytest.mark.parametrize("noise", [0.01, 0.04])
def test_all_numbers_are_what_their_definitions_make_of_the_multipliers(noise) -> None:
    network, (X, y, contexts) = three_layers(noise)
    found = kkt_distance(network, X, y, contexts)
    w, m, G = at_margin_1(network, X, y, contexts)
    lam, size = found.multipliers, np.linalg.norm(w)
    fit = lam @ G
    u = w - fit
    length = np.linalg.norm(fit)
    polar = u - max((G @ u / (G @ w)).max(), 0) * w
    needed = 1 + 2 * m
    open_ = contexts.T[:, None] == np.arange(2)[:, None]
    sums = np.einsum("hcn,n,nd->hcd", open_, lam * y, X)
    expected = {
        "cosine": fit @ w / length / size,
        "residual": np.linalg.norm(u) / size,
        "residual_bound": polar @ w / np.linalg.norm(polar) / size,
        "complementarity": lam @ (m - 1) / lam.sum(),
        "epsilon": np.linalg.norm(u),
        "delta": (lam * (m - 1)).max(),
        "dual_norms": np.sqrt(size**2 / 3) * np.linalg.norm(sums, axis=(1, 2)),
        "ratio": length / (G @ fit / needed).min() / size,
        "ratio_bound": lam @ needed / length / size,
    }
    assert 0 < expected["residual_bound"] and expected["ratio"] < 1
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("n_first", [2000, 3])
def test_the_fit_is_that_of_least_squares_with_complementarity_as_one_more_weight(
    n_first, monkeypatch
) -> None:
    module = home(kkt_distance)
    monkeypatch.setattr(module, "TIGHT", 0.3)
    for name in ("_N_CANDIDATES", "_MOST_AT_FIRST"):
        monkeypatch.setattr(module, name, n_first)
    network, data = three_layers(0.04)
    w, m, G = at_margin_1(network, *data)
    tight = 0.3 * 3 / np.linalg.norm(w) * (m - 1)
    expected, _ = nnls(np.vstack([G.T, tight]), np.append(w, 0))
    found = kkt_distance(network, *data)
    np.testing.assert_allclose(found.multipliers, expected, atol=1e-7 * expected.max())


def test_the_margin_bound_is_its_formula_and_nan_without_dual_norms() -> None:
    found = kkt_distance(GLN.from_zeta(quadrants_zeta(1)), *QUADRANTS)
    for residual, norms, bound in (
        (0.5, [0.5, 2.0], 0.2), (0.5, [0.25, 0.5], 0.8), (1.5, [1.0], 0.0),
        (0.5, [0.0, 0.0], math.nan), (0.5, [], math.nan), (0.5, None, math.nan),
    ):  # fmt: skip
        given = None if norms is None else np.array(norms)
        other = dataclasses.replace(
            found, residual=residual, complementarity=0.25, dual_norms=given
        )
        assert other.margin_bound == pytest.approx(bound, nan_ok=True)


def test_multipliers_on_samples_beyond_the_margin_show_in_the_complementarity() -> None:
    # Context 0 at twice its margin: w stays in the cone of gradients, with equal multipliers on
    # margins 2, 1, 1. So sum lam (m - 1) / sum lam = 1/3.
    network = GLN.from_zeta(np.array([[[1.0, 0.0], [1.0, 0.0]]]))
    distance = kkt_distance(network, *RAYS)
    assert distance.residual < 1e-6
    # The preference for samples on the margin weighs 1e-3, and enters by its square.
    assert distance.complementarity == pytest.approx(1 / 3, rel=1e-6)


def test_a_float32_network_is_measured_in_float64() -> None:
    network = GLN.from_zeta(np.array([[[0.5, 0.0], [1.0, 0.0]]])).float()
    distance = kkt_distance(network, *RAYS)
    # Weights rounded to 6e-8 are that far from stationary, products in float32 would be farther.
    assert distance.residual < 2e-7
    assert distance.multipliers.dtype == np.float64


def test_slabs_and_chunks_change_nothing(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X, contexts = rng.normal(size=(7, 5)), rng.integers(0, 2, size=(7, 3))
    network = GLN(5, 3, 2, upper_widths=(4,))
    y = np.sign(network(torch.tensor(X), torch.tensor(contexts)).detach().numpy())
    whole = kkt_distance(network, X, y, contexts)
    assert 0.01 < whole.residual < 0.999
    # 46 weights: three samples a chunk, 20 weights a slab.
    monkeypatch.setattr(home(gradient_gram), "_MAX_ENTRIES", 141)
    parts = kkt_distance(network, X, y, contexts)
    np.testing.assert_allclose(parts.multipliers, whole.multipliers, rtol=1e-8, atol=1e-12)
    assert parts.residual == pytest.approx(whole.residual, rel=1e-12)
    assert parts.cosine == pytest.approx(whole.cosine, rel=1e-12)


class Linear(torch.nn.Module):
    """Degree 1, gates of no use, a float32 buffer and a frozen parameter."""

    degree = 1

    def __init__(self, w: list[float]) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(w, dtype=torch.float32))
        self.scale = torch.nn.Parameter(torch.tensor(2.0), requires_grad=False)
        self.register_buffer("mix", torch.eye(2) / 2)

    def forward(self, X: torch.Tensor, gates: torch.Tensor | None) -> torch.Tensor:
        return self.scale * (X @ self.mix @ self.w)


def test_any_homogeneous_module_can_be_measured_without_gates() -> None:
    # argmin ||w|| with 2 w_1 >= 1 and 3 w_1 + w_2 >= 1 is (1/2, 0) = lam (2, 0), lam = 1/4.
    X, y = np.array([[2.0, 0.0], [3.0, 1.0]]), np.array([1.0, 1.0])
    distance = kkt_distance(Linear([5.0, 0.0]), X, y, None)
    np.testing.assert_allclose(distance.multipliers, [0.25, 0], atol=1e-12)
    assert distance.residual < 1e-6
    assert distance.dual_norms is None
    # At w = lam x exactly nothing is left over, of which no direction bounds anything.
    exact = kkt_distance(Linear([3.0, 0.0]), X[:1], y[:1], None)
    assert (exact.residual, exact.residual_bound) == (0.0, 0.0)
    # (1, 1) is outside the cone of (2, 0), (3, 1): nearest is its projection (6/5, 2/5) on (3, 1).
    off = kkt_distance(Linear([1.0, 1.0]), X, y, None)
    assert off.cosine == pytest.approx(2 / math.sqrt(5), rel=1e-12)
    assert off.residual == pytest.approx(1 / math.sqrt(5), rel=1e-12)
    # That has slopes 6/5 and 2 where 1 is asked for, and w = (1/2, 1/2) at margin 1.
    assert off.ratio == pytest.approx(math.sqrt(0.8) / 1.2, rel=1e-12)


class FirstLayer(GLN):
    """Of degree 1 in what is trained: the layers above are frozen."""

    degree = 1

    def __init__(self) -> None:
        super().__init__(5, 3, 2, random_state=1)
        for weight in self.upper:
            weight.requires_grad_(False)


class WithoutFactors(torch.nn.Module):
    """The same function, with nothing known of its gradients."""

    degree = 1

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, X: torch.Tensor, contexts: torch.Tensor) -> torch.Tensor:
        return self.network(X, contexts)


def test_the_next_problem_is_given_the_multipliers_of_the_last_and_the_answer_stays(
    monkeypatch,
) -> None:
    rng = np.random.default_rng(0)
    X, contexts = rng.normal(size=(120, 20)), rng.integers(0, 2, size=(120, 5))
    network = GLN(20, 5, 2)
    y = np.sign(network(torch.tensor(X), torch.tensor(contexts)).detach().numpy())
    whole = kkt_distance(network, X, y, contexts)
    module, given, found = home(kkt_distance), [], []
    solve = module.nonnegative_fit

    def fit(gram, target, guess):
        given.append(guess)
        found.append(solve(gram, target, guess))
        return found[-1]

    monkeypatch.setattr(module, "_N_CANDIDATES", 20)
    monkeypatch.setattr(module, "_MOST_AT_FIRST", 20)
    monkeypatch.setattr(module, "nonnegative_fit", fit)
    parts = kkt_distance(network, X, y, contexts)
    assert len(given) > 1 and given[0] is None
    for guess, last in zip(given[1:], found[:-1], strict=True):
        entered = int((guess == 1).sum())
        assert 0 < entered <= 20 and bool((guess[-entered:] == 1).all())
        torch.testing.assert_close(guess[:-entered][guess[:-entered] > 0], last[last > 0])
    np.testing.assert_allclose(parts.multipliers, whole.multipliers, rtol=1e-6, atol=1e-9)


def test_layers_that_are_not_trained_have_no_part_in_the_fit() -> None:
    rng = np.random.default_rng(0)
    X, contexts = rng.normal(size=(9, 5)), rng.integers(0, 2, size=(9, 3))
    network = FirstLayer().double()
    y = np.sign(network(torch.tensor(X), torch.tensor(contexts)).detach().numpy())
    distance = kkt_distance(network, X, y, contexts)
    expected = kkt_distance(WithoutFactors(network), X, y, contexts)
    assert 0.01 < expected.residual < 0.99
    assert distance.residual == pytest.approx(expected.residual, rel=1e-9)
    np.testing.assert_allclose(distance.multipliers, expected.multipliers, rtol=1e-6, atol=1e-12)


def test_weights_that_do_not_separate_are_refused_with_advice() -> None:
    network = GLN.from_zeta(-quadrants_zeta(1))
    with pytest.raises(ValueError, match=r"smallest margin .* is -1.*train longer"):
        kkt_distance(network, *QUADRANTS)
    with pytest.raises(ValueError, match=r"smallest margin .* is 0, .*train longer"):
        kkt_distance(Linear([1.0, 0.0]), np.eye(2), np.ones(2), None)


def test_a_module_without_a_degree_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`network\.degree` must be a positive int"):
        kkt_distance(torch.nn.Linear(2, 1), *QUADRANTS[:2], None)


class TwoContexts(torch.nn.Module):
    """(w1 + w2) / sqrt 2 in context 0, of degree 1; 0.1 w1^2 in context 1, of degree 2."""

    degree = 1

    def __init__(self, w: list[float]) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(w, dtype=torch.float64))

    def forward(self, X: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
        linear = self.w.sum() / math.sqrt(2) * X[:, 0]
        square = 0.1 * self.w[0] ** 2 * X[:, 0]
        return torch.where(gates[:, 0] == 0, linear, square)


def test_contexts_of_mixed_degrees_are_refused_since_training_ends_at_no_kkt_point() -> None:
    # Training goes to (1, 1): the context of degree 1 carries all of the gradient. At margin 1 the
    # square is the tight one, w1^2 = 10, and stationarity would ask w2 = 0 of w = (w1, w1).
    X, y, contexts = np.ones((2, 1)), np.ones(2), np.array([[0], [1]])
    for degree in (1, 2):
        network = TwoContexts([3.0, 3.0])
        network.degree = degree
        with pytest.raises(
            ValueError, match=rf"homogeneous of degree {degree} in its trained weights"
        ):
            kkt_distance(network, X, y, contexts)
    # The tight constraint alone: w = (w1, w1) against its gradient (w1, 0), a residual of 1/sqrt 2.
    network = TwoContexts([math.sqrt(10), math.sqrt(10)])
    network.degree = 2
    distance = kkt_distance(network, X[1:], y[1:], contexts[1:])
    assert distance.residual == pytest.approx(1 / math.sqrt(2), rel=1e-9)


def test_a_degree_that_is_not_the_networks_is_refused_and_weights_stay_as_they_are() -> None:
    network = GLN.from_zeta(quadrants_zeta(1), upper_widths=(3,))
    before = [p.detach().clone() for p in network.parameters()]

    class Claiming(GLN):
        degree = 4

    claiming = Claiming.from_weights(network.w1, *network.upper)
    with pytest.raises(ValueError, match=r"homogeneous of degree 4 .* from 1 to 8, not 16"):
        kkt_distance(claiming, *QUADRANTS)
    kkt_distance(network, *QUADRANTS)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))


def test_the_arrays_of_a_result_are_read_only() -> None:
    distance = kkt_distance(GLN.from_zeta(quadrants_zeta(1)), *QUADRANTS)
    assert distance.dual_norms is not None
    for array in (distance.multipliers, distance.dual_norms):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_several_classes_of_images_and_of_tokens_are_those_of_flat_inputs() -> None:
    torch.manual_seed(0)
    flat = torch.nn.Sequential(
        torch.nn.Linear(6, 5, bias=False), torch.nn.ReLU(), torch.nn.Linear(5, 3, bias=False)
    ).double()
    flat.degree = 2
    X = np.random.default_rng(0).normal(size=(9, 6))
    table = torch.nn.Embedding.from_pretrained(torch.tensor(X))
    images = torch.nn.Sequential(torch.nn.Flatten(), *flat)
    tokens = torch.nn.Sequential(table, torch.nn.Flatten(), *flat)
    images.degree = tokens.degree = 2
    classes = np.eye(3)[flat(torch.tensor(X)).argmax(1)]
    expected = kkt_distance(flat, X, classes, None)
    for network, inputs in ((images, X.reshape(9, 1, 2, 3)), (tokens, np.arange(9)[:, None])):
        found = kkt_distance(network, inputs, classes, None)
        assert found.residual == pytest.approx(expected.residual, rel=1e-9)
        np.testing.assert_allclose(found.multipliers, expected.multipliers, rtol=1e-6, atol=1e-9)
