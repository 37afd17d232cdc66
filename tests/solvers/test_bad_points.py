"""Bad points handed to certificates, and exact fractions beside what is rounded outwards.

Bounds are compared with exact arithmetic without any allowance: what rounds the wrong way fails.
"""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction
from pkgutil import resolve_name

import numpy as np
import pytest

from implicit_bias.limits import path_lower_bound, relu_lower_bound
from solvers import (
    Answer,
    Certificate,
    GatedDesign,
    MaxMarginProgram,
    NotCertified,
    Status,
    certify,
    conclude,
    gap_between,
    support_vectors,
)

ONE_GROUP = np.zeros(1, dtype=np.int64)
exact = np.vectorize(Fraction, otypes=[object])


def program_of(rng: np.random.Generator, *, cancelled: bool) -> tuple[MaxMarginProgram, np.ndarray]:
    """A program of one group with multipliers; with blocks that nearly cancel, or without."""
    n, J, D = (int(size) for size in rng.integers(1, 4, 3))
    X, Z, lam = rng.normal(size=(n, D)), rng.normal(size=(n, J)), rng.random(n)
    if cancelled:  # a second copy of the samples, of the other label and a little off
        off = 2.0 ** -int(rng.integers(20, 50))
        X = np.vstack([X, X * (1 + off * rng.normal(size=X.shape))])
        Z, lam = np.vstack([Z, Z]), np.append(lam, lam)
    y = np.repeat([1.0, -1.0], n)[: len(X)]
    return MaxMarginProgram(GatedDesign(X, Z, np.zeros(J, dtype=np.int64)), y), lam


@pytest.mark.parametrize("cancelled", [False, True])
def test_lower_bounds_and_shares_contain_their_rounding(cancelled) -> None:
    rng = np.random.default_rng(5)
    for _ in range(150):
        program, lam = program_of(rng, cancelled=cancelled)
        X, Z, weights = exact(program.design.X), exact(program.design.Z), exact(lam)
        terms = np.einsum("n,nj,nd->njd", weights * exact(program.y), Z, X)
        blocks = terms.sum(axis=0)
        found = certify(program, dual=lam)
        assert Fraction(found.dual_objective) ** 2 * (blocks**2).sum() <= weights.sum() ** 2
        share = max((abs(blocks) / abs(terms).sum(axis=0)).ravel())
        assert share <= Fraction(found.separation_bound)


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_margins_and_upper_bounds_contain_their_rounding(scale) -> None:
    rng = np.random.default_rng(6)
    for _ in range(150):
        J, D = (int(size) for size in rng.integers(1, 3, 2))
        x, z, V = rng.normal(size=(1, D)), rng.normal(size=(1, J)), rng.normal(size=(J, D))
        # Of the last entry the rest of the sum: what is left is `scale` of the terms.
        V[-1, -1] = -((z[0] * (V @ x[0])).sum() - z[0, -1] * V[-1, -1] * x[0, -1])
        V[-1, -1] = (V[-1, -1] + scale) / (z[0, -1] * x[0, -1])
        program = MaxMarginProgram(GatedDesign(x, z, np.zeros(J, dtype=np.int64)), np.ones(1))
        margin = np.einsum("nj,nd,jd->", exact(z), exact(x), exact(V))
        found = certify(program, V)
        assert found.proves_separability() and margin > 0
        assert Fraction(found.smallest_margin) - Fraction(found.margin_rounding) <= margin
        assert Fraction(found.objective) ** 2 * margin**2 >= (exact(V) ** 2).sum()
        assert found.margin_rounding <= 1e-9 * margin and found.gap == np.inf


def test_norms_are_rounded_up() -> None:
    norm_above = resolve_name("solvers.certificates.max_margin:norm_above")
    rng = np.random.default_rng(2)
    for _ in range(200):
        J, D = (int(size) for size in rng.integers(1, 5, 2))
        V, Z = rng.normal(size=(J, D)), np.ones((1, J))
        design = GatedDesign(np.ones((1, D)), Z, np.zeros(J, dtype=np.int64))
        assert Fraction(norm_above(design, V, np.sum)) ** 2 >= (exact(V) ** 2).sum()


def test_sums_that_do_not_cancel_need_no_compensation(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    X = np.abs(rng.normal(size=(50, 4)))
    program = MaxMarginProgram(GatedDesign(X, np.ones((50, 1)), ONE_GROUP), np.ones(50))
    bounds = resolve_name("solvers.certificates.max_margin")
    for name in ("enclose_scores", "enclose_adjoint"):
        monkeypatch.delattr(bounds, name)
    assert certify(program, np.ones((1, 4)), np.ones(50)).gap < np.inf


@pytest.mark.parametrize(("size", "n"), [(3e-308, 1), (1.0, 1500), (1e307, 4), (1e307, 40)])
def test_lower_bounds_are_below_the_optimum_at_the_ends_of_the_range_and_of_pieces(size, n) -> None:
    rng = np.random.default_rng(4)
    x, y = size * rng.uniform(0.9, 1.1, n), np.sign(rng.uniform(-0.3, 0.7, n))
    program = MaxMarginProgram(GatedDesign(x[:, None], np.ones((n, 1)), ONE_GROUP), y)
    lam = rng.random(n)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = Fraction(certify(program, dual=lam).dual_objective)
    total = exact(lam).sum() / abs((exact(lam) * exact(y) * exact(x)).sum())
    assert bound <= total
    # Blocks that are too large for a number bound nothing, and others are bounded closely.
    assert bound == 0 if n * size > 1e308 else bound >= total * Fraction(0.4)
    assert size != 1 or bound >= total * Fraction(1 - 1e-8)


@pytest.mark.parametrize("scale", [1.0, 2.0**20])
@pytest.mark.parametrize("units", [0, 1, 3, 100])
def test_what_counts_as_inseparable_is_told_to_half_a_unit_in_the_last_place(units, scale) -> None:
    # Samples 1 and 1 + units / 2^52 of both labels: what is left is a share of units / 2^53.
    X = np.array([[1.0, 0.0], [1 + units * 2.0**-52, 0.0]]) * scale
    program = MaxMarginProgram(GatedDesign(X, np.ones((2, 1)), ONE_GROUP), np.array([1.0, -1.0]))
    blocks_cancel = resolve_name("solvers.certificates.max_margin:blocks_cancel")
    found = certify(program, dual=np.ones(2))
    assert found.proves_inseparability() == (units < 2)
    assert blocks_cancel(program, np.ones(2)) == (units < 2)


def test_no_point_at_all_has_no_margin_and_numbers_prove_what_they_are() -> None:
    program = program_of(np.random.default_rng(0), cancelled=False)[0]
    nothing = certify(program)
    spoiled = certify(program, np.full_like(program.dual_blocks(program.y), np.nan))
    for one in (nothing, spoiled):
        assert (one.objective, one.smallest_margin, one.margin_rounding) == (np.inf, -np.inf, 0.0)
    assert (nothing.dual_objective, nothing.separation_bound) == (0.0, np.inf)
    # Tolerances and resolutions are reached by what is equal to them.
    assert replace(nothing, gap=0.5).proves_optimality(0.5)
    assert not replace(nothing, gap=np.nan).proves_optimality(0.5)
    assert replace(nothing, separation_bound=2.0**-52).proves_inseparability()
    assert not replace(nothing, separation_bound=2.0**-51).proves_inseparability()
    with pytest.raises(FrozenInstanceError):
        nothing.gap = 0.0
    with pytest.raises(TypeError, match="`gap` must be a number"):
        replace(nothing, gap="0")


def test_the_gap_contains_its_rounding() -> None:
    rng = np.random.default_rng(7)
    for upper, lower in rng.uniform([1.0, 0.5], [2.0, 1.5], (500, 2)):
        if upper > lower:
            assert Fraction(gap_between(upper, lower)) >= Fraction(upper) / Fraction(lower) - 1


def test_bounds_of_paths_contain_their_rounding() -> None:
    # A path of one input: a sum of products, which is exact as a fraction.
    rng = np.random.default_rng(8)
    for _ in range(150):
        n = int(rng.integers(1, 5))
        X, y, lam = rng.normal(size=(n, 1)), np.sign(rng.normal(size=n)), rng.random(n)
        gates = rng.normal(size=(n, 1))
        if n > 1:  # terms that cancel, down to rounding
            lam[-1] = abs((lam * y * gates[:, 0] * X[:, 0])[:-1].sum() / (gates[-1, 0] * X[-1, 0]))
        path = (exact(lam) * exact(y) * exact(gates[:, 0]) * exact(X[:, 0])).sum()
        bound = path_lower_bound(lam, X, y, [gates])
        assert Fraction(bound) * abs(path) <= exact(lam).sum()


def test_bounds_of_relu_networks_contain_their_rounding() -> None:
    # Of one input a unit is open left or right of 0; weights cancel down to rounding.
    rng = np.random.default_rng(9)
    for _ in range(150):
        x, lam = np.abs(rng.normal(size=4)), rng.random(4)
        y = np.array([1.0, -1.0, 1.0, -1.0])
        lam[3] = (lam[0] * x[0] - lam[1] * x[1] + lam[2] * x[2]) / x[3]
        if lam[3] > 0:
            size = abs((exact(lam) * exact(y) * exact(x)).sum())
            bound = relu_lower_bound(lam, x[:, None], y)
            assert Fraction(bound) * size <= exact(lam).sum()


@dataclass
class Told(Answer):
    """An answer that says something of its own."""

    status: Status
    certificate: Certificate
    words: str = ""
    tol: float = 1e-8

    @property
    def remark(self) -> str:
        return self.words


@pytest.mark.parametrize(("words", "said"), [("", "."), ("two samples", ". Two samples.")])
def test_what_is_not_certified_is_refused_with_its_remark_and_its_numbers(words, said) -> None:
    nothing = certify(program_of(np.random.default_rng(0), cancelled=False)[0])
    for status in (Status.SOLVED, Status.LOCAL_OPTIMUM):
        assert Told(status, nothing, words).require().status is status
    for status in (Status.INACCURATE, Status.FAILED):
        with pytest.raises(NotCertified) as caught:
            Told(status, nothing, words).require()
        head, numbers = str(caught.value)[:-1].split(" [")
        assert head == f"{status.name}: {status.advice}{said}"
        assert numbers.split(", ")[0] == "objective inf" and numbers.endswith(", tol 1e-08")
        assert "separation rounding 2.22e-16" in numbers and "solver" not in numbers
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value) and again.result.words == words


SEVERITIES = {
    0: {"SOLVED", "LOCAL_OPTIMUM", "GLOBAL_OPTIMUM", "EQUIVALENT", "ESTIMATED"},
    1: {"INACCURATE", "LIVE_OPTIMUM", "SADDLE", "FLAT", "STATIONARY", "HEURISTIC"},
    2: {"UNDECIDED", "TOO_FEW", "NOT_SEPARATING", "NOT_MONOTONE"},
    3: {"FAILED", "ABOVE_BOUND"},
}


def test_severities_are_zero_of_what_is_proved_and_rise_from_there() -> None:
    """Of several parts the worst speaks for all: proofs that there is no answer at the end."""
    for severity, names in SEVERITIES.items():
        assert {status.name for status in Status if status.severity == severity} == names
    refuted = [status for status in Status if status.severity > 3]
    order = ["NO_MINIMISER", "INCONSISTENT", "NOT_SEPARABLE", "NOT_INTERPOLABLE"]
    assert [status.name for status in refuted] == order
    assert [status.severity for status in refuted] == [4, 5, 6, 6]


def test_what_is_concluded_is_scaled_to_feasibility() -> None:
    design = GatedDesign(np.array([[3.0, 4.0]]), np.ones((1, 1)), ONE_GROUP)
    point = MaxMarginProgram(design, np.ones(1))
    how = {"tol": 1e-8, "iterations": 3, "seconds": 0.0, "solver": "by hand"}
    for scale in (0.25, 1.0, 10.0):
        found = conclude(point, scale * np.array([[3.0, 4.0]]), np.full(1, scale), **how)
        np.testing.assert_allclose(found.primal, [[0.12, 0.16]])
        np.testing.assert_allclose(found.dual, [0.2])
        assert found.certificate.smallest_margin == pytest.approx(1)
        against = conclude(point, -scale * np.array([[3.0, 4.0]]), None, **how)
        np.testing.assert_array_equal(against.primal, -scale * np.array([[3.0, 4.0]]))
        np.testing.assert_array_equal(against.dual, [0.0])
    with pytest.raises(FrozenInstanceError):
        found.tol = 1.0
    assert found != conclude(point, found.primal, found.dual, **how)


def test_where_scaling_costs_the_status_powers_of_two_are_taken() -> None:
    feasible = resolve_name("solvers.certificates.solution:feasible")
    known = Certificate(1.0, 0.5, 1e-9, 3.0, 0.0, 1.0, 2.0**-52)
    worse, asked = replace(known, gap=1.0), []

    def certified(margin: float, total: float) -> Certificate:
        asked.append((margin, total))
        return worse if len(asked) == 1 else known

    assert feasible(certified, known, 3.0, 1e-8) == (2.0, 8.0, known)
    assert asked == [(3.0, 6.0), (2.0, 8.0)]
    asked.clear()
    assert feasible(certified, worse, 3.0, 1e-8) == (3.0, 6.0, worse)


@pytest.mark.parametrize("margin", [1.0, 1 + 5e-13, 1 + 1e-12, 1 - 1e-15, 1 + 2e-12, 1.5])
@pytest.mark.parametrize("share", [1.0, 1 - 5e-13, 1 + 5e-13, 1 - 2e-12, 1 + 2e-12, 0.5, 1.5])
def test_feasible_points_that_are_no_larger_than_needed_stay_as_they_are(margin, share) -> None:
    feasible = resolve_name("solvers.certificates.solution:feasible")
    known = Certificate(1.0, 0.5, 1e-9, margin, 0.0, 1.0, 2.0**-52)
    scaled = replace(known, gap=2e-9)
    found = feasible(lambda margin, total: scaled, known, 0.5 * share, 1e-8)
    stays = 1 <= margin <= 1 + 1e-12 and abs(share - 1) < 1e-12
    assert found == ((1.0, 1.0, known) if stays else (margin, share, scaled))


def test_support_vectors_are_those_whose_multiplier_is_above_their_slack() -> None:
    design = GatedDesign(np.array([[2.0], [3.0], [3.0], [5.0]]), np.ones((4, 1)), ONE_GROUP)
    program, dual = MaxMarginProgram(design, np.ones(4)), np.array([1.0, 0.6, 0.4, 0.9])
    for scale in (1e-3, 0.5, 1e3):  # slacks of 0, a half, a half and three halves
        for size in (1e-3, 1.0, 1e3):
            found = support_vectors(program, np.full((1, 1), scale), size * dual)
            assert found.tolist() == [True, True, False, False]
    one = np.ones((1, 1))
    assert support_vectors(program, 0 * one, dual * [1, 0, 1, 0]).tolist() == [True, False] * 2
    assert not support_vectors(program, one, 0 * dual).any()
    # Margins that are not positive count as the resolution of the largest.
    wrong = MaxMarginProgram(design, np.array([-1.0, 1.0, 1.0, 1.0]))
    assert support_vectors(wrong, one, dual * [0, 1, 1, 1]).tolist() == [True] + [False] * 3


def test_tables_have_a_line_of_titles_where_there_are_titles() -> None:
    html_table = resolve_name("solvers.certificates.html:html_table")
    assert "<thead>" not in html_table("a", (), [("b", "c")])
    assert "<thead>" not in html_table("a", ("", ""), [("b", "c")])
    assert "<thead><tr>" in html_table("a", ("", "<d>"), [("b", "c")])
