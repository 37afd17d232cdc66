"""Newton's method in the coefficients: ridge, boxes, balls in l2, and the barrier of AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .._solve import Factor, damped_newton, longest_step
from ..data.arrays import Floats
from .losses import MeanLoss
from .regularisers import Barrier, Ridge

__all__ = ["Gap", "solve_barrier", "solve_box", "solve_groups", "solve_l2_ball", "solve_ridge"]

_STEPS, _STAGE = 200, 0.1
Gap = Callable[[Floats], float]


def solve_ridge(
    A: Floats, y: Floats, loss: MeanLoss, lam: float, start: Floats | None = None
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam ||w||^2 / 2``; return w and the number of steps.

    In the row space of A, whichever of samples and coefficients are fewer.
    """
    if A.shape[1] > len(A):  # A = L Q' with L (n, n)
        Q, R = np.linalg.qr(A.T)
        w, steps = solve_ridge(R.T, y, loss, lam, None if start is None else Q.T @ start)
        return np.asarray(Q @ w), steps
    w = np.zeros(A.shape[1]) if start is None else start
    ridge, curved = Ridge(lam), np.full(len(w), lam)
    return _fitted(A, y, loss, w, ridge.value, lambda w: (lam * w, np.diag(curved)))


def solve_l2_ball(A: Floats, y: Floats, loss: MeanLoss, radius: float) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` over ``||w|| <= radius``: a ridge whose weight makes it so long."""
    size = float(np.linalg.norm(A.T @ loss.multipliers(np.zeros_like(y), y)))
    found, steps = np.zeros(A.shape[1]), 0

    def excess(log_lam: float) -> float:
        nonlocal found, steps
        found, more = solve_ridge(A, y, loss, float(np.exp(log_lam)), found)
        steps += more
        return float(np.log(np.linalg.norm(found) / radius))

    if size == 0:
        return found, 0
    most = float(np.log(size / radius))  # lam ||w|| <= ||V||
    least = most - 3
    while excess(least) < 0:
        if least < most - 40:  # the constraint does not bind
            return found, steps
        least -= 5
    root = brentq(excess, least, most + 1e-6, xtol=1e-14, rtol=1e-14)
    w, more = solve_ridge(A, y, loss, float(np.exp(root)), found)
    return w, steps + more


def solve_barrier(
    A: Floats, y: Floats, loss: MeanLoss, lam: float, eps: float
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + (eps/lam) sum(-lam |w| - log(1 - lam |w|))``; return w and steps."""

    def room(w: Floats, dw: Floats) -> float:
        return min(longest_step(1 / lam - w, -dw), longest_step(1 / lam + w, dw))

    def minimised(eps: float, w: Floats) -> tuple[Floats, int]:
        def slopes(w: Floats) -> tuple[Floats, Floats]:
            room = 1 - lam * np.abs(w)
            return eps * lam * w / room, np.diag(eps * lam / room**2)

        return _fitted(A, y, loss, w, Barrier(lam, eps).value, slopes, room)

    largest = float(np.abs(A.T @ loss.multipliers(np.zeros_like(y), y)).max())
    return _followed(minimised, np.zeros(A.shape[1]), max(eps, largest), eps)


def solve_box(
    A: Floats, y: Floats, loss: MeanLoss, radius: float, tol: float = 1e-12
) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` over ``|w_i| <= radius`` by a primal-dual interior point."""
    m = A.shape[1]
    w = np.zeros(m)
    V = A.T @ loss.multipliers(A @ w, y)
    at_zero = loss.value(np.zeros_like(y), y)
    high = np.full(m, max(float(np.abs(V).mean()), 1e-300))
    low, steps = high.copy(), 0
    least, stalled = np.inf, 0
    up, down = np.full(m, radius), np.full(m, radius)  # unknowns of their own: no difference
    for steps in range(1, _STEPS + 1):  # noqa: B007
        f = A @ w
        slope = -(A.T @ loss.multipliers(f, y))
        mu = float(high @ up + low @ down) / (2 * m)
        missed = slope + high - low
        left = 2 * m * mu + radius * float(np.abs(missed).sum())
        # Of a ball that does not bind the least loss may be 0.
        least, stalled = (left, 0) if left < least / 2 else (least, stalled + 1)
        if left <= tol * max(loss.value(f, y), 1e-3 * tol * at_zero) or stalled > 25 or mu == 0:
            break
        weight = loss.curvature(f, y)
        H = (A * weight[:, None]).T @ A + np.diag(high / up + low / down)
        factor = Factor(H).solve

        def towards(aim: float, factor: Callable[[Floats], Floats] = factor) -> tuple[Floats, ...]:
            right = -missed - (aim / up - high) + (aim / down - low)  # noqa: B023
            dw = factor(right)
            d_high = aim / up - high + high / up * dw  # noqa: B023
            d_low = aim / down - low - low / down * dw  # noqa: B023
            return dw, d_high, d_low

        dw, d_high, d_low = towards(0.0)
        a = min(
            1.0,
            longest_step(up, -dw),
            longest_step(down, dw),
            longest_step(high, d_high),
            longest_step(low, d_low),
        )
        after = float((high + a * d_high) @ (up - a * dw) + (low + a * d_low) @ (down + a * dw))
        centring = min(max((after / (2 * m) / mu) ** 3, 1e-4), 0.5)
        dw, d_high, d_low = towards(centring * mu)
        a = min(
            longest_step(up, -dw),
            longest_step(down, dw),
            longest_step(high, d_high),
            longest_step(low, d_low),
        )
        a = min(1.0, 0.99 * a)
        w, high, low = w + a * dw, high + a * d_high, low + a * d_low
        up, down = up - a * dw, down + a * dw
        if a < 1e-10:
            break
    return w, steps


def solve_groups(
    A: Floats, y: Floats, loss: MeanLoss, lam: float, group: NDArray[np.int64], gap: Gap, tol: float
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam sum_h ||w_h||`` by Newton's method on ``sqrt(||w_h||^2 + d^2)``.

    As d falls; `group` (m,) names the group of every coefficient. One unknown a coefficient: for
    more samples than these, and penalties so small that multipliers of the samples are far from 0
    while those of the groups are near it. At every d the loss's multipliers are feasible.
    """
    same = group[:, None] == group

    def minimised(d: float, w: Floats) -> tuple[Floats, int]:
        def sizes(w: Floats) -> Floats:
            return np.asarray(np.sqrt(np.bincount(group, w**2) + d**2))

        def slopes(w: Floats) -> tuple[Floats, Floats]:
            rho = sizes(w)[group]
            curved = np.diag(1 / rho) - np.where(same, np.outer(w, w) / rho**3, 0.0)
            return lam * w / rho, lam * curved

        return _fitted(A, y, loss, w, lambda w: lam * float(sizes(w).sum()), slopes)

    V = A.T @ loss.multipliers(np.zeros_like(y), y)
    curved = float(np.mean(np.sum(A**2, axis=0)) * np.max(loss.curvature(np.zeros_like(y), y)))
    width = float(np.linalg.norm(V)) / max(curved, 1e-300)
    return _followed(minimised, np.zeros(A.shape[1]), width, 1e-16 * width, gap, tol)


def _followed(
    minimised: Callable[[float, Floats], tuple[Floats, int]],
    w: Floats,
    width: float,
    least: float,
    gap: Gap = lambda w: math.inf,
    tol: float = 0.0,
) -> tuple[Floats, int]:
    """Follow minimisers as a width falls, to the first of a gap within `tol`, or the least one."""
    best, steps = (math.inf, w), 0
    while True:
        w, more = minimised(width, w)
        steps += more
        found = gap(w)
        if not found > best[0]:
            best = (found, w)
        if found <= tol or width <= least:
            return best[1], steps
        width = max(least, width * _STAGE)


def _fitted(
    A: Floats,
    y: Floats,
    loss: MeanLoss,
    w: Floats,
    penalty: Callable[[Floats], float],
    slopes: Callable[[Floats], tuple[Floats, Floats]],
    room: Callable[[Floats, Floats], float] = lambda w, dw: math.inf,
) -> tuple[Floats, int]:
    """Minimise the loss and a penalty of these slopes (m,) and curvatures (m, m)."""

    def value(w: Floats) -> float:
        return loss.value(A @ w, y) + penalty(w)

    def derivatives(w: Floats) -> tuple[Floats, Floats]:
        f = A @ w
        first, second = slopes(w)
        curved = (A * loss.curvature(f, y)[:, None]).T @ A + second
        return first - A.T @ loss.multipliers(f, y), curved

    return damped_newton(value, derivatives, w, room=room)
