"""Why a run is not yet where it is heading, as a row of `experiments.starts` says it."""

from __future__ import annotations

import numpy as np

from experiments.starts import reason, unit_shares
from implicit_bias import DeepLinear, FReLU, local_limit

# Each unit sees one sample, and margin 1 there takes a product of norms 1 / |x|.
X, Y, GATES = np.array([[1.0, 2.0], [2.0, 0.0]]), np.array([1.0, -1.0]), np.eye(2)


def test_a_unit_that_has_not_grown_is_named_with_its_share_and_that_in_the_limit() -> None:
    network = FReLU.from_weights(np.array([[1.0, 2.0], [-0.1, 0.0]]), np.array([[5.0**0.5, 0.1]]))
    local = local_limit(network, X, Y, GATES)
    found = reason(network, local, 0.3)
    limit = 0.25 / (0.5 + 1 / 5**0.5)  # half of it lies in the second layer
    assert f"unit 2 of layer 1, {0.01 / 10.02:.2%} of |w|^2 and there {limit:.2%}" in found
    assert "unit 1" not in found
    assert "unit 1 of layer 2" not in found


def test_without_a_slow_unit_the_residual_tells_rest_from_want_of_time() -> None:
    network = DeepLinear.from_weights(np.array([[1.0, 0.0]]))
    local = local_limit(network, np.array([[1.0, 2.0]]), np.array([1.0]), None)
    assert reason(network, local, 0.3) == "time: not stationary yet, KKT residual 0.3"
    assert reason(network, local, 0.003).startswith("the loss or a saddle: KKT residual 0.003")
    assert unit_shares(network) == {(1, 1): 1.0}
