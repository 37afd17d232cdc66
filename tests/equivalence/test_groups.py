"""Networks that came to the same one are told from others, whatever their order and width."""

import math

import numpy as np
import pytest
import torch

from implicit_bias import ReLU, TrainingSettings, local_limit, train
from implicit_bias.equivalence import ReLUWeights, align, group_networks, measure_distance
from implicit_bias.networks import BalancedReLU
from tests.equivalence.test_alignment import act, draw
from tests.oracles import PLANE, PLANE_LABELS


def test_networks_are_grouped_up_to_symmetry_and_a_factor() -> None:
    a, b = draw((4, 6, 1), biases=False), draw((4, 8, 1), seed=1, biases=False)
    doubled = ReLUWeights.from_arrays([2 * W for W in a.matrices])
    groups = group_networks([b, a, act(b)[0], act(doubled)[0]])
    assert groups.labels.tolist() == [0, 1, 0, 1]
    assert (groups.n_groups, groups.by) == (2, "neurons")
    assert groups.distances[0, 2] < 1e-9 < 0.1 < groups.distances[0, 1]


def test_deeper_networks_are_grouped_by_weights_and_other_sizes_stand_apart() -> None:
    a, b = draw((4, 6, 5, 1), biases=False), draw((4, 6, 5, 1), seed=1, biases=False)
    wide = draw((4, 7, 5, 1), biases=False)
    doubled = ReLUWeights.from_arrays([2 * W for W in act(a)[0].matrices])
    groups = group_networks([a, b, wide, doubled])
    assert groups.labels.tolist() == [0, 1, 2, 0]
    assert groups.by == "weights"
    assert groups.distances[0, 2] == np.inf
    with pytest.raises(ValueError, match="a network at least"):
        group_networks([])
    with pytest.raises(ValueError, match="`tol` must lie"):
        group_networks([a], tol=0)


def test_theorem_3_1_seeds_and_widths_reach_the_two_predicted_neurons() -> None:
    # w_+ = (1/3, 1/3) and w_- = (-1, 0), with masses in the ratio of their norms (u = z).
    w, norms = np.array([[1 / 3, 1 / 3], [-1.0, 0.0]]), np.array([math.sqrt(2) / 3, 1.0])
    predicted = ReLUWeights.from_arrays([w, [[1.0, -1.0]]])
    settings = TrainingSettings(trainer="normalised", schedule=((500, 0.1), (500, 0.02)))
    networks = []
    for seed, width in ((0, 20), (1, 30)):
        network = BalancedReLU(2, width, random_state=seed)
        start = measure_distance(network, predicted).distance
        train(network, PLANE, PLANE_LABELS, None, settings=settings)
        end = measure_distance(network, predicted)
        assert end.distance < 0.05 < 0.3 < start
        assert end.positive_a == pytest.approx(norms[0] / norms.sum(), abs=0.02)
        networks.append(network)
    one_sided = BalancedReLU.from_weights(torch.eye(2), torch.ones(2))
    assert group_networks([*networks, one_sided], tol=0.1).labels.tolist() == [0, 0, 1]


def test_local_limits_of_seeds_are_one_network_the_one_that_theorem_3_1_names() -> None:
    predicted = ReLUWeights.from_arrays([[[1 / 3, 1 / 3], [-1.0, 0.0]], [[1.0, -1.0]]])
    settings = TrainingSettings(trainer="normalised", schedule=((500, 0.1), (300, 0.02)))
    limits = []
    for seed in (0, 1):
        network = ReLU(2, 8, init="balanced", init_scale=0.05, random_state=seed)
        train(network, PLANE, PLANE_LABELS, None, settings=settings)
        gates = network.gates(PLANE)
        found = local_limit(network.freeze_gates(), PLANE, PLANE_LABELS, gates)
        limits.append(ReLUWeights.from_arrays(found.weights.values()))
        # It is a ReLU network too: its own gates are the frozen ones.
        own = limits[-1].pre_activations(PLANE)[0] >= 0
        np.testing.assert_array_equal(own, gates.numpy())
        assert 1e-3 < measure_distance(network, limits[-1]).distance < 0.1
    groups = group_networks([*limits, predicted], tol=1e-6)
    assert groups.n_groups == 1
    assert groups.distances.max() < 1e-7
    # As weights as well, parallel neurons merged.
    assert align(limits[0], predicted, tol=1e-7).is_equivalent
