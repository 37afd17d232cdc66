"""Optimal transport of neurons: what it does not see, closed forms, and what it bounds."""

from itertools import permutations

import numpy as np
import pytest

from implicit_bias.equivalence import ReLUWeights, measure_distance
from tests.equivalence.test_alignment import act, draw


def network(W, a) -> ReLUWeights:
    return ReLUWeights.from_arrays([W, np.atleast_2d(a)])


def test_the_distance_does_not_see_symmetries_splits_and_a_factor() -> None:
    a = draw((3, 6, 1), biases=False)
    W, output = a.matrices[0], a.matrices[1][0]
    # Unit 0 in two parts of one third and two, unit 1 split after scaling; all times 5; one dead.
    split = network(
        np.vstack([W, 7 * W[0], W[1] / 3, np.ones(3)]),
        5 * np.concatenate([output * [1 / 3, 0.5, 1, 1, 1, 1], [output[0] * 2 / 21], 
                            [output[1] * 1.5, 0]]),
    )  # fmt: skip
    found = measure_distance(act(split)[0], a)
    assert found.distance < 1e-9
    assert found.mass_a == pytest.approx(5 * found.mass_b, rel=1e-12)
    assert len(found.units_a) == 8


def test_it_is_the_best_assignment_where_all_masses_are_equal() -> None:
    rng = np.random.default_rng(0)
    U, V = (rng.normal(size=(5, 3)) for _ in range(2))
    U, V = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (U, V))
    s, t = np.array([1, 1, 1, -1, -1]), np.array([1, -1, 1, -1, -1])

    def cost(order):
        chords = np.linalg.norm(U - V[list(order)], axis=1)
        return np.where(s == t[list(order)], chords, 2.0).mean()

    found = measure_distance(network(2 * U, s / 2), network(3 * V, t / 3))
    assert found.distance == pytest.approx(min(map(cost, permutations(range(5)))), rel=1e-9)
    assert -1e-9 <= found.gap < 1e-9
    assert found.certificate.residual < 1e-9
    assert (found.positive_a, found.positive_b) == pytest.approx((0.6, 0.4))


def test_to_one_neuron_all_mass_goes_and_signs_count() -> None:
    W, a = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0])
    to_first = measure_distance(network(W, a), network([[1.0, 0.0]], [1.0]))
    assert to_first.distance == pytest.approx(np.sqrt(2) / 4, rel=1e-9)
    assert measure_distance(network(W, a), network(W, -a)).distance == pytest.approx(2)


def test_units_of_next_to_no_mass_change_it_by_next_to_nothing() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        pair = []
        for light in (slice(0, 2), slice(2, 4)):
            W, a = rng.normal(size=(4, 3)), rng.normal(size=4)
            W /= np.linalg.norm(W, axis=1, keepdims=True)
            a[light] *= 1e-7
            pair.append((W, a, np.delete(np.arange(4), np.arange(4)[light])))
        whole = measure_distance(*(network(W, a) for W, a, _ in pair))
        heavy = measure_distance(*(network(W[kept], a[kept]) for W, a, kept in pair))
        # Chords and changes of sign are at most 2, of a light unit's share.
        shares = sum(1 - np.abs(a[kept]).sum() / np.abs(a).sum() for _, a, kept in pair)
        assert abs(whole.distance - heavy.distance) <= 4 * shares + 1e-7
        assert whole.gap < 1e-7


def test_functions_of_mass_one_differ_on_the_unit_ball_by_no_more_than_the_distance() -> None:
    rng = np.random.default_rng(1)
    for seed in range(5):
        a = draw((2, 4, 1), seed, biases=False)
        near = ReLUWeights.from_arrays([W + 0.1 * rng.normal(size=W.shape) for W in a.matrices])
        found = measure_distance(a, near)
        angles = np.linspace(0, 2 * np.pi, 400)
        X = np.column_stack([np.cos(angles), np.sin(angles)])
        off = np.abs(a.scores(X) / found.mass_a - near.scores(X) / found.mass_b).max()
        assert 0 < off <= found.distance + 1e-12


def test_biases_are_part_of_a_neuron_and_deeper_networks_are_refused() -> None:
    a = draw((2, 5, 1))
    moved = ReLUWeights.from_arrays(a.matrices, [a.biases[0] + 1, a.biases[1]])
    assert measure_distance(a, act(a)[0]).distance < 1e-9
    assert measure_distance(a, moved).distance > 0.1
    with pytest.raises(ValueError, match="two layers and one output"):
        measure_distance(a, draw((2, 5, 4, 1)))
    with pytest.raises(ValueError, match="the same inputs, got 2 and 3"):
        measure_distance(a, draw((3, 5, 1)))
    with pytest.raises(ValueError, match="no neuron has a mass"):
        measure_distance(network(np.zeros((2, 2)), np.ones(2)), network(np.eye(2), np.ones(2)))
