"""GLN: the function it computes, its symmetries, its factorisations, its initial weights."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from implicit_bias.models.gln.network import GLN

H, C, D, N = 3, 4, 5, 11
DEPTHS = [(), (6,), (2, 7)]


@pytest.fixture
def data() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(7)
    X, contexts = rng.normal(size=(N, D)), rng.integers(0, C, size=(N, H))
    return torch.tensor(X), torch.tensor(contexts)


def make(upper_widths=(), **kwargs) -> GLN:
    return GLN(D, H, C, upper_widths=upper_widths, **kwargs)


@pytest.mark.parametrize("upper_widths", DEPTHS)
def test_score_is_the_sum_over_units_of_head_times_the_gated_product(data, upper_widths) -> None:
    X, contexts = data
    network = make(upper_widths, random_state=3)
    w1 = network.w1.detach().numpy()
    product = np.eye(H)
    for V in network.upper:
        product = V.detach().numpy() @ product
    head = product[0]
    expected = [
        sum(head[h] * np.dot(w1[h, int(contexts[i, h])], X[i].numpy()) for h in range(H))
        for i in range(N)
    ]
    np.testing.assert_allclose(network(X, contexts).detach(), expected, rtol=1e-12)


@pytest.mark.parametrize("upper_widths", DEPTHS)
@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_scaling_all_weights_scales_the_scores_by_its_power_of_the_degree(
    data, upper_widths, factor
) -> None:
    network = make(upper_widths)
    before = network(*data).detach()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(factor)
    assert network.degree == 2 + len(upper_widths)
    torch.testing.assert_close(network(*data).detach(), factor**network.degree * before)


@pytest.mark.parametrize("upper_widths", DEPTHS)
def test_networks_with_one_zeta_have_the_same_scores_at_every_depth(data, upper_widths) -> None:
    X, contexts = data
    zeta = (
        np.random.default_rng(1).normal(size=(H, C, D)) * np.array([1.0, 10.0, 0.1])[:, None, None]
    )
    network = GLN.from_zeta(zeta, upper_widths=upper_widths)
    rows = [
        sum(np.dot(zeta[h, int(contexts[i, h])], X[i].numpy()) for h in range(H)) for i in range(N)
    ]
    np.testing.assert_allclose(network(X, contexts).detach(), rows, rtol=1e-12)
    np.testing.assert_allclose(network.zeta().detach(), zeta, rtol=1e-12)
    np.testing.assert_allclose(
        network.unit_norms().detach(), [np.linalg.norm(zeta[h]) for h in range(H)], rtol=1e-12
    )


@pytest.mark.parametrize("upper_widths", DEPTHS)
def test_the_balanced_factorisation_has_the_least_norm_by_the_arithmetic_geometric_mean(
    upper_widths,
) -> None:
    # Along a chain of L + 1 layers ||w||^2 >= (L + 1) (sum of ||zeta_h||)^(2 / (L + 1)).
    zeta = np.random.default_rng(2).normal(size=(H, C, D))
    network = GLN.from_zeta(zeta, upper_widths=upper_widths)
    total = sum(np.linalg.norm(zeta[h]) for h in range(H))
    squared = sum(float(p.detach().square().sum()) for p in network.parameters())
    layers = 2 + len(upper_widths)
    assert squared == pytest.approx(layers * total ** (2 / layers), rel=1e-12)


@pytest.mark.parametrize("upper_widths", [(), (4,)])
def test_a_dead_unit_and_a_zero_function_have_finite_weights(data, upper_widths) -> None:
    zeta = np.random.default_rng(3).normal(size=(H, C, D))
    zeta[1] = 0.0
    for target in (zeta, 0 * zeta):
        network = GLN.from_zeta(target, upper_widths=upper_widths)
        np.testing.assert_allclose(network.zeta().detach(), target, atol=1e-14)


def test_from_weights_keeps_weights_and_dtype_and_takes_w2_as_a_vector(data) -> None:
    rng = np.random.default_rng(4)
    w1, w2 = rng.normal(size=(H, C, D)).astype(np.float32), np.array([0.7, -1.3, 2.0])
    network = GLN.from_weights(w1, w2)
    assert network.w1.dtype == torch.float32
    np.testing.assert_array_equal(network.w1.detach(), w1)
    zeta = w2[:, None, None] * w1
    np.testing.assert_allclose(network.zeta().detach(), zeta, rtol=1e-6)
    norms = [np.linalg.norm(zeta[h]) for h in range(H)]
    np.testing.assert_allclose(network.unit_norms().detach(), norms, rtol=1e-6)


@pytest.mark.parametrize("upper", [[], [(H,), (1, H)], [(2, H), (1, 3)], [(2, H)]])
def test_upper_matrices_that_do_not_chain_from_units_to_one_score_are_refused(upper) -> None:
    with pytest.raises(ValueError, match="upper matrices must have shapes"):
        GLN.from_weights(np.ones((H, C, D)), *(np.ones(shape) for shape in upper))


@pytest.mark.parametrize("upper_widths", DEPTHS)
def test_balanced_initialisation_conserves_nothing_but_zeros(upper_widths) -> None:
    # V_1^T V_1 has ||w1[h]||^2 on its diagonal, and V_{l+1}^T V_{l+1} = V_l V_l^T above.
    network = make(upper_widths, init="balanced", init_scale=0.01, random_state=5)
    upper = [V.detach() for V in network.upper]
    first = network.w1.detach().square().sum(dim=(1, 2))
    torch.testing.assert_close((upper[0].T @ upper[0]).diagonal(), first)
    for below, above in pairwise(upper):
        torch.testing.assert_close(above.T @ above, below @ below.T, rtol=1e-10, atol=1e-16)


def test_orthogonal_initialisation_has_orthonormal_rows_times_the_scale() -> None:
    network = GLN(30, H, C, upper_widths=(2,), init_scale=0.5)
    for matrix in (network.w1.detach().reshape(H * C, 30), network.upper[0].detach()):
        gram = matrix @ matrix.T
        torch.testing.assert_close(gram, 0.25 * torch.eye(len(gram), dtype=torch.float64))


def test_kaiming_initialisation_has_variance_two_over_fan_in_times_the_squared_scale() -> None:
    network = GLN(400, 50, 2, init="kaiming", init_scale=3.0)
    # 40,000 draws: the sample deviation is within 1.4 % of the true one at four sigma.
    assert float(network.w1.detach().std()) == pytest.approx(3 * math.sqrt(2 / 400), rel=0.015)
    beyond = network.w1.detach().abs() > math.sqrt(3) * 3 * math.sqrt(2 / 400)
    # Outside sqrt(3) deviations: none of a uniform variable, erfc(sqrt(3/2)) of a normal one.
    assert float(beyond.double().mean()) == pytest.approx(math.erfc(math.sqrt(1.5)), rel=0.1)


@pytest.mark.parametrize("init", ["orthogonal", "kaiming", "balanced"])
def test_initial_weights_come_from_random_state_alone(init) -> None:
    torch.manual_seed(1)
    first = make((2,), init=init, random_state=9)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = make((2,), init=init, random_state=9)
    assert torch.equal(torch.get_rng_state(), state)
    single = make((2,), init=init, random_state=9, dtype=torch.float32)
    other = make((2,), init=init, random_state=10)
    for a, b, c, d in zip(*(m.parameters() for m in (first, second, single, other)), strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a.float(), c)
        assert not torch.equal(a, d)


def test_a_numpy_generator_as_random_state_moves_on_between_networks() -> None:
    rng = np.random.default_rng(0)
    first, second = make(random_state=rng), make(random_state=rng)
    again = make(random_state=np.random.default_rng(0))
    assert torch.equal(first.w1, again.w1)
    assert not torch.equal(first.w1, second.w1)


def test_dual_norms_sum_samples_by_context_of_each_unit(data) -> None:
    X, contexts = data
    coefficients = torch.tensor(np.random.default_rng(6).normal(size=N))
    v = np.zeros((H, C, D))
    for i in range(N):
        for h in range(H):
            v[h, int(contexts[i, h])] += float(coefficients[i]) * X[i].numpy()
    norms = make().dual_norms(coefficients, X, contexts)
    np.testing.assert_allclose(norms, [np.linalg.norm(v[h]) for h in range(H)], rtol=1e-12)


@pytest.mark.parametrize("value", [-1, C])
def test_a_context_out_of_range_never_reads_the_neighbouring_unit(data, value) -> None:
    X, contexts = data
    contexts[2, 1] = value
    network = make()
    with pytest.raises(ValueError, match=f"0..{C - 1}"):
        network.prepare(contexts)
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        network(X, contexts)


def test_prepare_takes_numpy_contexts_and_returns_what_forward_takes(data) -> None:
    X, contexts = data
    network = make()
    prepared = network.prepare(contexts.numpy().astype(np.int32))
    assert prepared.dtype == torch.int64
    torch.testing.assert_close(network(X, prepared), network(X, contexts))


def test_malformed_contexts_are_refused(data) -> None:
    X, contexts = data
    network = make()
    with pytest.raises(ValueError, match=r"`contexts` must have shape \(11, 3\), got \(11, 2\)"):
        network(X, contexts[:, 1:])
    with pytest.raises(TypeError, match="must be integers"):
        network(X, contexts.double())
