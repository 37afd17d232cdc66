"""The judge of random programs: exact, and able to find a false claim."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

from experiments.fuzz import __main__ as fuzz
from experiments.fuzz.judge import Exact, false_claims, judged, recompute
from experiments.fuzz.programs import KINDS, TIED, TWISTS, draw
from solvers import Settings, Status, solve
from tests.problems import linear_program

# <w, (2, 0)> >= 1 and <w, (0, 1)> <= -1: w = (1/2, -1), the multipliers in the ratio 1 to 4.
TWO = linear_program([[2, 0], [0, 1]], [1, -1])


def test_integers_and_a_power_of_two_are_the_numbers_themselves() -> None:
    values = np.array([0.0, 1e-300, -0.1, 3e200, 5e-324])
    exact = Exact.of(values)
    found = [Fraction(int(whole)) * Fraction(2) ** exact.exponent for whole in exact.integers]
    assert found == [Fraction(value) for value in values.tolist()]


def test_bounds_are_those_of_the_closed_form() -> None:
    found = recompute(TWO, np.array([[0.5, -1.0]]), np.array([0.25, 1.0]))
    assert found.objective == Decimal("1.25").sqrt(found_context())
    assert abs(found.gap) < Decimal("1e-55")
    assert recompute(TWO, np.array([[0.5, 1.0]]), np.array([1.0, 0.0])).objective.is_infinite()


def found_context():
    from decimal import Context

    return Context(prec=60)


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (lambda s: replace(s, primal=-s.primal), "separated"),
        (lambda s: replace(s, dual=-s.dual), "multipliers"),
        (lambda s: replace(s, dual=s.dual * np.array([1.0, 1.001])), "gap"),
        (lambda s: replace(s, status=Status.NOT_SEPARABLE), "cancel"),
        (
            lambda s: replace(s, certificate=replace(s.certificate, objective=1.1)),
            "upper bound",
        ),
        (
            lambda s: replace(s, certificate=replace(s.certificate, dual_objective=1.2)),
            "lower bound",
        ),
    ],
)
def test_a_false_claim_is_found(spoil, claim) -> None:
    solution = solve(TWO)
    assert false_claims(TWO, solution) == []
    assert any(claim in found for found in false_claims(TWO, spoil(solution)))


def test_a_status_against_construction_or_an_oracle_is_wrong() -> None:
    drawn = next(d for d in map(draw, range(100)) if d.twist == "plain" and d.separable)
    solution = solve(drawn.program, settings=drawn.settings)
    assert judged(drawn, solution).verdict == "right"
    against = judged(replace(drawn, separable=False), solution).verdict
    assert against == "wrong: not separable by construction"
    loose = solve(drawn.program, settings=Settings(tol=0.5, max_iterations=1))
    closer = replace(loose.certificate, objective=loose.certificate.dual_objective)
    assert "outside the bounds" in judged(drawn, replace(loose, certificate=closer)).verdict
    refused = replace(solution.certificate, separation_bound=0.0)
    denied = replace(solution, status=Status.NOT_SEPARABLE, certificate=refused)
    assert "HiGHS separates it" in judged(drawn, denied).verdict


def test_a_solve_that_does_not_end_is_stopped_and_wrong(monkeypatch) -> None:
    def endless(*_, **__):
        while True:
            pass

    monkeypatch.setattr(fuzz, "solve", endless)
    monkeypatch.setattr(fuzz, "LIMIT", 1)
    assert fuzz.verdict(3).verdict == "wrong: no answer within 1 s"


def test_tied_programs_are_of_small_integers() -> None:
    tied = [d for d in map(draw, range(400)) if d.twist in TIED and d.kind == "integer gates"]
    assert {d.twist for d in tied} == set(TIED)
    for drawn in tied:
        assert np.all(np.abs(drawn.program.design.X) <= 2)
        assert np.all(drawn.program.design.X % 1 == 0)
        assert drawn.program.design.X.any(axis=1).all()
    assert {d.separable for d in map(draw, range(400)) if d.twist in TIED} == {None, True}


def test_every_kind_and_twist_is_drawn_and_always_the_same() -> None:
    drawn = [draw(seed) for seed in range(200)]
    assert {d.kind for d in drawn} == set(KINDS) and {d.twist for d in drawn} == set(TWISTS)
    np.testing.assert_array_equal(draw(7).program.design.X, drawn[7].program.design.X)


def test_ten_programs_have_no_wrong_status_and_are_not_run_twice(tmp_path, monkeypatch) -> None:
    options = ["--programs", "10", "--out", str(tmp_path / "fuzz.csv")]
    done = CliRunner().invoke(fuzz.main, options)
    assert done.exit_code == 0 and "9 right" in done.output and "wrong" not in done.output
    monkeypatch.setattr(fuzz, "verdict", lambda seed: pytest.fail(f"seed {seed} again"))
    assert CliRunner().invoke(fuzz.main, options).exit_code == 0
