"""Networks modulo permutations and positive scales: known symmetries are found again exactly."""

from itertools import permutations

import numpy as np
import pytest
import torch

from implicit_bias import ReLU, Status
from implicit_bias.equivalence import ReLUWeights, align, canonical_form
from implicit_bias.networks import BalancedReLU, DeepLinear, DeepReLU

SIZES = [(4, 20, 1), (4, 30, 30, 30, 1), (3, 7, 5, 2)]


def draw(sizes, seed=0, *, biases=True) -> ReLUWeights:
    rng = np.random.default_rng(seed)
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    matrices = [rng.normal(size=shape) for shape in shapes]
    return ReLUWeights.from_arrays(matrices, [rng.normal(size=m) * biases for m, _ in shapes])


def act(weights, seed=1):
    """Equations (2.1) to (2.4) in loops of their own: the network, its P and M of each layer."""
    rng = np.random.default_rng(seed)
    Ws, bs = [W.copy() for W in weights.matrices], [b.copy() for b in weights.biases]
    orders, scales = [], []
    for layer, width in enumerate(weights.widths):
        P = np.eye(width)[rng.permutation(width)]
        M = np.diag(rng.lognormal(size=width))
        Ws[layer], bs[layer] = M @ P @ Ws[layer], M @ P @ bs[layer]
        Ws[layer + 1] = Ws[layer + 1] @ P.T @ np.linalg.inv(M)
        orders.append(P.argmax(axis=1))
        scales.append(np.diag(M))
    return ReLUWeights.from_arrays(Ws, bs), orders, scales


def same(a, b, rtol=1e-10):
    for x, y in zip((*a.matrices, *a.biases), (*b.matrices, *b.biases), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("biases", [True, False])
def test_permutations_and_scales_of_an_equivalent_network_are_recovered_exactly(
    sizes, biases
) -> None:
    b = draw(sizes, biases=biases)
    a, orders, scales = act(b)
    found = align(a, b)
    assert found.status is Status.EQUIVALENT
    assert found.distance < 1e-12
    for layer in range(len(b.widths)):
        np.testing.assert_array_equal(found.units[layer], np.arange(b.widths[layer]))
        np.testing.assert_array_equal(found.permutations[layer], orders[layer])
        np.testing.assert_allclose(found.scales[layer], scales[layer], rtol=1e-11)
    same(found.aligned, a)
    np.testing.assert_allclose(found.cosine_per_layer, 1, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scaling", ["balanced", "unit"])
def test_equivalent_networks_have_one_canonical_form_and_it_is_the_same_function(
    sizes, scaling
) -> None:
    b = draw(sizes)
    a, _, _ = act(b)
    one, other = (canonical_form(network, scaling=scaling) for network in (a, b))
    same(one.weights, other.weights)
    X = np.random.default_rng(2).normal(size=(50, sizes[0]))
    np.testing.assert_allclose(one.weights.scores(X), b.scores(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_balanced_form_has_the_least_norm_of_all_scales(sizes) -> None:
    form = canonical_form(draw(sizes))
    assert form.imbalance < 1e-12
    # Strictly convex in the logarithms: along every line through the minimum the norm grows.
    assert all(act(form.weights, seed)[0].norm > form.weights.norm for seed in range(5))
    if len(sizes) == 3:
        # Two layers: the sum of in^2 + out^2 is least 2 in out; output biases stay.
        b = draw(sizes)
        ins, outs = np.linalg.norm(b.rows(0), axis=1), np.linalg.norm(b.matrices[1], axis=0)
        least = 2 * ins @ outs + (b.biases[1] ** 2).sum()
        assert form.weights.norm**2 == pytest.approx(least, rel=1e-12)
    unit = canonical_form(draw(sizes), scaling="unit").weights
    for layer in range(len(unit.widths)):
        np.testing.assert_allclose(np.linalg.norm(unit.rows(layer), axis=1), 1, rtol=1e-12)


def test_dead_constant_and_parallel_units_are_no_part_of_the_form() -> None:
    plain = draw((3, 4, 3, 1), seed=1)
    assert canonical_form(plain).n_dead == 0
    W1, W2, W3 = plain.matrices
    b1, b2, b3 = plain.biases
    more = ReLUWeights.from_arrays(
        [
            # Twice unit 0; a constant 2; a unit that reaches nobody.
            np.vstack([W1, 2 * W1[:1], np.zeros((1, 3)), np.ones((1, 3))]),
            # Half of what unit 0 gave comes from its double; a unit never active on activations.
            np.vstack(
                [
                    np.column_stack([W2[:, 0] / 2, W2[:, 1:], W2[:, 0] / 4, W2[:, 1], 0 * b2]),
                    -np.ones((1, 7)),
                ]
            ),
            np.column_stack([W3, [1.0]]),
        ],
        [np.append(b1, [2 * b1[0], 2.0, 1.0]), np.append(b2 - 2 * W2[:, 1], -1.0), b3],
    )
    form = canonical_form(more)
    assert (form.n_dead, form.n_constant, form.n_merged) == (2, 1, 1)
    same(form.weights, canonical_form(plain).weights)
    assert align(plain, more).is_equivalent


def test_networks_that_are_not_equivalent_are_matched_by_weights_and_marked_so() -> None:
    a = draw((4, 12, 12, 1))
    b, orders, _ = act(a)
    rng = np.random.default_rng(3)
    noisy = ReLUWeights.from_arrays(
        [W * (1 + 0.03 * rng.normal(size=W.shape)) for W in b.matrices], b.biases
    )
    found = align(noisy, a)
    assert found.status is Status.HEURISTIC
    assert "heuristic" in found.status.advice
    assert 1e-3 < found.distance < 0.1
    for layer, permutation in enumerate(orders):
        np.testing.assert_array_equal(found.permutations[layer], permutation)
    X = rng.normal(size=(20, 4))
    np.testing.assert_allclose(found.aligned.scores(X), a.scores(X), rtol=1e-9, atol=1e-9)
    # Nothing is near here, and no match is called an equivalence.
    assert not align(a, draw((4, 12, 12, 1), seed=9)).is_equivalent


def test_weight_matching_of_two_layers_finds_the_nearest_permutation() -> None:
    # Two layers: the sum of products is an assignment problem, so that the match is the best one.
    a, b = draw((2, 5, 1), seed=4), draw((2, 5, 1), seed=5)
    one, other = canonical_form(a).weights, canonical_form(b).weights
    best = min(
        np.linalg.norm(one.rows(0) - other.rows(0)[list(p)]) ** 2
        + np.linalg.norm(one.matrices[1] - other.matrices[1][:, list(p)]) ** 2
        for p in permutations(range(5))
    )
    best += (one.biases[1] - other.biases[1])[0] ** 2
    assert align(a, b).distance == pytest.approx(np.sqrt(best) / one.norm, rel=1e-10)


def test_directions_are_compared_up_to_a_factor_of_all_weights() -> None:
    b = draw((4, 6, 5, 1), biases=False)
    a, _, _ = act(b)
    tripled = ReLUWeights.from_arrays([3 * W for W in a.matrices])
    assert not align(tripled, b).is_equivalent
    found = align(tripled, b, direction=True)
    assert found.is_equivalent
    assert found.factor == pytest.approx(3, rel=1e-10)
    with pytest.raises(ValueError, match="without biases"):
        align(draw((4, 6, 1)), draw((4, 6, 1)), direction=True)


def test_modules_are_read_and_others_refused() -> None:
    torch.manual_seed(0)
    sequential = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 4), torch.nn.ReLU(),
        torch.nn.Linear(4, 1),
    )  # fmt: skip
    balanced = BalancedReLU(3, 6)
    for network in (sequential, ReLU(3, 6), DeepReLU(3, (5, 4)), balanced):
        assert align(network, network).is_equivalent
    two = ReLU.from_weights(balanced.W.detach(), balanced.a.detach())
    assert align(two, balanced).is_equivalent
    with pytest.raises(ValueError, match="DeepLinear is not a fully connected ReLU network"):
        canonical_form(DeepLinear(3, hidden_widths=(5,)))
    with pytest.raises(ValueError, match=r"\(3, 5, 1\) and \(3, 6, 1\)"):
        align(draw((3, 5, 1)), draw((3, 6, 1)))
    with pytest.raises(ValueError, match="constant"):
        canonical_form(ReLUWeights.from_arrays([np.zeros((2, 3)), np.ones((1, 2))]))
    with pytest.raises(ValueError, match="NaN or infinite"):
        ReLUWeights.from_arrays([np.full((2, 3), np.nan), np.ones((1, 2))])


def test_a_chain_of_nearly_parallel_units_merges_into_one_and_none_is_lost() -> None:
    angles = 0.9e-3 * np.arange(5)
    W = np.column_stack([np.cos(angles), np.sin(angles)])
    fan = ReLUWeights.from_arrays([W, np.ones((1, 5))])
    form = canonical_form(fan, tol=1e-3)
    assert form.n_merged == 4
    X = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(form.weights.scores(X), fan.scores(X), atol=0.05)
