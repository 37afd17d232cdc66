"""Pictures of ReLU networks."""

import numpy as np
import pytest

from implicit_bias.data.quadrants import make_quadrants
from implicit_bias.models.relu.figure import relu_lines
from implicit_bias.models.relu.network import ReLU


def test_lines_of_a_relu_network_are_where_its_gates_change() -> None:
    inputs, _ = make_quadrants(50)
    network = ReLU(3, 4)
    for h, (a, b, c) in enumerate(relu_lines(network, inputs)):
        foot = np.array([a, b]) * c / (a * a + b * b)
        w = network.w1[h].detach().numpy()
        assert w @ np.array([*foot, 1.0]) == pytest.approx(0, abs=1e-12)
