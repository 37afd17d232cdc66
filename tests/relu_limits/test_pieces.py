"""Pieces of ReLU programs beside their definitions, in loops over samples and units."""

from __future__ import annotations

import itertools
import math
from dataclasses import FrozenInstanceError, replace
from functools import cache
from pkgutil import resolve_name

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from torch import nn

import implicit_bias as ib
from implicit_bias.limits import relu_lower_bound, solve_relu_minnorm
from implicit_bias.limits.relu import ReLUProblem, best_directions, sides
from implicit_bias.programs import ReLUMargin
from tests.commands import home

shortest, dual_function = (
    resolve_name(f"implicit_bias.limits.relu.directions:{name}")
    for name in ("shortest", "dual_function")
)
Units, merged = (
    resolve_name(f"implicit_bias.limits.relu.problem:{name}") for name in ("Units", "merged")
)
ReLUPredictor = resolve_name("implicit_bias.limits.relu.limit:ReLUPredictor")
largest_dual = resolve_name("implicit_bias.limits.relu.bound:largest_dual")
no_network, on_one_line = (
    resolve_name(f"implicit_bias.limits.relu.minimum_norm:{name}")
    for name in ("no_network", "on_one_line")
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
    line = ReLUProblem(np.outer(rng.normal(size=6), plane[0]), np.ones(6))
    assert line.basis.shape == (1, 5)
    full = ReLUProblem(np.eye(3), np.ones(3))
    np.testing.assert_array_equal(full.basis, np.eye(3))
    assert full.slope == 0


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
    found, kept = merged(problem, units)
    np.testing.assert_array_equal(found.gates, units.gates[:, kept])
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
    for counts, many in (([8, 1], False), ([9], True), ([8] * 16, False), ([8] * 16 + [0], True)):
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


@SLOPES
def test_best_directions_are_sorted_local_maxima_of_both_signs(slope, monkeypatch) -> None:
    for name, few in (("_STARTS", 80), ("_STEPS", 60)):
        monkeypatch.setattr(f"implicit_bias.limits.relu.directions.{name}", few)
    problem, _, rng = drawn(6, slope, n=9)
    lam = 0.01 * rng.random(9)
    found = best_directions(problem, lam, np.zeros((1, 3)))
    duals = [one.dual for one in found]
    assert duals == sorted(duals, reverse=True) and {one.sign for one in found} == {1.0, -1.0}
    v = rng.normal(size=(20_000, 3))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for sign in (1.0, -1.0):
        own = [one for one in found if one.sign == sign]
        assert len(own) <= 8 and (slope or len(own) > 1)
        values = sign * dual_function(problem, lam, np.array([one.v for one in own]))
        np.testing.assert_allclose(values, [one.dual for one in own], rtol=1e-12)
        lengths = [np.linalg.norm(one.v) for one in own]
        np.testing.assert_allclose(lengths, [float(one.dual > 0) for one in own])
        assert max(values) >= (sign * dual_function(problem, lam, v)).max()
        close = np.array([[a.v @ b.v for a in own] for b in own]) - np.eye(len(own))
        assert close.max() < 1 - 1e-6
    for sign in (1.0, -1.0):
        one_label = ReLUProblem(problem.inputs, np.full(9, sign))
        assert {one.sign for one in best_directions(one_label, lam, np.zeros((0, 3)))} == {sign}


def test_momentum_reaches_in_300_steps_what_plain_steps_do_not() -> None:
    rng = np.random.default_rng(9)
    B = np.linalg.qr(rng.normal(size=(6, 6)))[0] * np.geomspace(1, 0.03, 6)
    c = rng.random((1, 6)) @ B
    shares = shortest(c, B, np.zeros((1, 6)), 300)
    assert np.linalg.norm(c - shares @ B) < 1e-4 * np.linalg.norm(c)
    plain = np.zeros((1, 6))
    for _ in range(300):
        plain = np.clip(plain - (plain @ B - c) @ B.T, 0, 1)
    assert np.linalg.norm(c - plain @ B) > 1e-3 * np.linalg.norm(c)


def test_pairs_on_one_ray_are_told_by_the_rounding_of_their_entries() -> None:
    base = np.array([0.5, -3.0, 1.0])
    # Off by five thirds of four roundings, by more than eight, and by what is seen.
    near, far, off = (base + off * np.eye(3)[1] for off in (5 * 2.0**-51, 2.0**-48, 1e-8))
    for scale in (2.0**-10, 1.0, 2.0**10):
        X = np.array([base, 2 * base, -base / 4, near, far, off, [1.0, 2.0, 3.0]])
        problem = ReLUProblem(scale * X, np.array([1.0, -1, -1, -1, -1, -1, -1]))
        assert on_one_line(problem, 1.0) == [(0, 1), (0, 3)]
        assert on_one_line(problem, -1.0) == [(0, 2)]
        assert no_network(problem).startswith("samples 0 and 1 have different labels and are on")
        apart = ReLUProblem(scale * X, np.array([1.0, 1, -1, 1, 1, -1, -1]))
        assert on_one_line(apart, 1.0) == [] and len(on_one_line(apart, -1.0)) == 3


@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_opposite_samples_of_two_labels_are_to_be_separated_by_a_line(scale) -> None:
    half = np.array([[1.0, 0.0], [0.0, 2.0], [-3.0, -3.0]])
    X = scale * np.vstack([half, -half])
    y = np.array([1.0, 1, 1, -1, -1, -1])
    assert "is positive at samples 0, 1, 2, whose opposites have the other label" in no_network(
        ReLUProblem(X, y)
    )
    assert no_network(ReLUProblem(X, y * [1, 1, -1, 1, 1, -1])) == ""
    assert no_network(ReLUProblem(X, np.array([1.0, -1, 1, 1, -1, 1]))) == ""
    assert "sample 6 is 0" in no_network(ReLUProblem(np.vstack([X, [0, 0]]), np.append(y, 1)))


def test_a_start_of_the_minimum_norm_is_checked_and_few_gates_are_doubled(monkeypatch) -> None:
    X, y = np.array([[1.0, 0.2], [0.2, 1.0], [-1.0, -0.5]]), np.array([1.0, -1.0, 1.0])
    start = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
    with pytest.raises(ValueError, match=r"slope 0.5 of `slope`, got 0"):
        solve_relu_minnorm(X, y, slope=0.5, start=start)
    with pytest.raises(ValueError, match=r"`start` must take the 3 columns of `X`, got a .* of 2"):
        solve_relu_minnorm(np.eye(3), np.array([1.0, -1.0, 1.0]), start=start)
    # Where gates do not separate the data, the search begins anew with twice as many.
    begun = []

    def seek(programs, units, *_):
        begun.append(units)
        return replace(nothing, status=ib.Status.FAILED if len(begun) < 3 else ib.Status.STATIONARY)

    problem = ReLUProblem(X, y)
    nothing = resolve_name("implicit_bias.limits.relu.search:failed")(problem, (), "")
    monkeypatch.setattr("implicit_bias.limits.relu.minimum_norm.seek", seek)
    solve_relu_minnorm(X, y)
    assert [len(units.u) for units in begun] == [16, 32, 64]
    for units in begun:
        half = len(units.u) // 2
        assert units.signs.tolist() == [1.0] * half + [-1.0] * half
        np.testing.assert_array_equal(units.u[:half], units.u[half:])
        np.testing.assert_array_equal(units.gates, X @ units.u.T > 0)
    begun.clear()
    assert solve_relu_minnorm(X, y, max_seconds=1e-9).status.name == "FAILED" and len(begun) == 1


def test_bounds_of_all_widths_are_of_multipliers_at_any_scale(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.limits.relu.directions._STARTS", 40)
    rng = np.random.default_rng(7)
    for rank in (3, 5):
        X, y, lam = rng.normal(size=(6, rank)), np.resize([1.0, -1.0], 6), rng.random(6)
        found = largest_dual(ReLUProblem(X, y), lam)
        bound = relu_lower_bound(1e-200 * lam, X, y)
        assert lam.sum() / found.bound == pytest.approx(bound, rel=1e-12)
        at = abs(dual_function(ReLUProblem(X, y), lam, found.direction.v[None])[0])
        assert at <= found.bound <= at * (1 + 1e-8) and (found.n_patterns > 0) is (rank > 3)
    # On orthogonal samples the root of each side with helping samples is enough.
    for y, n_sides in (([1.0, 1, -1, -1], 2), ([1.0, 1, 1, 1], 1)):
        found = largest_dual(ReLUProblem(np.eye(4), np.array(y)), np.ones(4))
        assert found.bound == pytest.approx(math.sqrt(4 / n_sides)) and found.n_patterns == n_sides


# Points handed to the certificate of a limit

X4 = np.array([[1.0, 0.2], [0.3, 2.0], [-1.0, -0.5], [0.5, -1.0]])
Y4 = np.array([1.0, -1.0, 1.0, -1.0])


@cache
def limit_of(slope: float):
    u = np.random.default_rng(1).normal(size=(20, 2))
    network = ib.ReLU.from_weights(u, np.resize([1.0, -1.0], 20), slope=slope)
    return ib.limits.relu_local_limit(network, X4, Y4)


def bound_in_cones(limit) -> float:
    """``sum(lam) / max_k ||v_k||``, in loops over cones and samples."""
    largest = 0.0
    for k, sign in enumerate(limit.cone_signs):
        v = np.zeros(2)
        for n in range(4):
            share = limit.cone_gates[n, k] if Y4[n] == sign else limit.cone_shares[n, k]
            v += limit.multipliers[n] * Y4[n] * (limit.slope + (1 - limit.slope) * share) * X4[n]
        largest = max(largest, float(np.linalg.norm(v)))
    return limit.multipliers.sum() / largest


@SLOPES
def test_any_shares_and_multipliers_bound_the_networks_in_the_cones(slope) -> None:
    limit, rng = limit_of(slope), np.random.default_rng(2)
    assert limit.status.name == "GLOBAL_OPTIMUM" and limit.certify(X4, Y4).status is limit.status
    assert limit.bound == pytest.approx(bound_in_cones(limit))
    for scale in np.repeat([1e-3, 0.1, 1.0], 5):
        lam = np.abs(limit.multipliers + scale * rng.normal(size=4))
        shares = np.clip(limit.cone_shares + scale * rng.normal(size=(4, 4)), 0, 1)
        bad = replace(limit, multipliers=lam, cone_shares=shares)
        found = bad.certify(X4, Y4)
        assert found.bound == pytest.approx(bound_in_cones(bad)) and found.bound <= limit.value
        lower = relu_lower_bound(lam, X4, Y4, slope=slope)
        assert found.certificate.lower_bound == pytest.approx(lower)
        assert found.status.name == "FAILED" and "above `tol`" in found.reason
        assert found.gap == pytest.approx(found.value / found.bound - 1)
    # What was not proved of all widths is not proved anew.
    local = replace(limit, certificate=replace(limit.certificate, lower_bound=0.0))
    again = local.certify(X4, Y4).certificate
    assert (again.lower_bound, again.global_gap) == (0.0, math.inf)
    assert "all widths not computed" in str(local) and "all widths 4." not in str(local)
    assert f"all widths {limit.certificate.lower_bound:.10g}" in str(limit)
    tiny = replace(limit, certificate=replace(limit.certificate, lower_bound=0.5))
    assert tiny.certify(X4, Y4).certificate.lower_bound == pytest.approx(limit.value)
    assert "all widths 0.5" in str(tiny)


def test_units_outside_of_the_cones_by_rounding_alone_are_outside() -> None:
    limit = limit_of(0.0)
    cones = limit.cone_gates[::2, limit.cone_signs == 1].T.tolist()
    assert sorted(cones) == [[False, True], [True, False]]  # of samples 0 and 2
    h = int(np.argmax(limit.signs))
    tiny = 2.0**-50  # beside the kink of sample 2
    for off, inside in ((0.0, True), (-tiny, True), (tiny, False)):
        units = limit.units.copy()
        units[h] = -0.5 + off, 1.0
        assert X4[2] @ units[h] == -off and replace(limit, units=units).in_own_cones is inside
    units = np.where(np.arange(4)[:, None] == h, [0.3, -1.0], limit.units)  # open at 0 and 2
    out = replace(limit, units=units)
    found = out.certify(X4, Y4)
    assert not out.in_own_cones and found.bound == 0 and found.gap == math.inf
    # A unit that is zero is in every cone, whatever its sign.
    more = replace(limit, units=np.vstack([limit.units, [0, 0]]), signs=np.append(limit.signs, 0.5))
    assert more.in_own_cones


def test_limits_without_a_network_prove_nothing_anew() -> None:
    one = ib.ReLU.from_weights([[1.0, 0.0]], [1.0])
    failed = ib.limits.relu_local_limit(one, X4, Y4)
    assert failed.status.name == "FAILED" and not failed.support.any()
    found = failed.certify(X4, Y4).certificate
    assert found == type(found)(math.inf, 0.0, math.inf, 0.0, 0.0, math.inf)
    with pytest.raises(FrozenInstanceError):
        found.gap = 0.0


def test_predictors_are_their_network_and_turns_are_degrees() -> None:
    problem, units, _ = drawn(8, 0.25)
    for slope, given in ((0.25, (0.25,)), (0.0, ())):
        predictor = ReLUPredictor(units.u, units.signs, *given)
        for x in problem.inputs:
            terms = [s * rho(x @ u, slope) for u, s in zip(units.u, units.signs, strict=True)]
            assert predictor(x[None])[0] == pytest.approx(sum(terms))
    degrees = resolve_name("implicit_bias.limits.relu.limit:degrees")
    turns = degrees(np.array([0.0, 0.5, 1.0, 1 + 1e-15, -1e-17]))
    np.testing.assert_allclose(turns, [0, 30, 90, 90, 0], atol=1e-12)


@SLOPES
def test_the_network_of_a_limit_is_balanced_covered_and_read_back(slope) -> None:
    limit, network_units = limit_of(slope), home(ReLUPredictor).network_units
    network = limit.network
    u, signs, own = network_units(network)
    np.testing.assert_allclose(u, limit.units, rtol=1e-12)
    assert signs.tolist() == limit.signs.tolist() and own == limit.slope and limit.covers(network)
    w1, w2 = (np.asarray(w.detach()) for w in network.parameters())
    np.testing.assert_allclose(np.linalg.norm(w1, axis=1), np.abs(w2).ravel())
    half = ib.ReLU.from_weights(w1 * 2, 0.5 * np.sign(w2).ravel(), slope=slope)
    assert network_units(half).signs.tolist() == signs.tolist()
    if not slope:  # of a leaky one other cones are there too
        assert not limit.covers(ib.ReLU.from_weights([[0.3, -1.0]], [1.0]))
    layers = [nn.Linear(*sizes, bias=False) for sizes in ((2, 3), (3, 3), (3, 1))]
    deep = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    for other, said in (
        (ib.ReLU.from_weights(w1, w2.ravel(), slope=0.5), "must have the limit's slope"),
        (
            ib.ReLU.from_weights(np.ones((2, 3)), [1.0, -1.0], slope=slope),
            r"`units` must have shape \(n, 2\)",
        ),
        (deep, "must have one hidden layer, got 2: products"),
    ):
        with pytest.raises(ValueError, match=said):
            limit.covers(other)
    failed = replace(limit, units=np.zeros((0, 2)), signs=np.zeros(0))
    with pytest.raises(ValueError, match="there is no network"):
        _ = failed.network


def test_what_is_claimed_of_all_widths_is_proved_of_all_widths() -> None:
    limit = limit_of(0.0)
    unknown = replace(limit, certificate=replace(limit.certificate, lower_bound=0.0))
    assert unknown.certify(X4, Y4).status.name == "FAILED"
    local = replace(unknown, status=ib.Status.LOCAL_OPTIMUM)
    assert local.certify(X4, Y4).status.name == "LOCAL_OPTIMUM"
    # Multipliers of which the cones' shares make no proof, and all widths have one.
    shares = replace(limit, cone_shares=1 - limit.cone_shares)
    assert shares.certify(X4, Y4).status.name == "GLOBAL_OPTIMUM"
