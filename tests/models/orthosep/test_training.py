"""ReLU networks from near zero to their limit on orthogonally separable data."""

import math

import matplotlib
import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from implicit_bias import Sample, TrainingSettings, compare, kkt_distance, solve_orthosep, train
from implicit_bias.data import orthosep_dataset
from implicit_bias.datasets import make_orthosep
from implicit_bias.models.orthosep import (
    diagnose_orthosep,
    halving_phases,
    layer_singular_values,
    neuron_groups,
    plot_orthosep,
)
from implicit_bias.networks import BalancedReLU, ResidualReLU
from solvers import GatedDesign, MaxMarginProgram, solve
from tests.oracles import PLANE as X
from tests.oracles import PLANE_LABELS as Y

matplotlib.use("Agg")

W_PLUS, W_MINUS = np.array([1 / 3, 1 / 3]), np.array([-1.0, 0.0])
NORM_PLUS, NORM_MINUS = math.sqrt(2) / 3, 1.0
CONSTANT = 1 / (2 * (NORM_PLUS + NORM_MINUS))
TRAIN = Sample(X, Y, None)


def halving(inputs: np.ndarray, **phases: int) -> TrainingSettings:
    return TrainingSettings(trainer="normalised", schedule=halving_phases(inputs, **phases))


def ring() -> Sample:
    """Held-out inputs in all directions; labels play no part for them."""
    turns = np.linspace(0, 2 * np.pi, 90, endpoint=False)
    points = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return Sample(points, np.ones(90), None)


@pytest.fixture(scope="module")
def trained() -> BalancedReLU:
    network = BalancedReLU(2, 16, init_scale=0.01, random_state=0)
    train(network, X, Y, None, settings=halving(X))
    return network


@pytest.mark.long
def test_a_trained_network_comes_to_the_limit_in_neurons_function_and_constants(trained) -> None:
    d = diagnose_orthosep(trained, solve_orthosep(X, Y), TRAIN, ring())
    assert d.log_inverse_loss > 1000
    assert {1, -1} <= set(d.group)
    assert np.nanmin(d.cosines) > 0.999
    assert d.mean_cosine > 0.99999
    assert d.function_cosine > 0.999999
    assert d.constant == pytest.approx(CONSTANT, rel=1e-7)
    # E3.8: the constants that the seed leaves open are equal and determined.
    assert d.u == pytest.approx(CONSTANT, rel=1e-3)
    assert d.z == pytest.approx(CONSTANT, rel=1e-3)
    assert d.normalised_margin == pytest.approx(CONSTANT, rel=1e-3)
    assert d.growth_positive == pytest.approx(NORM_PLUS, rel=2e-3)
    assert d.growth_negative == pytest.approx(NORM_MINUS, rel=2e-3)
    assert d.imbalance < 1e-3


def test_the_trained_network_itself_gives_these_numbers_without_the_package(trained) -> None:
    W, a = trained.W.detach().numpy(), trained.a.detach().numpy()
    for w, weight in zip(W, a, strict=True):
        target = W_PLUS / NORM_PLUS if weight > 0 else W_MINUS
        assert w @ target > 0.999 * np.linalg.norm(w)
    size = np.sum(W**2) + np.sum(a**2)
    scores = np.maximum(ring().X @ W.T, 0) @ a / size
    limit = np.maximum(ring().X @ W_PLUS, 0) - np.maximum(ring().X @ W_MINUS, 0)
    np.testing.assert_allclose(scores, CONSTANT * limit, atol=2e-3 * CONSTANT)


def test_compare_finds_the_trained_network_at_the_certified_optimum(trained) -> None:
    limit = solve_orthosep(X, Y)
    result = compare(limit, trained, TRAIN, ring())
    assert 0.999 < result.margin_ratio <= 1
    assert result.zeta_cosine > 0.9999
    assert result.kkt_cosine > 0.9999
    assert result.agreement == 1


def test_live_neurons_end_in_the_extremal_sectors(trained) -> None:
    signs = np.sign(trained.W.detach().numpy() @ X.T)
    for pattern, weight in zip(signs, trained.a.detach().numpy(), strict=True):
        # Lemma 3.2: early in training neurons turn to the sum of their class.
        expected = np.sign(X @ X[np.sign(weight) == Y].sum(axis=0))
        np.testing.assert_array_equal(pattern, expected)


def test_the_program_on_the_learned_gates_has_the_optimum_of_the_two_classes(trained) -> None:
    gates = (X @ trained.W.detach().numpy().T >= 0).astype(float)
    program = MaxMarginProgram(GatedDesign(X, gates, np.arange(16)), Y)
    optimum = solve(program).require().certificate.objective
    assert optimum == pytest.approx(NORM_PLUS + NORM_MINUS, rel=1e-7)


def test_training_keeps_signs_and_balance_and_freezes_dead_neurons() -> None:
    # A neuron that no sample activates gets no gradient; here both signs of one.
    W = np.array([[0.02, 0.01], [-0.01, 0.002], [0.001, -0.02], [0.003, -0.02]])
    a = np.linalg.norm(W, axis=1) * [1.0, -1.0, 1.0, -1.0]
    data = np.array([[1.0, 0.3], [0.8, 0.4], [-1.0, -0.0], [-0.9, 0.1]])
    labels = np.array([1.0, 1.0, -1.0, -1.0])
    data[2:, 1] = [0.05, 0.1]
    dead = ~np.any(W @ data.T > 0, axis=1)
    np.testing.assert_array_equal(dead, [False, False, True, True])
    network = BalancedReLU.from_weights(W, a)
    train(network, data, labels, None, settings=halving(data, n_phases=5))
    after = network.W.detach().numpy()
    np.testing.assert_array_equal(after[dead], W[dead])
    assert np.all(after[~dead] != W[~dead])
    np.testing.assert_array_equal(np.sign(network.a.detach().numpy()), np.sign(a))
    d = diagnose_orthosep(network, solve_orthosep(data, labels), Sample(data, labels, None), ring())
    np.testing.assert_array_equal(d.group, [1, -1, 0, 0])
    assert (d.share_positive, d.share_negative, d.share_dead) == (0.25, 0.25, 0.5)
    np.testing.assert_array_equal(np.isnan(d.cosines), dead)


def test_small_steps_keep_the_balance_that_gradient_flow_keeps() -> None:
    def imbalance(rate: float) -> float:
        network = BalancedReLU(2, 16, init_scale=0.01, random_state=0)
        settings = TrainingSettings(batch_size=0, schedule=((round(20 / rate), rate),))
        train(network, X, Y, None, settings=settings)
        drift = network.a.detach() ** 2 - network.W.detach().square().sum(1)
        return float(drift.abs().max())

    coarse, fine = imbalance(0.05), imbalance(0.0125)
    assert fine < 0.3 * coarse < 0.01


@pytest.mark.long
def test_neurons_of_one_sign_alone_have_the_constant_of_one_class() -> None:
    own = X[Y > 0]
    start = BalancedReLU(2, 12, init_scale=0.01, random_state=1)
    network = BalancedReLU.from_weights(start.W, start.a.abs())
    train(network, own, np.ones(3), None, settings=halving(own))
    d = diagnose_orthosep(network, solve_orthosep(X, Y), Sample(own, np.ones(3), None), ring())
    assert not np.any(d.group == -1)
    assert d.constant == pytest.approx(1 / (2 * NORM_PLUS), rel=1e-7)
    assert d.u == pytest.approx(1 / (2 * NORM_PLUS), rel=1e-3)
    assert d.z == 0
    assert math.isnan(d.growth_negative)


def polynomial_slope(margins: torch.Tensor) -> torch.Tensor:
    """Derivative of log of the mean of l(m) = 1 / (1 + m), or 1 - m for m < 0.

    l' is bounded by 1 and Lipschitz, and never 0: all that the seed asks of a loss.
    """
    value = torch.where(margins >= 0, 1 / (1 + margins.clamp(min=0)), 1 - margins)
    slope = torch.where(margins >= 0, -1 / (1 + margins.clamp(min=0)) ** 2, -1.0)
    return slope / value.sum()


@pytest.mark.long
def test_a_loss_with_a_polynomial_tail_has_another_limit_direction() -> None:
    # E3.5. In the tail the loss is sum_i 1 / <w, x_i>, homogeneous: its direction minimises that.
    data = np.array([[1.0, 0.1], [1.0, 0.15], [1.0, 0.2], [0.3, 1.0]])
    angles = minimize_scalar(
        lambda t: np.sum(1 / (data @ [np.cos(t), np.sin(t)])), bounds=(0.05, 1.5),
        method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    w_plus = solve_orthosep(data, np.ones(4)).w_plus
    max_margin = math.atan2(w_plus[1], w_plus[0])
    assert abs(angles.x - max_margin) > 0.1
    starts = BalancedReLU(2, 6, init_scale=0.01, random_state=0)
    ends = []
    for tail in ("polynomial", "logistic"):
        network = BalancedReLU.from_weights(starts.W, starts.a.abs())
        if tail == "logistic":
            train(network, data, np.ones(4), None, settings=halving(data))
        else:
            inputs, parameters = torch.tensor(data), list(network.parameters())
            for _ in range(800):
                margins = network(inputs)
                slopes = polynomial_slope(margins.detach())
                # The gradient of log(loss) falls like 1 / ||theta||: steps grow with the weights.
                rate = 0.05 * max(1.0, sum(float(p.detach().square().sum()) for p in parameters))
                gradients = torch.autograd.grad(margins, parameters, slopes)
                with torch.no_grad():
                    for p, g in zip(parameters, gradients, strict=True):
                        p -= rate * g
            assert float(margins.detach().min()) > 1e6
        total = network.zeta().detach().numpy()[0]
        ends.append(math.atan2(total[1], total[0]))
    assert ends[0] == pytest.approx(angles.x, abs=1e-3)
    assert ends[1] == pytest.approx(max_margin, abs=1e-3)


@pytest.mark.long
def test_the_seeds_experiment_shows_two_singular_values_and_two_rays() -> None:
    data = orthosep_dataset(n_val=200)
    sample = Sample(data.X_train, data.y_train, None)
    network = BalancedReLU(20, 100, init_scale=0.03, random_state=0)
    settings = TrainingSettings(batch_size=50, schedule=((5000, 0.1),))  # 500 epochs
    train(network, *sample, settings=settings)
    limit = solve_orthosep(data.X_train, data.y_train)
    d = diagnose_orthosep(network, limit, sample, Sample(data.X_val, data.y_val, None))
    assert d.singular_values[1] > 3 * d.singular_values[2]
    assert np.mean(d.cosines > 0.9) > 0.7
    assert d.mean_cosine > 0.9
    assert d.function_cosine > 0.99


@pytest.mark.long
def test_a_residual_network_comes_near_rank_two_in_every_layer() -> None:
    data, labels = make_orthosep(100, 8, random_state=0)
    network = ResidualReLU(8, 30, random_state=0)
    start = layer_singular_values(network)
    assert len(start) == 4
    settings = TrainingSettings(batch_size=50, schedule=((2000, 0.1),))
    train(network, data, labels, None, settings=settings)
    for before, after in zip(start[:3], layer_singular_values(network)[:3], strict=True):
        assert after[2] < 0.3 * after[1]
        assert before[2] > 0.6 * before[1]
    sample = Sample(data, labels, None)
    d = diagnose_orthosep(network, solve_orthosep(data, labels), sample, sample)
    assert d.mean_cosine > 0.85
    assert d.function_cosine > 0.97
    assert math.isnan(d.u)
    with pytest.raises(TypeError, match=r"network\.degree"):
        kkt_distance(network, data, labels, None)


def test_forward_passes_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(7, 3))
    two = BalancedReLU(3, 5, init_scale=0.4, random_state=1)
    W, a = two.W.detach().numpy(), two.a.detach().numpy()
    expected = [sum(a[j] * max(W[j] @ x, 0) for j in range(5)) for x in inputs]
    np.testing.assert_allclose(two(torch.tensor(inputs), None).detach(), expected)
    np.testing.assert_allclose(two.unit_norms().detach(), np.abs(a) * np.linalg.norm(W, axis=1))
    for depth in (2, 4):
        net = ResidualReLU(3, 5, n_layers=depth, init_scale=1.0, random_state=1)
        layers = [V.detach().numpy() for V in net.layers]
        assert len(layers) == depth
        h = inputs @ layers[0].T
        for V in layers[1:-1]:
            h = h + np.maximum(h, 0) @ V.T
        expected = np.maximum(h, 0) @ layers[-1][0]
        np.testing.assert_allclose(net(torch.tensor(inputs)).detach(), expected)
    assert not np.allclose(expected, np.maximum(h, 0).sum(1))


def test_initial_weights_are_balanced_small_and_uniform_in_direction() -> None:
    network = BalancedReLU(3, 4000, init_scale=0.02, random_state=3)
    W, a = network.W.detach().numpy(), network.a.detach().numpy()
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), 0.02)
    np.testing.assert_allclose(np.abs(a), 0.02)
    assert abs(np.mean(a > 0) - 0.5) < 4 * 0.5 / math.sqrt(4000)
    second_moments = W.T @ W / 0.02**2 / 4000
    np.testing.assert_allclose(second_moments, np.eye(3) / 3, atol=0.03)


def test_dual_norms_are_those_of_the_samples_that_a_neuron_sees() -> None:
    network = BalancedReLU.from_weights([[1.0, 0.0], [0.0, -1.0], [0.0, 1.0]], [1.0, 1.0, -1.0])
    data = torch.tensor([[3.0, 4.0], [-1.0, 2.0]], dtype=network.W.dtype)
    norms = network.dual_norms(torch.tensor([2.0, -1.0]), data)
    np.testing.assert_allclose(norms, [10.0, 0.0, math.hypot(7, 6)], rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: halving_phases(np.zeros((2, 2))), "max"),
        (lambda: halving_phases(X, rate=0.0), "`rate`"),
    ],
)
def test_impossible_sizes_are_refused(make, words) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_rates_are_in_units_of_the_longest_input() -> None:
    # theta / sqrt(s) on s X has the same scores, and its gradient is sqrt(s) times as long: a
    # rate divided by s moves it by 1 / sqrt(s) of the step. All of training scales along.
    networks = [BalancedReLU(2, 4, init_scale=0.1 / math.sqrt(s), random_state=0) for s in (1, 100)]
    for network, s in zip(networks, (1, 100), strict=True):
        train(network, s * X, Y, None, settings=halving(s * X, n_phases=3))
    torch.testing.assert_close(10 * networks[1].W, networks[0].W, rtol=1e-6, atol=1e-12)


def test_diagnosis_of_a_network_whose_every_number_is_known() -> None:
    # Neurons 2 w_plus-ish at an angle, exactly w_minus, dead; ||theta||^2 and scores by hand.
    W = np.array([[1.0, 0.0], [-2.0, 0.0], [-0.05, -0.2]])
    a = np.array([3.0, -2.0, 0.5])
    network = BalancedReLU.from_weights(W, a)
    data, labels = X[:4], Y[:4]  # the last neuron sees none of these
    sample = Sample(data, labels, None)
    d = diagnose_orthosep(network, solve_orthosep(X, Y), sample, ring())
    np.testing.assert_array_equal(d.group, [1, -1, 0])
    np.testing.assert_allclose(d.cosines, [1 / math.sqrt(2), 1, math.nan], rtol=1e-6)
    assert d.mean_cosine == pytest.approx((1 / math.sqrt(2) + 2) / 3, rel=1e-6)
    np.testing.assert_allclose(d.singular_values, np.linalg.svd(W)[1])
    np.testing.assert_allclose(d.norms, np.linalg.norm(W, axis=1))
    margins = np.array([6.0, 3.0, 9.0, 4.0])
    log_inverse = -math.log(np.mean(np.log1p(np.exp(-margins))))
    assert d.log_inverse_loss == pytest.approx(log_inverse)
    assert d.growth_positive == pytest.approx(1 / log_inverse)
    assert d.growth_negative == pytest.approx(4 / log_inverse)
    size = 5.0425 + 13.25
    assert d.normalised_margin == pytest.approx(3 / size)
    # Least squares of (6, 3, 9) on the ramps (1, 1, 5/3), and of 4 on 1, over ||theta||^2.
    assert d.u == pytest.approx((6 + 3 + 15) / (1 + 1 + 25 / 9) / size, rel=1e-6)
    assert d.z == pytest.approx(4 / size, rel=1e-6)
    assert d.imbalance == pytest.approx(1.0)
    np.testing.assert_allclose(np.linalg.norm(d.plane, axis=1), d.norms)
    np.testing.assert_allclose(d.plane @ d.directions[1], -W[:, 0], atol=1e-6)
    assert dict(d.rows())["neurons positive / negative / dead"] == "33% / 33% / 33%"
    assert d.to_dict()["group"] == [1, -1, 0]
    with pytest.raises(ValueError, match="read-only"):
        d.cosines[0] = 0.0
    np.testing.assert_array_equal(neuron_groups(W, a, -data), [1, -1, 1])


def test_a_limit_with_other_inputs_is_refused() -> None:
    limit = solve_orthosep(X, Y)
    with pytest.raises(ValueError, match="3 inputs, the limit 2"):
        diagnose_orthosep(BalancedReLU(3, 4), limit, TRAIN, ring())


def test_the_picture_has_three_panels_that_show_the_diagnosis(trained, tmp_path) -> None:
    import matplotlib.pyplot as plt

    d = diagnose_orthosep(trained, solve_orthosep(X, Y), TRAIN, ring())
    figure, given = plt.subplots(1, 3)
    axes = plot_orthosep(d, given)
    assert axes == list(given)
    shares = axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(shares, d.singular_values / d.singular_values[0])
    points = {line.get_label().split()[0]: line for line in axes[1].lines}
    positive = np.stack(points["positive"].get_data(), axis=1)
    expected = d.plane[d.group == 1] / d.norms.max()
    np.testing.assert_allclose(positive, expected)
    ray = np.stack(axes[1].lines[0].get_data(), axis=1)[1]
    np.testing.assert_allclose(ray / np.linalg.norm(ray), d.directions[0], atol=1e-9)
    heights = sum(patch.get_height() for patch in axes[2].patches)
    assert heights == np.sum(d.group != 0)
    figure.savefig(tmp_path / "three.svg")
    plt.close(figure)
    with pytest.raises(ValueError, match="three Axes"):
        plot_orthosep(d, given[:2])
    plt.close(plot_orthosep(d)[0].figure)
