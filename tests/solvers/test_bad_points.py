"""Bad points handed to certificates, and exact fractions beside what is rounded outwards.

Bounds are compared with exact arithmetic without any allowance: what rounds the wrong way fails.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pkgutil import resolve_name

import numpy as np
import pytest

from implicit_bias.limits import (
    DiagonalLimit,
    FitLimit,
    path_lower_bound,
    relu_lower_bound,
    solve_diagonal,
    solve_fit,
)
from solvers import (
    FIT_LOSSES,
    GatedDesign,
    MaxMarginProgram,
    Status,
    certify,
    gap_between,
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


@pytest.mark.parametrize("units", [0, 1, 3, 100])
def test_what_counts_as_inseparable_is_told_to_half_a_unit_in_the_last_place(units) -> None:
    # Samples 1 and 1 + units / 2^52 of both labels: what is left is a share of units / 2^53.
    X = np.array([[1.0, 0.0], [1 + units * 2.0**-52, 0.0]])
    program = MaxMarginProgram(GatedDesign(X, np.ones((2, 1)), ONE_GROUP), np.array([1.0, -1.0]))
    blocks_cancel = resolve_name("solvers.certificates.max_margin:blocks_cancel")
    found = certify(program, dual=np.ones(2))
    assert found.proves_inseparability() == (units < 2)
    assert blocks_cancel(program, np.ones(2)) == (units < 2)


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


# Points of fits


def fitted(loss: str, **how: float | str) -> tuple[FitLimit, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 4))
    y = np.sign(X[:, 0]) if loss == "logistic" else rng.normal(size=6)
    if loss == "softmax":
        y = np.eye(3)[rng.integers(0, 3, 6)]
    return solve_fit(X, y, loss=loss, **how).require(), X, y


FITS = [
    ("squared", {"penalty": 0.1}), ("squared", {"penalty": 0.1, "norm": "linf"}),
    ("squared", {"radius": 0.2, "norm": "l1"}), ("squared", {"penalty": 0.3, "norm": "ridge"}),
    ("logistic", {"penalty": 0.02}), ("logistic", {"radius": 2.0}),
    ("softmax", {"penalty": 0.05}), ("softmax", {"penalty": 0.3, "norm": "ridge"}),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "how"), FITS)
def test_no_points_bound_a_fit_from_the_wrong_side(loss, how) -> None:
    limit, X, y = fitted(loss, **how)
    optimum, rng = limit.objective, np.random.default_rng(4)
    for scale in np.repeat([1e-2, 0.1, 1.0, 30.0], 4):
        zeta = limit.zeta + scale * rng.normal(size=limit.zeta.shape)
        dual = limit.dual + scale * rng.normal(size=limit.dual.shape)
        bad = replace(limit, zeta=zeta, dual=dual).certify(X, y)
        assert bad.certificate.objective >= optimum * (1 - 1e-7)
        assert bad.certificate.dual_objective <= optimum * (1 + 1e-7)
        assert bad.status is Status.INACCURATE


@pytest.mark.parametrize("loss", ["squared", "logistic", "softmax"])
def test_what_multipliers_explain_is_below_the_loss_of_all_scores(loss) -> None:
    """F(f) + <r, f> is least at f with r = -grad F(f), and its infimum is `dual(r)`."""
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(4))
    F = FIT_LOSSES[loss](shares)
    y = {"squared": rng.normal(size=4), "logistic": np.array([1.0, 1, -1, 1]),
         "softmax": np.eye(3)[[0, 2, 1, 1]]}[loss]  # fmt: skip
    for _ in range(20):
        f, g = 3 * rng.normal(size=(2, *y.shape))
        r = F.multipliers(f, y)
        assert F.dual(r, y) == pytest.approx(F.value(f, y) + np.sum(r * f), rel=1e-9)
        assert F.dual(r, y) <= F.value(g, y) + np.sum(r * g) + 1e-12
    if loss == "squared":
        return  # its multipliers may be any
    # Outside of its domain, a little or far, there are scores at which that sum has no bound.
    n_outside = 0
    for size in np.repeat([1e-6, 0.1, 3.0], 20):
        way = rng.normal(size=y.shape)
        if loss == "softmax":
            way -= way.mean(axis=1, keepdims=True)
        # From scores far out, where multipliers are at the edge.
        f = 50 * rng.normal(size=y.shape)
        r = F.multipliers(f, y) + size * way
        n_outside += F.dual(r, y) == -np.inf
        corners = [1e9 * way, -1e9 * way, 1e9 * f]
        least = min(F.value(g, y) + np.sum(r * g) for g in corners)
        assert F.dual(r, y) <= least + 1e-9
    assert n_outside > 30


def test_what_does_not_interpolate_is_no_interpolant() -> None:
    X = np.array([[1.0, 0.0], [1.0, 0.0]])
    limit = solve_fit(X[:1], [1.0], loss="squared").require()
    # Bounds agree, and by the last targets every interpolant misses a part of 1e-10.
    found = replace(limit, dual=np.full(2, 0.5), tol=1e-12).certify(X, [1.0, 1 + 2e-10])
    assert found.gap <= 1e-12 < found.certificate.misfit < 1e-9
    assert found.status is Status.INACCURATE
    # What proves that there is none has a gain above 0, and vanishes on all features.
    torn = solve_fit(X, [1.0, 2.0], loss="squared")
    assert torn.status is Status.NOT_INTERPOLABLE
    for proof in (
        -torn.proof,
        np.abs(torn.proof),
        0 * torn.proof,
        torn.proof + np.eye(2)[0] * 1e-6,
    ):
        assert replace(torn, proof=proof).certify(X, [1.0, 2.0]).status is Status.INACCURATE


# Points of diagonal networks


def diagonal(depth: int, margin: float | None) -> tuple[DiagonalLimit, np.ndarray, np.ndarray]:
    features = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]])
    y, u0, v0 = np.array([1.0, -1.0]), np.full(4, 0.5), np.full(4, 0.5 if depth > 2 else 0.1)
    limit = solve_diagonal(features, y, u0, v0, depth=depth, margin=margin).require()
    return limit, features, y


DIAGONALS = pytest.mark.parametrize(("depth", "margin"), [(2, None), (2, 1.0), (3, None), (4, 2.0)])


@DIAGONALS
def test_no_points_bound_a_diagonal_limit_from_the_wrong_side(depth, margin) -> None:
    limit, features, y = diagonal(depth, margin)
    rng, proved = np.random.default_rng(6), 0
    for scale in np.repeat([1e-3, 0.03, 0.3, 3.0], 8):
        zeta = limit.zeta + scale * rng.normal(size=4)
        dual = limit.dual + 0.1 * scale * rng.normal(size=2)
        found = replace(limit, zeta=zeta, dual=dual).certify(features, y)
        assert found.certificate.dual_objective <= limit.objective + 1e-9
        assert found.status is Status.INACCURATE
        proved += np.isfinite(found.gap)
    assert proved > 8
    if margin is not None:  # multipliers of margins are of the sign of their label
        for dual in (-limit.dual, limit.dual * [1.0, -1.0]):
            wrong = replace(limit, dual=dual).certify(features, y)
            assert wrong.gap == np.inf and wrong.certificate.dual_objective == -np.inf


@DIAGONALS
def test_coefficients_are_within_their_distance(depth, margin) -> None:
    limit, features, y = diagonal(depth, margin)
    away = np.linalg.svd(features)[2][2:]  # changes that no sample sees
    rng, ratios = np.random.default_rng(7), []
    for scale in np.repeat([1e-4, 1e-2, 0.3], 10):
        zeta = limit.zeta + scale * rng.normal(size=2) @ away
        for dual in (limit.dual, limit.dual * (1 + 1e-3 * rng.random(2))):
            found = replace(limit, zeta=zeta, dual=dual).certify(features, y)
            moved = np.abs(zeta - limit.zeta).max()
            assert moved <= found.certificate.distance
            ratios.append(found.certificate.distance / moved)
    assert min(ratios) < 3.5  # it is near: a distance four times smaller would be wrong


@pytest.mark.parametrize("margin", [None, 1.0])
def test_proofs_of_the_wrong_sign_prove_nothing_of_a_diagonal_network(margin) -> None:
    # Equal samples of both labels; coefficients keep the sign that u0 = v0 gives them.
    features, y = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([1.0, -1.0])
    torn = solve_diagonal(features, y, np.ones(2), np.ones(2), margin=margin)
    named = Status.NOT_INTERPOLABLE if margin is None else Status.NOT_SEPARABLE
    assert torn.status is named and replace(torn, proof=2 * torn.proof).certify(features, y) == (
        replace(torn, proof=2 * torn.proof)
    )
    for proof in (-torn.proof, torn.proof * [1.0, 0.9], 0 * torn.proof):
        assert replace(torn, proof=proof).certify(features, y).status is Status.INACCURATE
    assert replace(torn, zeta=-np.ones(2), proof=None).certify(features, y).gap == np.inf
