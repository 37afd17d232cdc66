"""Descent through programs on gates that change, on problems that are solved on paper."""

from __future__ import annotations

import time
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest

from implicit_bias.limits.relu import ReLUProblem

Programs, descend, has_network, kinks_of, live_units, next_gates, live_of = (
    resolve_name(f"implicit_bias.limits.relu.descent:{name}")
    for name in (
        "Programs", "descend", "has_network", "kinks_of", "live_units", "_next_gates", "_live",
    )
)  # fmt: skip
Units = resolve_name("implicit_bias.limits.relu.problem:Units")


def units_of(problem: ReLUProblem, u: list[list[float]], signs: list[float]):
    return Units(np.array(u), np.array(signs), problem.X @ np.array(u).T > 0)


@pytest.mark.parametrize(
    ("max_programs", "taken", "max_seconds", "ago", "spent"),
    [
        (None, 10**6, None, 1e6, False),
        (2, 1, None, 1e6, False),
        (2, 2, None, 0, True),
        (None, 0, 1e3, 0, False),
        (None, 0, 1e3, 2e3, True),
        (5, 1, 1e3, 2e3, True),
    ],
)
def test_a_search_is_over_after_its_programs_or_its_seconds(
    max_programs, taken, max_seconds, ago, spent
) -> None:
    problem = ReLUProblem(np.eye(2), np.ones(2))
    begun = time.perf_counter() - ago
    programs = Programs(problem, 1e-8, max_programs, max_seconds, 0, begun, taken)
    assert programs.spent is spent and programs.seconds >= ago


def test_a_unit_is_live_where_its_share_is_above_what_its_block_lacks() -> None:
    norms, lengths = np.array([3e-3, 0.0, 1e-6, 1e-3]), np.array([1.0, 1.0, 0.9, 0.9])
    blocks = lengths[:, None] * [[0.6, 0.8]]
    assert live_units(norms, blocks).tolist() == [True, False, False, True]
    assert not live_units(np.zeros(4), blocks).any()


def test_kinks_are_samples_with_a_multiplier_across_a_unit() -> None:
    problem = ReLUProblem(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1]))
    units = units_of(problem, [[0.0, 2.0], [1.0, -1.0]], [1.0, 1.0])
    across = np.array([[True, False], [False, False], [False, False]])
    against = np.array([[False, False], [False, False], [False, True]])
    for lam, left in ((np.ones(3), True), (np.array([1e-12, 1.0, 1.0]), False)):
        helping, opposing = kinks_of(problem, units, lam)
        assert np.array_equal(helping, across & left) and np.array_equal(opposing, against)
    # Multipliers are compared with the largest.
    assert np.array_equal(kinks_of(problem, units, np.full(3, 1e-12))[0], across)


def test_gates_on_a_kink_and_of_a_dead_unit_stay_as_they_were() -> None:
    problem = ReLUProblem(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]), np.ones(3))
    # The second unit is rounding, and no multiplier asks for it.
    gates = np.array([[True, False], [True, False], [True, False]])
    units = Units(np.array([[1.0, 0.0], [1e-12, 1e-12]]), np.ones(2), gates)
    solution = SimpleNamespace(multipliers=np.array([1.0, 0.0, 0.0]), shares=np.zeros((3, 2)))
    live = live_of(problem, units, solution)
    assert live.tolist() == [True, False]
    expected = [[True, False], [True, False], [False, False]]
    assert next_gates(problem, units, live).tolist() == expected


def descended(slope: float, max_programs: int = 9):
    """Descend from one unit that is closed on the second of two samples of its label."""
    problem = ReLUProblem(np.eye(2), np.ones(2), slope)
    programs = Programs(problem, 1e-9, max_programs, None, 0)
    return programs, descend(programs, units_of(problem, [[1.0, -0.1]], [1.0]))


def test_gates_are_followed_to_the_network_that_keeps_its_own() -> None:
    # On the line of slope 1/2 the second margin asks for u = (1, 2), which is open there; then
    # u = (1, 1) does.
    programs, found = descended(0.5)
    assert found.values == pytest.approx((5**0.5, 2**0.5), rel=1e-8)
    assert has_network(found.solution) and programs.taken == 2
    assert found.units.gates.all() and found.units.u[0] == pytest.approx([1, 1], rel=1e-8)
    programs, found = descended(0.5, max_programs=1)
    assert found.values == pytest.approx((5**0.5,), rel=1e-8) and programs.taken == 1
    assert programs.solves == found.solution.solves > 0


def test_gates_that_separate_nothing_leave_no_network() -> None:
    programs, found = descended(0.0)
    assert not has_network(found.solution) and found.values == () and programs.taken == 1
