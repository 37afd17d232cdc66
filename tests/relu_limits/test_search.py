"""Steps of the search for local optima, on two samples that are solved on paper.

A unit along (1, 0) of norm 1 and one along (0, 2) of norm 1/2 are the least network of the samples
(1, 0) and (0, 2) of different labels: its value is 3/2, and the multipliers 1 and 1/2 prove it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest

import implicit_bias as ib
from implicit_bias import Status
from implicit_bias.limits.relu import Direction, ReLUProblem

MODULE = "implicit_bias.limits.relu.search"
(
    Found, seek, settled, split, without_dead, certified, bounded, cleaned, joined, directions_of,
    with_births, near, judged, not_proved, tried, with_global_bound, why_not, failed, as_limit,
    units_at, settled_limit,
) = (
    resolve_name(f"{MODULE}:{name}")
    for name in (
        "Found", "seek", "_settled", "_split", "_without_dead", "_certified", "_bounded",
        "_cleaned", "_joined", "_directions", "_with_births", "_near", "_judged", "_not_proved",
        "_tried", "_with_global_bound", "_why_not", "failed", "as_limit", "units_at",
        "settled_limit",
    )
)  # fmt: skip
Units = resolve_name("implicit_bias.limits.relu.problem:Units")
Certificate = resolve_name("implicit_bias.limits.relu.limit:ReLUCertificate")
Descent = resolve_name("implicit_bias.limits.relu.descent:Descent")

PROBLEM = ReLUProblem(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0]))
LAM = np.array([1.0, 0.5])
ALONG = Direction(np.array([0.6, 0.8]), 1.0, 1.0)
# Both samples of one label, and a unit on each, which is the kink of the other unit.
BOTH = ReLUProblem(np.eye(2), np.ones(2))


def units_of(problem, u, signs):
    u = np.array(u)
    return Units(u, np.array(signs), problem.X @ u.T > 0)


def found_of(problem=PROBLEM, u=((1.0, 0.0), (0.0, 0.5)), signs=(1.0, -1.0), lam=LAM, **known):
    units = units_of(problem, u, signs)
    value = known.pop("value", 1.5)
    none = np.zeros(units.gates.shape)
    own = {
        "cones": units, "shares": none, "split": none > 0, "values": (2.0,),
        "certificate": Certificate(value, value, 0.0, 0.0, 0.0, math.inf),
        "status": Status.LIVE_OPTIMUM,
    }  # fmt: skip
    return Found(units=units, lam=np.array(lam), **own | known)


def bounds(value: float, lower: float = 0.0, overall: float = math.inf):
    return Certificate(value, value, 0.0, 0.0, lower, overall)


def solution_of(u, multipliers, *, objective=1.5, status=Status.SOLVED):
    u = np.array(u)
    return SimpleNamespace(
        u=u, multipliers=np.array(multipliers), shares=np.zeros((2, len(u))), status=status,
        certificate=SimpleNamespace(objective=objective),
    )  # fmt: skip


def programs_of(*solutions, problem=PROBLEM, tol=1e-3, spent=False, max_patterns=100):
    """Programs whose solutions are given, one after the other, with what was asked for."""
    asked, left = [], list(solutions)

    def solve(units, guess=None):
        asked.append((units, guess))
        following = left.pop(0)
        return following(units) if callable(following) else following

    return SimpleNamespace(
        problem=problem, tol=tol, spent=spent, solve=solve, asked=asked, max_patterns=max_patterns,
        taken=3, solves=2, seconds=1.25,
    )  # fmt: skip


def patched(monkeypatch, **functions) -> None:
    for name, function in functions.items():
        monkeypatch.setattr(f"{MODULE}.{name}", function)


def test_multipliers_of_rounding_are_left_out() -> None:
    assert cleaned(np.array([2.0, 3e-9, 1e-9, 0.0])).tolist() == [2.0, 3e-9, 0.0, 0.0]


def test_parallel_units_of_one_sign_are_one_with_the_gates_of_the_longest() -> None:
    u = [[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [2.0, 0.0], [4.0, 4e-4], [1.0, 1e-5], [-1.0, 0.0]]
    units = units_of(PROBLEM, u, [1.0, 1, 1, -1, 1, 1, 1])
    units = replace(units, gates=np.eye(7, dtype=bool)[:2] + np.eye(7, dtype=bool)[2:4])
    found = joined(units)
    np.testing.assert_allclose(found.u, [[0, 1], [5, 1e-5], [2, 0], [4, 4e-4], [-1, 0]])
    assert found.signs.tolist() == [1, 1, -1, 1, 1]
    np.testing.assert_array_equal(found.gates, units.gates[:, [1, 2, 3, 4, 6]])


def test_units_that_are_zero_on_the_inputs_are_left_out() -> None:
    X = np.array([[1.0, 2.0, 0.0], [1.0, -1.0, 0.0]])
    weights = np.array([[0.0, 0.0, 3.0], [0.0, 1.0, 1.0], [-1.0, 0.0, 0.0]])
    units = units_at(ReLUProblem(X, np.array([1.0, -1.0])), weights, np.array([1.0, 1.0, -1.0]))
    assert units.signs.tolist() == [1, -1]
    assert units.gates.tolist() == [[True, False], [False, False]]
    np.testing.assert_allclose(units.norms, 1)
    on_kinks = units_at(PROBLEM, np.eye(2), np.ones(2))
    assert on_kinks.gates.tolist() == [[True, False], [False, True]]


def test_births_are_short_and_have_their_own_gates() -> None:
    units = units_of(PROBLEM, [[1.0, 0.0], [0.0, 3.0]], [1.0, -1.0])
    down = Direction(np.array([0.0, -1.0]), -1.0, 1.0)
    more = with_births(PROBLEM, units, [ALONG, down])
    np.testing.assert_allclose(more.u[2:], [[0.6 * 2e-3, 0.8 * 2e-3], [0, -2e-3]])
    assert more.signs.tolist() == [1, -1, 1, -1]
    assert more.gates[:, 2:].tolist() == [[True, False], [True, False]]


def test_what_was_found_is_near_to_its_units_and_others_behind_them() -> None:
    best = found_of(shares=np.array([[0.1, 0.2], [0.3, 0.4]]))
    more = with_births(PROBLEM, best.units, [replace(ALONG, v=np.array([1.0, -1.0]))])
    lam, shares = near(PROBLEM, best, more)
    assert lam is best.lam and shares.tolist() == [[0.1, 0.2, 1.0], [0.3, 0.4, 0.0]]
    assert near(PROBLEM, replace(best, split=np.eye(2, dtype=bool)), more) is None
    assert near(PROBLEM, replace(best, cones=more), more) is None


def test_a_bound_is_of_the_cones_and_the_units_are_at_margin_one() -> None:
    best = found_of(u=[[4.0, 0.0], [0.0, 2.0]], status=Status.STATIONARY, reason="old")
    found = bounded(programs_of(), best, best.cones)
    np.testing.assert_allclose(found.units.u, [[1, 0], [0, 0.5]])
    proof = found.certificate
    assert (proof.objective, proof.dual_objective) == pytest.approx((1.5, 1.5)) and proof.gap < 1e-9
    assert proof == Certificate(proof.objective, proof.dual_objective, proof.gap, 0, 0, math.inf)
    assert found.status is Status.LIVE_OPTIMUM and found.reason == ""
    # Of other multipliers ||v|| is 1 and 2, and their sum 2.
    of_solution = solution_of(best.units.u, [1.0, 1.0])
    found = bounded(programs_of(), best, best.cones, of_solution)
    assert found.certificate.dual_objective == pytest.approx(1) and found.lam.tolist() == [1, 1]
    assert found.status is Status.FAILED and found.reason == "the gap is 0.5, above `tol`"
    assert bounded(programs_of(tol=0.5 + 1e-9), best, best.cones, of_solution).reason == ""
    wrong = found_of(u=[[1.0, 0.0], [0.0, -0.5]])
    found = bounded(programs_of(), wrong, best.cones)
    assert found.status is Status.FAILED and "do not separate" in found.reason
    assert found.certificate is wrong.certificate and found.cones is best.cones


def test_live_units_of_a_solution_are_certified() -> None:
    units = units_of(PROBLEM, [[1.0, 0.0], [0.0, 0.5], [0.0, 1e-12]], [1.0, -1.0, 1.0])
    found = certified(programs_of(), units, solution_of(units.u, [1.0, 0.5]), (7.0, 3.0))
    assert len(found.units.u) == len(found.cones.u) == 2 and found.shares.shape == (2, 2)
    assert found.split.shape == (2, 2) and not found.split.any() and found.values == (7.0, 3.0)
    assert found.status is Status.LIVE_OPTIMUM and found.certificate.objective == pytest.approx(1.5)


@pytest.mark.parametrize(("rise", "solved"), [(0.95e-4, 0), (1.05e-4, 1), (-0.1, 0)])
def test_where_left_out_units_had_a_share_the_others_are_solved_again(rise, solved) -> None:
    units = units_of(PROBLEM, [[1.0, 0.0], [0.0, 0.5]], [1.0, -1.0])
    reached = Descent(units, solution_of(units.u, LAM, objective=1.5 / (1 + rise)), (1.5,))
    again = solution_of([[1.0, 0.0], [0.0, 0.4]], LAM)  # of value 1.4 / 0.8
    programs = programs_of(again)
    found = without_dead(programs, reached, (1.5,))
    assert len(programs.asked) == solved and found.certificate.objective == pytest.approx(1.5)
    spent = programs_of(spent=True)
    assert without_dead(spent, reached, (1.5,)).status is Status.LIVE_OPTIMUM
    none = programs_of(solution_of(units.u, LAM, status=Status.FAILED))
    assert without_dead(none, reached, (1.5,)).status is Status.LIVE_OPTIMUM


def test_of_two_solutions_the_better_one_is_taken() -> None:
    units = units_of(PROBLEM, [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])  # of value 2
    reached = Descent(units, solution_of(units.u, LAM), (2.0,))
    again = solution_of([[1.0, 0.0], [0.0, 0.5]], LAM)
    programs = programs_of(again)
    found = without_dead(programs, reached, (2.0,))
    assert found.certificate.objective == pytest.approx(1.5) and len(programs.asked) == 1
    assert found.status is Status.LIVE_OPTIMUM and found.values == (2.0,)


# Kinks


def at_kinks(lam=(1.0, 1.0)):
    return found_of(BOTH, np.eye(2), np.ones(2), lam, value=2.0, status=Status.LIVE_OPTIMUM)


def same(multipliers, **known):
    return lambda units: solution_of(units.u, multipliers, **known)


def test_units_without_kinks_at_multipliers_are_as_they_were() -> None:
    best = found_of()
    assert split(programs_of(), best) == (best, None)


def test_sides_of_kinks_with_a_lower_value_are_gone_on_with() -> None:
    lower = lambda units: solution_of(  # noqa: E731
        np.where(units.gates.all(axis=0)[:, None], [0.5, 0.5], 1e-9), [1.0, 1.0]
    )
    programs = programs_of(lower, problem=BOTH)
    best, copies = split(programs, at_kinks())
    assert copies is not None and len(copies.u) == 4 and copies.u.max() == 0.5
    assert best.status is Status.LIVE_OPTIMUM and not best.split.any()
    # One that is lower by less than the tolerance is no lower one.
    best, copies = split(programs_of(lower, problem=BOTH, tol=0.5), at_kinks())
    assert copies is None and best.split.tolist() == [[False, True], [True, False]]
    # Of all sides ||v|| is sqrt(2), and their sum 2.
    assert best.certificate.dual_objective == pytest.approx(math.sqrt(2))


def test_multipliers_of_the_sides_may_have_further_kinks() -> None:
    programs = programs_of(same([1.0, 1.0]), same([1.0, 1.0]), problem=BOTH, tol=0.5)
    best, copies = split(programs, at_kinks(lam=(1.0, 0.0)))
    assert copies is None and [len(units.u) for units, _ in programs.asked] == [3, 4]
    assert best.split.tolist() == [[False, True], [True, False]] and len(best.cones.u) == 4


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"spent": True}, "no program was left for kinks"),
        ({}, "the program over all sides of the kinks was not solved"),
    ],
)
def test_sides_that_are_not_looked_at_leave_a_stationary_point(known, reason) -> None:
    programs = programs_of(same([1.0, 1.0], status=Status.FAILED), problem=BOTH, **known)
    best, copies = split(programs, at_kinks())
    assert copies is None and best.status is Status.STATIONARY and best.reason == reason


def test_too_many_kinks_are_told_with_their_number(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.limits.relu.kinks.MAX_KINKS", 1)
    problem = ReLUProblem(np.eye(3), np.ones(3))
    u = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]
    best, copies = split(
        programs_of(problem=problem), found_of(problem, u, np.ones(2), np.ones(3), value=2.0)
    )
    assert copies is None and best.status is Status.STATIONARY
    assert "its kink at 2 samples" in best.reason


# The loop


def test_descent_goes_on_from_copies_that_are_better(monkeypatch) -> None:
    first, second = solution_of([[1.0, 0.0]], LAM), solution_of([[1.0, 0.0]], LAM)
    begun, best = [], found_of()

    def descend(programs, units, guess):
        begun.append((units, guess))
        return Descent(units, (first, second)[len(begun) - 1], (3.0 - len(begun),))

    def splits(programs, found):
        return found, best.units if len(begun) == 1 else None

    patched(
        monkeypatch, descend=descend, _split=splits,
        _without_dead=lambda programs, reached, values: replace(best, values=values),
    )  # fmt: skip
    found = settled(programs_of(), best.cones, (9.0,), "guess")
    assert found.values == (9.0, 2.0, 1.0)
    assert begun == [(best.cones, "guess"), (best.units, None)]
    nothing = solution_of([[1.0, 0.0]], LAM, status=Status.FAILED)
    patched(monkeypatch, descend=lambda *_: Descent(best.units, nothing, (4.0,)))
    found = settled(programs_of(), best.units, (9.0,))
    assert found.status is Status.FAILED and found.values == (9.0, 4.0)


def sought(monkeypatch, values, helpful, *, births=9, width=99, spent=False, missed=None, ends=()):
    """Seek where programs have such values, and multipliers ask for so many directions."""
    begun = []

    def settle(programs, units, before, guess=None):
        begun.append(len(units.u))
        assert (guess is None) is (len(begun) == 1)
        status = dict(ends).get(len(begun), Status.LIVE_OPTIMUM)
        value = values[len(begun) - 1]
        return found_of(status=status, certificate=bounds(value), values=(*before, value))

    def directions(problem, best):
        # Those that help are above 1, by more than the tolerance 1e-3 of the value at the units.
        duals = [*(2.0, *[1.0011] * 9)[: helpful[len(begun) - 1]], 1.0009]
        return [replace(ALONG, dual=dual) for dual in duals], duals[0]

    patched(
        monkeypatch, _settled=settle, _directions=directions,
        _with_global_bound=lambda programs, best: (replace(best, reason="bounded"), missed),
        _judged=lambda programs, best, left: replace(best, births=(best.births, left)),
    )  # fmt: skip
    return seek(programs_of(spent=spent), found_of().units, births, width), begun


@pytest.mark.parametrize(
    ("helpful", "known", "begun", "born", "reason"),
    [
        # Four at once, as many as may be added, as may be there, and as help.
        ([7, 0], {}, [2, 6], 4, "bounded"),
        ([7, 0], {"births": 3}, [2, 5], 3, ""),
        ([7, 7, 0], {"births": 5}, [2, 6, 3], 5, ""),
        ([7, 0], {"width": 3}, [2, 3], 1, "bounded"),
        ([2, 0], {}, [2, 4], 2, "bounded"),
        ([7, 0], {"births": 0}, [2], 0, ""),
        ([7, 0], {"width": 2}, [2], 0, ""),
        ([1, 1, 0], {"width": math.inf}, [2, 3, 3], 2, "bounded"),
        ([1], {"spent": True}, [2], 0, ""),
        ([0], {"spent": True}, [2], 0, ""),
        ([7], {"ends": {1: Status.STATIONARY}.items()}, [2], 0, ""),
        # One that the search missed.
        ([0, 0], {"births": 1, "missed": ALONG}, [2, 3], 1, ""),
    ],
)
def test_units_are_born_while_they_help_and_may_be_added(
    monkeypatch, helpful, known, begun, born, reason
) -> None:
    left = known.get("width", 99) - 2
    found, n_units = sought(monkeypatch, [4.0, 3.0, 2.0], helpful, **known)
    assert n_units == begun and found.births == (born, left) and found.reason == reason
    assert found.n_spare == (0 if left == math.inf else left)
    assert found.escape is not None and found.escape_ratio == (
        2.0 if helpful[len(begun) - 1] else 1.0009
    )


@pytest.mark.parametrize(("fall", "born"), [(2e-10, 4), (0.5e-10, 0), (-1e-3, 0)])
def test_falls_that_are_rounding_end_the_births(monkeypatch, fall, born) -> None:
    found, _ = sought(monkeypatch, [4.0, 4.0 * (1 - fall)], [4, 0 if born else 4])
    assert found.births == (born, 97) and found.values == (4.0, 4.0 * (1 - fall))[: 1 + born // 4]


def test_a_search_that_fails_says_how_many_units_were_born(monkeypatch) -> None:
    for values, helpful, births in (([4.0], [1], 0), ([4.0, 3.0], [3, 1], 3)):
        found, _ = sought(monkeypatch, values, helpful, ends={len(values): Status.FAILED}.items())
        assert found.status is Status.FAILED and found.births == births


# Verdicts


@pytest.mark.parametrize(
    ("dual", "gap", "holds"),
    [(1.0, 0.0, True), (0.9, 0.0, False), (0.52, 0.05, True), (0.47, 0.05, False)],
)
def test_directions_are_over_their_value_at_the_units(monkeypatch, dual, gap, holds) -> None:
    best = found_of(lam=[2.0, 1.0])
    best = replace(best, certificate=replace(best.certificate, gap=gap))
    patched(monkeypatch, best_directions=lambda *_: [replace(ALONG, dual=2 * dual)])
    if holds:
        assert directions_of(PROBLEM, best)[1] == pytest.approx(dual)
    else:
        with pytest.raises(AssertionError):
            directions_of(PROBLEM, best)


def test_the_bound_of_all_widths_is_computed_once_and_tells_what_was_missed(monkeypatch) -> None:
    best = found_of()
    found, missed = with_global_bound(programs_of(), best)
    assert found.certificate.lower_bound == pytest.approx(1.5) and missed is None
    assert found.certificate.lower_bound <= 1.5 and found.certificate.global_gap < 1e-8
    assert found.certificate.objective == 1.5
    for known in (found, replace(best, certificate=bounds(1.5, 0.5))):
        assert with_global_bound(None, known) == (known, None)
    # Of multipliers that are as large on both samples, 2 is the largest of the dual function.
    other = found_of(lam=[1.0, 1.0])
    found, missed = with_global_bound(programs_of(), other)
    assert found.certificate.lower_bound == pytest.approx(1) and missed is not None
    assert found.certificate.global_gap == pytest.approx(0.5) and missed.sign == -1
    # Above 1 of the units' own by what counts, or by rounding.
    largest = resolve_name("implicit_bias.limits.relu.branching:Largest")
    for above, counts in ((2e-8, True), (0.5e-8, False)):
        at = replace(ALONG, dual=1 + above)
        patched(monkeypatch, largest_dual=lambda *_, at=at, **__: largest(at.dual, at, 0))
        assert with_global_bound(programs_of(), best)[1] is (at if counts else None)


def test_too_many_patterns_are_the_reason_that_no_bound_is_known(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias.limits.relu.directions._STARTS", 40)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 8)), np.sign(rng.normal(size=30))
    best = found_of(ReLUProblem(X, y), rng.normal(size=(2, 8)), [1.0, -1.0], np.ones(30))
    programs = programs_of(problem=ReLUProblem(X, y), max_patterns=20)
    found, missed = with_global_bound(programs, best)
    assert missed is None and found.certificate.lower_bound == 0
    assert "`max_patterns` = 20 gate patterns" in found.reason


@pytest.mark.parametrize(
    ("known", "left", "status", "reason"),
    [
        ({"escape_ratio": 1.001}, 2, Status.GLOBAL_OPTIMUM, ""),
        ({"escape_ratio": 1.0011}, 0, Status.LOCAL_OPTIMUM, "told"),
        ({"escape_ratio": 1.001, "bounded": False}, 0, Status.LOCAL_OPTIMUM, "told"),
        ({"escape_ratio": 1.001, "bounded": False}, 1, Status.LIVE_OPTIMUM,
         "units may be added, and no direction was found in which one helps; that is not proved: "
         "told"),
        ({"escape_ratio": 1.001, "bounded": False, "n_spare": 1}, 1, Status.LIVE_OPTIMUM,
         "1 of the units is to spare, and no"),
        ({"escape_ratio": 1.0011, "n_spare": 2}, 2, "tried", "2 of the units are to spare"),
        ({"escape_ratio": 2.0, "status": Status.STATIONARY}, 2, Status.STATIONARY, "told"),
    ],
)  # fmt: skip
def test_the_verdict_is_by_what_is_proved_and_what_is_left(
    monkeypatch, known, left, status, reason
) -> None:
    proves = known.pop("bounded", True) if "bounded" in known else True
    overall = bounds(1.5, 1.5, 1e-3 if proves else 1.1e-3)
    patched(
        monkeypatch,
        _tried=lambda programs, best, spare: replace(best, status="tried", reason=spare),
        _with_global_bound=lambda programs, best: (replace(best, certificate=overall), None),
    )  # fmt: skip
    found = judged(programs_of(), found_of(reason="told", **known), left)
    assert found.status is status or found.status == status
    assert found.reason.startswith(reason) and bool(found.reason) is bool(reason)


def test_what_is_not_proved_names_the_reason_if_there_is_one() -> None:
    assert not_proved(found_of(), "a").reason.endswith("is not proved")
    assert not_proved(found_of(reason="b"), "a").reason.endswith("is not proved: b")


# Trials of a unit that multipliers ask for


def tries(*solutions, monkeypatch, ratios=(), proves=False, best=None, n_spare=0, **known):
    """Try units along directions whose values are these multiples of the units' own."""
    left = list(ratios)
    overall = bounds(1.5, 1.5, 1e-3 if proves else 1.1e-3)
    patched(
        monkeypatch,
        _directions=lambda problem, best: ([replace(ALONG, dual=left[0])], left.pop(0)),
        _with_global_bound=lambda programs, best: (replace(best, certificate=overall), None),
    )  # fmt: skip
    programs = programs_of(*solutions, **known)
    best = found_of() if best is None else best
    best = replace(best, escape=replace(ALONG, dual=2.0), escape_ratio=2.0)
    return tried(programs, best, "spare"), programs.asked


SAME = same(LAM)


@pytest.mark.parametrize(
    ("solutions", "known", "n_cones", "reason"),
    [
        ([], {"spent": True}, [], "spare, and no program was left to try one"),
        ([same(LAM, objective=1.49)], {}, [3], "spare: a dead one of another direction lowers the "
         "value, to 1.49 at once, so that the whole network is at a saddle"),
        ([same(LAM, objective=1.499, status=Status.FAILED)], {}, [3], "spare, and the program"),
        ([same([1.0, 1.0])], {}, [3], "spare, and the program with one more was"),
        # A direction more each time, until multipliers ask for none.
        ([SAME] * 2, {"ratios": [2.0, 1.001]}, [3, 4], "spare, and no direction was found"),
        ([SAME] * 20, {"ratios": [1.0011] * 20}, [*range(3, 23)], "spare, and none that"),
    ],
)  # fmt: skip
def test_units_are_tried_until_one_helps_or_none_is_asked_for(
    monkeypatch, solutions, known, n_cones, reason
) -> None:
    found, asked = tries(*solutions, monkeypatch=monkeypatch, **known)
    assert [len(units.u) for units, _ in asked] == n_cones
    assert found.reason.startswith(reason) and found.status is Status.LIVE_OPTIMUM
    for units, guess in asked[:1]:
        np.testing.assert_allclose(units.u[2], 1e-3 * 0.75 * ALONG.v)
        assert guess is not None and guess[1].shape == (2, 3)


def test_multipliers_that_ask_for_none_may_prove_that_none_helps(monkeypatch) -> None:
    found, _ = tries(SAME, monkeypatch=monkeypatch, ratios=[1.0], proves=True)
    assert found.status is Status.GLOBAL_OPTIMUM and found.reason == ""
    assert len(found.cones.u) == 3 and found.escape_ratio == 1.0 and found.escape.dual == 1.0
    assert not found.split.any()


def test_trials_are_beside_all_sides_of_kinks(monkeypatch) -> None:
    best = replace(at_kinks(lam=(1.0, 0.0)), split=np.array([[False, True], [False, False]]))
    solutions = [same([1.0, 1.0], objective=2.0)] * 2
    found, asked = tries(
        *solutions, monkeypatch=monkeypatch, best=best, problem=BOTH, tol=0.5, ratios=[1.0]
    )
    assert [len(units.u) for units, _ in asked] == [4, 5]
    assert found.split.tolist() == [[False, True], [True, False]]
    monkeypatch.setattr("implicit_bias.limits.relu.kinks.MAX_KINKS", 0)
    found, asked = tries(monkeypatch=monkeypatch, best=best, problem=BOTH)
    assert asked == [] and "one along `escape` was not tried" in found.reason


# What is returned


@pytest.mark.parametrize(
    ("status", "spent", "reason"),
    [
        (Status.NOT_SEPARABLE, True, "no network with these helping gates separates the data"),
        (Status.FAILED, True, "`max_seconds` ended before the first program"),
        (Status.FAILED, False, "the solver found nothing"),
    ],
)
def test_why_nothing_was_found_is_said(status, spent, reason) -> None:
    solution = solution_of([[1.0, 0.0]], LAM, status=status)
    assert why_not(solution, programs_of(spent=spent)) == reason


def limit_of(found, *, spent=False, start=9.0, problem=PROBLEM):
    return as_limit(programs_of(problem=problem, spent=spent), found, start, 1e-3)


def test_a_search_that_found_nothing_is_an_empty_limit() -> None:
    found = failed(PROBLEM, (3.0,), "because")
    assert found.units.u.shape == (0, 2) and found.units.gates.shape == (2, 0)
    assert found.cones is found.units and found.shares.shape == found.split.shape == (2, 0)
    assert found.split.dtype == bool and found.births == 0 and found.lam.tolist() == [0, 0]
    limit = limit_of(found)
    assert limit.status is Status.FAILED and limit.reason == "because" and limit.values == (3.0,)
    assert limit.certificate == Certificate(math.inf, 0.0, math.inf, 0.0, 0.0, math.inf)
    assert (limit.kinks_helping, limit.kinks_opposing, limit.n_support) == (0, 0, 0)
    assert limit.scores.tolist() == [0, 0]
    assert limit.escape is None and math.isnan(limit.escape_sign)


def test_a_limit_is_in_the_coordinates_of_the_inputs() -> None:
    plane = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [1.0, 1.0]]) @ plane
    problem = ReLUProblem(X, np.array([1.0, -1.0, -1.0, 1.0]), 0.25)
    # Units in the coordinates of the inputs; on a turn of 30 degrees to sample 0, and of 45.
    own = np.array([[0.5, math.sqrt(0.75)], [-1.0, 0.0]]) @ plane
    cones = units_of(problem, own @ problem.basis.T, [1.0, -1.0])
    shares = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])
    found = Found(
        units=cones, cones=cones, lam=np.array([1.0, 0.0, 0.5, 0.0]), shares=shares,
        certificate=bounds(1.5), split=np.zeros((4, 2), dtype=bool), values=(2.0,),
        status=Status.FAILED, escape=Direction(problem.basis @ plane[0], -1.0, 1.5),
        escape_ratio=1.25, n_spare=7, births=2,
    )  # fmt: skip
    limit = limit_of(found, problem=problem)
    np.testing.assert_allclose(limit.units, own, atol=1e-12)
    np.testing.assert_allclose(limit.escape, plane[0], atol=1e-12)
    assert (limit.escape_sign, limit.escape_dual, limit.births, limit.n_spare) == (-1, 1.25, 2, 7)
    assert limit.support.tolist() == [True, False, True, False]
    np.testing.assert_array_equal(limit.support_inputs, X[[0, 2]])
    assert limit.support_labels.tolist() == [1, -1] and limit.slope == 0.25
    np.testing.assert_allclose(limit.turn, [30, 45])
    assert limit.certificate.smallest_turn == pytest.approx(30)
    # Helping pairs have the gates of the cones, others the shares.
    assert limit.cone_gates.tolist() == [[True, False], [True, False]]
    assert limit.cone_shares.tolist() == [[1, 0.2], [0.5, 0]]
    assert (limit.programs, limit.solves, limit.seconds, limit.tol) == (3, 2, 1.25, 1e-3)
    assert limit.start_value == 9 and limit.status is Status.FAILED
    z = X @ own.T
    scores = np.where(z > 0, z, 0.25 * z) @ [1.0, -1.0]
    np.testing.assert_allclose(limit.scores, scores, atol=1e-12)
    # Sides that are among the cones are no faces.
    split_there = np.array([[True, False], [False, False], [False, True], [False, False]])
    both = limit_of(replace(found, split=split_there), problem=problem)
    assert both.turn.tolist() == [90, 90] and both.certificate.smallest_turn == 90


def test_kinks_of_a_limit_are_counted_by_their_side() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    problem = ReLUProblem(X, np.array([1.0, 1.0, -1.0]))
    found = found_of(problem, [[0.0, 1.0]], [1.0], [1.0, 1.0, 1.0], status=Status.FAILED)
    limit = limit_of(found, problem=problem)
    assert (limit.kinks_helping, limit.kinks_opposing) == (1, 1) and limit.turn.tolist() == [0]


OUTSIDE = found_of().cones


@pytest.mark.parametrize(
    ("known", "spent", "start", "status", "reason"),
    [
        ({}, True, 1.5, Status.LIVE_OPTIMUM, "told"),
        ({}, False, 1.5 / 1.0009, Status.LIVE_OPTIMUM, "told"),
        ({}, False, 1.4, Status.FAILED, "its value 1.5 is above the network's own, 1.4"),
        ({"status": Status.LOCAL_OPTIMUM}, False, 1.4, Status.FAILED, "its value 1.5 is"),
        ({"status": Status.STATIONARY}, False, 1.4, Status.FAILED, "its value 1.5 is"),
        ({"status": Status.GLOBAL_OPTIMUM}, False, 1.4, Status.GLOBAL_OPTIMUM, "told"),
        ({"closed": True}, True, 9.0, Status.FAILED, "no program was left for the gates"),
        ({"closed": True}, False, 9.0, Status.FAILED, "a unit is outside its cones, by rounding"),
        ({"closed": True, "status": Status.STATIONARY}, False, 9.0, Status.STATIONARY, "told"),
        ({"closed": True, "status": Status.STATIONARY}, True, 9.0, Status.FAILED, "no program was"),
        ({"closed": True, "status": Status.STATIONARY}, False, 1.4, Status.FAILED, "its value"),
    ],
)
def test_optima_are_in_their_cones_and_no_worse_than_the_network(
    known, spent, start, status, reason
) -> None:
    known = dict(known)
    cones = replace(OUTSIDE, gates=~OUTSIDE.gates) if known.pop("closed", False) else OUTSIDE
    limit = limit_of(found_of(cones=cones, reason="told", **known), spent=spent, start=start)
    assert limit.status is status and limit.reason.startswith(reason)


def test_no_unit_is_born_unless_births_are_asked_for(monkeypatch) -> None:
    asked = []

    def seek(programs, units, births, width):
        asked.append((births, width, len(units.u), programs.max_patterns))
        return failed(programs.problem, (), "")

    patched(monkeypatch, seek=seek)
    network = ib.ReLU.from_weights([[1.0, 0.1], [0.0, 0.0], [0.2, 1.0]], [1.0, 1.0, -1.0])
    for options in ({}, {"births": 0}, {"births": 2, "max_patterns": 9}):
        limit = ib.limits.relu_local_limit(network, PROBLEM.inputs, PROBLEM.y, **options)
        assert limit.start_value == pytest.approx(np.hypot([1, 0.2], [0.1, 1]).sum() / 0.8)
    assert [one[:3] for one in asked] == [(0, 3, 2), (0, 3, 2), (2, 3, 2)]
    assert asked[2][3] == 9


def test_networks_of_other_inputs_and_of_no_weights_are_refused() -> None:
    other = ib.ReLU.from_weights([[1.0, 0.0, 0.0]], [1.0])
    with pytest.raises(ValueError, match="`X` must have 3 columns, those of the network, got 2"):
        ib.limits.relu_local_limit(other, PROBLEM.inputs, PROBLEM.y)
    zero = ib.ReLU.from_weights([[1.0, 0.0]], [0.0])
    with pytest.raises(ValueError, match="`network` is 0 on every input"):
        ib.limits.relu_local_limit(zero, PROBLEM.inputs, PROBLEM.y)


def test_a_settled_limit_is_the_local_limit_without_a_look_at_further_units() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(14, 3))
    y = np.sign(X[:, 0] * X[:, 1])
    network = ib.ReLU(3, 12, random_state=1)
    settings = ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    ib.train(network, X, y, settings=settings)
    whole = ib.limits.relu_local_limit(network, X, y)
    settled = settled_limit(network, X, y, tol=1e-8, max_seconds=60.0)
    assert settled.status is Status.LIVE_OPTIMUM and settled.certify(X, y).gap < 1e-8
    assert settled.value == whole.value < whole.start_value
    assert whole.escape is not None and settled.escape is None
