"""Bad points handed to the certificates of finite limits: fits, and diagonal networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from implicit_bias.limits import DiagonalLimit, FitLimit, solve_diagonal, solve_fit
from solvers import FIT_LOSSES, Status

mpmath: Any = pytest.importorskip("mpmath")


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


def test_tiny_softmax_losses_have_all_digits_of_value_slopes_and_bound() -> None:
    F, y = FIT_LOSSES["softmax"](np.array([0.25, 0.75])), np.eye(3)[[1, 2]]
    for scale in (1.0, 30.0, 200.0):
        f = scale * np.array([[-1.0, 1.0, 0.25], [0.5, -1.5, 1.0]])
        with mpmath.workdps(300):
            value, entropy, slopes, bends = mpmath.mpf(0), mpmath.mpf(0), [], []
            for share, scores, truth in zip(F.shares, f, y.argmax(axis=1), strict=True):
                sizes = [mpmath.exp(mpmath.mpf(one)) for one in scores]
                p = [one / mpmath.fsum(sizes) for one in sizes]
                value -= share * mpmath.log(p[truth])
                entropy -= share * mpmath.fsum(one * mpmath.log(one) for one in p)
                slopes.append([float(share * ((k == truth) - p[k])) for k in range(3)])
                bends.append(
                    [[float(share * p[j] * ((j == k) - p[k])) for k in range(3)] for j in range(3)]
                )
        r = F.multipliers(f, y)
        assert F.value(f, y) == pytest.approx(float(value), rel=1e-13)
        assert F.dual(r, y) == pytest.approx(float(entropy), rel=1e-12)
        np.testing.assert_allclose(r, slopes, rtol=1e-13)
        np.testing.assert_allclose(F.curvature(f, y), bends, rtol=1e-13)
        # Multipliers of sums off 0 explain nothing: a number added to all scores costs no loss.
        assert F.dual(r + 1e-3 * np.abs(r), y) == F.dual(r - 1e-3 * np.abs(r), y) == -np.inf


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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_misfit_is_a_share_of_the_targets_and_proofs_are_of_samples_of_any_size(scale) -> None:
    X = np.array([[1.0, 0.0], [1.0, 0.0]])
    limit = solve_fit(X[:1], [scale], loss="squared").require()
    found = replace(limit, dual=np.full(2, 0.5 / scale), tol=1e-12)
    misfit = found.certify(X, [scale, scale * (1 + 2e-10)]).certificate.misfit
    assert misfit == pytest.approx(1e-10, rel=1e-4)
    torn = solve_fit(X * [[1.0], [scale]], [2.0, scale], loss="squared")
    assert torn.status is Status.NOT_INTERPOLABLE


def test_of_a_ball_it_is_said_whether_it_binds_and_the_least_loss_may_be_zero() -> None:
    X = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
    for size in (1e-4, 1.0, 1e4):
        y = size * np.array([1.0, -1.0, 0.5])
        ball = solve_fit(X, y, loss="squared", radius=0.1 * size, norm="l2").require()
        assert ball.binds and ball.size == pytest.approx(0.1 * size)
        assert not solve_fit(X, y, loss="squared", penalty=0.1 * size, norm="l2").binds
        assert not solve_fit(X, y, loss="squared", radius=10 * size, norm="l2").binds
    zero = solve_fit(X, np.zeros(3), loss="squared", radius=1.0).require()
    assert (zero.objective, zero.gap) == (0.0, 0.0)
    # The logistic loss is above 0, and of less than 1e-290 no digits are known.
    ball = solve_fit(X, np.ones(3), radius=1.0)
    far = replace(ball, zeta=np.full(2, 500.0), dual=np.zeros(3), radius=1e3).certify(X, np.ones(3))
    assert far.objective < 1e-290 and far.gap == np.inf


WIDE = np.array([[2.0, 1.0, 0.0, 1.0], [1.0, -1.0, 1.0, 0.5], [0.5, 1.0, 1.0, -2.0]])
TWICE = WIDE[:, [0, 0, 1, 2]]


@pytest.mark.parametrize(
    ("X", "how", "unique"),
    [
        (WIDE, {"penalty": 0.1, "norm": "l1"}, True),
        (TWICE, {"penalty": 0.1, "norm": "l1"}, False),
        (TWICE, {"penalty": 0.1, "norm": "ridge"}, True),
        (TWICE, {"penalty": 0.1, "norm": "l2"}, True),
        (WIDE, {"penalty": 0.1, "norm": "linf"}, False),
        (WIDE, {"norm": "l2"}, False),
        (WIDE, {"radius": 0.1, "norm": "linf"}, False),
        (WIDE[:, :3], {"radius": 0.1, "norm": "linf"}, True),
    ],
)
def test_coefficients_that_scores_tell_apart_are_unique(X, how, unique) -> None:
    limit = solve_fit(X, [1.0, -2.0, 0.5], loss="squared", **how).require()
    assert limit.is_unique is unique


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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_misfits_of_a_diagonal_network_are_shares_of_what_was_asked(scale) -> None:
    features, start = np.array([[2.0, 1.0]]), np.full(2, 0.5)
    limit = solve_diagonal(features, [4.0 * scale], start).require()
    off = replace(limit, zeta=limit.zeta * (1 + 1e-6)).certify(features, [4.0 * scale])
    assert off.certificate.misfit == pytest.approx(1e-6, rel=1e-3) and off.gap > 0
    wide = solve_diagonal(features, [1.0], start, margin=scale).require()
    short = replace(wide, zeta=wide.zeta * (1 - 1e-3)).certify(features, [1.0])
    assert short.certificate.misfit == pytest.approx(1e-3, rel=1e-4)
    assert "interpolation" in str(limit) and f"margins of {scale:g}" in str(wide)
    assert 0 <= limit.seconds < 60
    # What the features span is told at any scale of them, and with equal samples too.
    for some in (scale * features, scale * np.array([[2.0, 1.0], [4.0, 2.0]])):
        assert limit.off_span(some, limit.zeta) < 1e-9
        c = 0.25  # of u0 = 0.5 and v0 = 0
        for b in ([1.0, -1.0], [1e-4, 3e-4]):
            z = np.arcsinh(2 * np.array(b) / c)
            left = abs(z @ [1.0, -2.0]) / np.sqrt(5) / np.linalg.norm(z)
            assert limit.off_span(some, b) == pytest.approx(left)
        assert limit.off_span(some, [0.0, 0.0]) == 0
    tiny = replace(limit, zeta=limit.zeta + 1e-9 * np.array([1.0, -2.0]) * scale)
    assert tiny.certify(features, [4.0 * scale]).gap > 0


def test_proofs_leave_out_what_has_no_weight_and_samples_without_a_part() -> None:
    # A coefficient whose weights are both 0 stays 0, and the first alone does not interpolate.
    for off in ([5.0, 3.0], [3.0, 5.0]):
        features = np.column_stack([np.ones(2), off])
        for scale in (1e-6, 1.0):
            y = scale * np.array([1.0, 2.0])
            torn = solve_diagonal(features, y, [1.0, 0.0])
            assert torn.status is Status.NOT_INTERPOLABLE
            assert solve_diagonal(features, y, [1.0, 1.0]).status is Status.SOLVED
    # Of the targets in the range of the features the bounds agree.
    fitted = solve_diagonal([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0], [1.0, 0.5])
    assert fitted.status is Status.NOT_INTERPOLABLE and fitted.gap < 1e-8
    assert fitted.certificate.dual_objective == pytest.approx(fitted.objective, abs=1e-9)
    # Samples of both labels on one ray, of other sizes, and one that has no part in the proof.
    features, y = np.array([[1.0, 2.0], [2.0, 4.0], [1.0, -1.0]]), np.array([1.0, -1.0, 1.0])
    torn = solve_diagonal(features, y, np.ones(2), margin=1.0)
    assert torn.status is Status.NOT_SEPARABLE
    proof = np.array([2.0, -1.0, 0.0])
    assert replace(torn, proof=proof).certify(features, y).status is Status.NOT_SEPARABLE
    assert solve_diagonal(features[:1], y[:1], np.ones(2), max_iterations=1).iterations <= 1
    for weights in ([0.0, 1.0], [-1.0, 1.0]):
        with pytest.raises(ValueError, match="`u0` must be positive at a depth of 3"):
            solve_diagonal(features[:1], y[:1], weights, depth=3)
