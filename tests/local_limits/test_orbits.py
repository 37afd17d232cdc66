"""Local limits that differ by a symmetry of the network alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from implicit_bias import Status, local_limit
from implicit_bias.limits.local import limits_reached, lowest_curvature, same_limit
from implicit_bias.networks import FReLU

# Two units with the same gate on both samples and different ones elsewhere: rotating what they
# share of the one direction that the samples need changes no margin.
X, Y, GATES = np.array([[3.0, 4.0], [-3.0, -4.0]]), np.array([1.0, -1.0]), np.ones((2, 2))


def limit_of(shares):
    """The local limit of two units that share the max-margin direction, by these sizes."""
    direction = np.array([3.0, 4.0]) / 25
    return local_limit(FReLU.from_zeta(np.outer(shares, direction)), X, Y, GATES)


def test_shares_of_one_direction_are_one_orbit_of_the_optimum() -> None:
    equal, unequal = limit_of([0.5, 0.5]), limit_of([0.1, 0.9])
    assert equal.status is unequal.status is Status.LOCAL_OPTIMUM
    assert equal.value == pytest.approx(0.2) == pytest.approx(unequal.value)
    assert equal.n_zero_modes >= 1
    assert not np.allclose(equal.weights["upper.0"], unequal.weights["upper.0"], atol=0.05)
    assert same_limit(equal, unequal)
    assert limits_reached([equal, None, unequal, replace(equal, status=Status.FAILED)]) == [
        1, None, 1, None
    ]  # fmt: skip


def test_equal_multipliers_are_asked_for_only_where_there_are_zero_modes() -> None:
    a = limit_of([0.5, 0.5])
    # Scores of one sample as of another member of the orbit.
    other = replace(a, scores=a.scores * np.array([1.0, 1.1]))
    assert not np.allclose(a.scores, other.scores, rtol=1e-3) and same_limit(a, other)
    assert not same_limit(a, replace(other, n_zero_modes=0))
    assert not same_limit(a, replace(other, status=Status.FAILED))
    assert not same_limit(a, replace(other, multipliers=1.01 * a.multipliers))
    assert not same_limit(a, replace(other, value=1.01 * a.value))
    assert limits_reached([a, replace(other, value=1.01 * a.value), a]) == [1, 2, 1]


def test_the_lowest_curvature_is_that_beyond_zero_modes() -> None:
    flat = limit_of([0.5, 0.5])
    assert abs(flat.curvature[0]) < 1e-7 < lowest_curvature(flat)
    assert lowest_curvature(flat) in flat.curvature
    down = replace(flat, curvature=np.array([-0.5, 0.0, 0.25]))
    assert lowest_curvature(down) == -0.5
    assert np.isnan(lowest_curvature(replace(flat, curvature=np.zeros(2))))
    assert np.isnan(lowest_curvature(replace(flat, curvature=np.zeros(0))))
