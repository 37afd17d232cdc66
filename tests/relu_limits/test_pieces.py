"""Pieces of ReLU programs beside their definitions, in loops over samples and units."""

from __future__ import annotations

import itertools
import math
from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from implicit_bias.limits.relu import ReLUProblem, best_directions, sides
from implicit_bias.programs import ReLUMargin

shortest, dual_function = (
    resolve_name(f"implicit_bias.limits.relu.directions:{name}")
    for name in ("shortest", "dual_function")
)
Units, merged = (
    resolve_name(f"implicit_bias.limits.relu.problem:{name}") for name in ("Units", "merged")
)
split_units, too_many_kinks = (
    resolve_name(f"implicit_bias.limits.relu.kinks:{name}")
    for name in ("split_units", "too_many_kinks")
)
SLOPES = pytest.mark.parametrize("slope", [0.0, 0.25])


def drawn(seed: int, slope: float, n: int = 6, r: int = 3, H: int = 5):
    rng = np.random.default_rng(seed)
    y, signs = np.resize([1.0, -1.0, -1.0], n), np.resize([1.0, 1.0, -1.0], H)
    problem = ReLUProblem(rng.normal(size=(n, r)), y, slope)
    u = rng.normal(size=(H, r))
    return problem, Units(u, signs, problem.X @ u.T > 0), rng


def rho(z: float, slope: float) -> float:
    return z if z > 0 else slope * z


@SLOPES
def test_margins_values_and_dual_functions_are_sums_over_units_and_samples(slope) -> None:
    problem, units, rng = drawn(0, slope)
    X, y, lam = problem.inputs, problem.y, np.array([0.0, 1.0, 0.5, 2.0, 0.0, 0.3])
    scores = [
        sum(s * rho(x @ u, slope) for u, s in zip(units.u, units.signs, strict=True)) for x in X
    ]
    np.testing.assert_allclose(problem.margins(units.u, units.signs), y * scores, atol=1e-14)
    own = ReLUProblem(X, np.sign(scores), slope)  # the labels of these units
    value = sum(map(np.linalg.norm, units.u)) / np.abs(scores).min()
    assert own.value(units.u, units.signs) == pytest.approx(value)
    assert problem.value(units.u, units.signs) == math.inf
    assert problem.value(0 * units.u, units.signs) == math.inf
    for v in rng.normal(size=(3, 3)):
        terms = [lam[n] * y[n] * rho(X[n] @ v, slope) for n in range(6)]
        assert dual_function(problem, lam, v[None])[0] == pytest.approx(sum(terms))
        for side in sides(problem, lam):
            assert side.dual(v[None])[0] == pytest.approx(side.sign * sum(terms))
            assert len(side.helping) + len(side.opposing) == 4  # of those with a multiplier
            # On its own gates a side is linear in the direction, less the hinges of the others.
            gates = (side.helping @ v > 0).astype(float)
            hinged = np.maximum(side.hinges @ v, 0).sum()
            assert side.linear(gates[None])[0] @ v - hinged == pytest.approx(side.dual(v[None])[0])


@SLOPES
def test_inputs_of_lower_rank_have_the_norms_and_margins_of_their_span(slope) -> None:
    rng = np.random.default_rng(1)
    plane = np.linalg.qr(rng.normal(size=(5, 3)))[0].T
    X = rng.normal(size=(6, 3)) @ plane
    problem = ReLUProblem(X, np.ones(6), slope)
    assert problem.basis.shape == (3, 5) and problem.X.shape == (6, 3)
    np.testing.assert_allclose(problem.basis @ problem.basis.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(problem.sizes, np.linalg.norm(X, axis=1))
    np.testing.assert_allclose(problem.X @ problem.basis, X, atol=1e-14)
    # What a unit has off the span costs its norm and gives no score.
    w = np.vstack([np.linalg.lstsq(X, np.eye(6)[0], rcond=None)[0], X.sum(axis=0), plane[0]])
    off = np.linalg.svd(X)[2][-1]
    signs = np.ones(3)
    reduced = problem.value(w @ problem.basis.T, signs)
    lengths = np.linalg.norm(w, axis=1), np.linalg.norm(w + 2 * off, axis=1)
    ratio = lengths[1].sum() / lengths[0].sum()
    assert problem.value_of_network(w + 2 * off, signs) == pytest.approx(reduced * ratio)
    full = ReLUProblem(np.eye(3), np.ones(3))
    np.testing.assert_array_equal(full.basis, np.eye(3))


def test_cosines_are_those_of_angles_and_zero_beside_nothing() -> None:
    problem = ReLUProblem(np.array([[3.0, 0.0], [0.0, 0.0], [1.0, 1.0]]), np.ones(3))
    cosines = problem.cosines(np.array([[2.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(cosines, [[1, 0], [0, 0], [math.sqrt(0.5), 0]])


@SLOPES
def test_the_program_of_gates_is_a_network_of_at_least_its_margins(slope) -> None:
    problem, units, rng = drawn(2, slope)
    program = problem.program(units)

    def margins(u, linear, hinged):
        z = problem.inputs @ u.T
        return (linear * z - hinged * np.maximum(z, 0)).sum(axis=1)

    at_units = margins(units.u, program.linear, program.hinges)
    np.testing.assert_allclose(at_units, problem.margins(units.u, units.signs), atol=1e-14)
    for u in rng.normal(size=(20, *units.u.shape)):
        below = margins(u, program.linear, program.hinges)
        assert np.all(below <= problem.margins(u, units.signs) + 1e-12)
    # cvxpy's statement has the same margins; gates of opposing pairs are not read.
    gates = np.where(
        problem.helping(units.signs), units.gates, rng.integers(0, 2, units.gates.shape)
    )
    literal = ReLUMargin(units.signs, slope).literal(problem.inputs, problem.y, gates)
    literal.var_dict["u"].value = units.u
    np.testing.assert_allclose(literal.constraints[0].args[1].value, at_units, atol=1e-12)
    norms = sum(map(np.linalg.norm, units.u))
    assert literal.objective.value == pytest.approx(norms) and isinstance(literal, cp.Problem)


@pytest.mark.parametrize("signs", [[1.0, 0.5], [[1.0, -1.0]], [1.0, 0.0]])
def test_signs_and_gates_of_a_program_are_checked(signs) -> None:
    with pytest.raises(ValueError, match="`signs` must be one axis of -1 and \\+1"):
        ReLUMargin(signs)
    program = ReLUMargin([1.0, -1.0])
    assert not program.signs.flags.writeable
    for gates in (np.full((2, 2), 0.5), -np.eye(2)):
        with pytest.raises(ValueError, match="`gates` must be exactly 0"):
            program.literal(np.eye(2), np.array([1.0, -1.0]), gates)


@SLOPES
def test_units_of_one_sign_and_helping_gates_are_merged_in_their_order(slope) -> None:
    problem, units, _ = drawn(3, slope, H=24)
    found = merged(problem, units)
    helping = problem.helping(units.signs)
    groups: dict[tuple, np.ndarray] = {}
    for h in range(24):
        key = (units.signs[h], *(units.gates[:, h] & helping[:, h]))
        groups[key] = groups.get(key, 0) + units.u[h]
    assert 1 < len(groups) < 24
    np.testing.assert_allclose(found.u, list(groups.values()))
    np.testing.assert_array_equal(found.signs, [key[0] for key in groups])
    gates = found.gates & problem.helping(found.signs)
    np.testing.assert_array_equal(gates.T, [key[1:] for key in groups])
    np.testing.assert_allclose(found.norms, [np.linalg.norm(u) for u in found.u])


def test_kinks_are_split_to_all_sides_and_too_many_are_told() -> None:
    _, units, _ = drawn(4, 0.0, H=3)
    kinks = np.zeros((6, 3), dtype=bool)
    kinks[[1, 4], 0] = kinks[2, 2] = True
    found = split_units(units, kinks)
    assert len(found.u) == 4 + 1 + 2
    np.testing.assert_array_equal(found.signs, units.signs[[0, 0, 0, 0, 1, 2, 2]])
    parts = [found.u[:4].sum(axis=0), found.u[4], found.u[5:].sum(axis=0)]
    np.testing.assert_allclose(parts, units.u)
    assert np.ptp(found.u[:4], axis=0).max() == 0
    patterns = {tuple(gates) for gates in found.gates[[1, 4], :4].T}
    assert patterns == set(itertools.product((False, True), repeat=2))
    assert {bool(gate) for gate in found.gates[2, 5:]} == {False, True}
    same = found.gates[[0, 2, 3, 5], :4] == units.gates[[0, 2, 3, 5], :1]
    assert same.all() and np.array_equal(found.gates[:, 4], units.gates[:, 1])
    for counts, many in (([8, 1], False), ([9], True), ([8] * 16, False), ([8] * 16 + [1], True)):
        helping = np.arange(9)[:, None] < counts
        assert too_many_kinks(helping) is many
    assert not too_many_kinks(np.zeros((3, 0), dtype=bool))


def test_shares_come_to_the_shortest_vector_and_directions_to_the_largest_value() -> None:
    rng = np.random.default_rng(5)
    c, B = 3 * rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    shares = shortest(c, B, np.full((4, 5), 0.5), 3000)
    for row, target in zip(shares, c, strict=True):
        best = lsq_linear(B.T, target, bounds=(0, 1), method="bvls").x
        assert np.linalg.norm(target - row @ B) == pytest.approx(
            np.linalg.norm(target - best @ B), rel=1e-9
        )
    few = [shortest(c, B, np.full((4, 5), 0.5), n) for n in (1, 40)]
    lengths = [np.linalg.norm(c - one @ B, axis=1).sum() for one in (*few, shares)]
    assert lengths[0] > lengths[1] >= lengths[2] - 1e-12 and lengths[1] < 1.001 * lengths[2]
    assert shortest(c, B[:0], np.zeros((4, 0)), 9).shape == (4, 0)


def test_best_directions_are_sorted_local_maxima_of_both_signs() -> None:
    problem, _, rng = drawn(6, 0.25, n=9)
    lam = rng.random(9)
    found = best_directions(problem, lam, np.zeros((1, 3)))
    duals = [one.dual for one in found]
    assert duals == sorted(duals, reverse=True) and {one.sign for one in found} == {1.0, -1.0}
    v = rng.normal(size=(20_000, 3))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for sign in (1.0, -1.0):
        own = [one for one in found if one.sign == sign]
        assert len(own) <= 8
        values = sign * dual_function(problem, lam, np.array([one.v for one in own]))
        np.testing.assert_allclose(values, [one.dual for one in own], rtol=1e-12)
        lengths = [np.linalg.norm(one.v) for one in own]
        np.testing.assert_allclose(lengths, [float(one.dual > 0) for one in own])
        assert max(values) >= (sign * dual_function(problem, lam, v)).max()
        close = np.array([[a.v @ b.v for a in own] for b in own]) - np.eye(len(own))
        assert close.max() < 1 - 1e-6
    one_label = ReLUProblem(problem.inputs, np.ones(9))
    assert {one.sign for one in best_directions(one_label, lam, np.zeros((0, 3)))} == {1.0}
