"""Newton's method in the coefficients: ridge, boxes, balls in l2, and the barrier of AdamW."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from .._solve import longest_step
from ..data.arrays import Floats
from .losses import MeanLoss
from .regularisers import Barrier

__all__ = ["solve_barrier", "solve_groups", "solve_box", "solve_l2_ball", "solve_ridge"]

_STEPS, _HALVINGS = 200, 50
_STAGE, _STAGES = 0.1, 16


def solve_ridge(
    A: Floats, y: Floats, loss: MeanLoss, lam: float, start: Floats | None = None
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam ||w||^2 / 2``; return w and the number of steps.

    In the row space of A, whichever of samples and coefficients are fewer.
    """
    wide = A.shape[1] > len(A)
    if wide:  # A = L Q' with L (n, n)
        Q, R = np.linalg.qr(A.T)
        w, steps = solve_ridge(R.T, y, loss, lam, None if start is None else Q.T @ start)
        return np.asarray(Q @ w), steps

    def value(w: Floats) -> float:
        return loss.value(A @ w, y) + lam * float(w @ w) / 2

    def slopes(w: Floats) -> tuple[Floats, Floats]:
        return lam * w, np.full(len(w), lam)

    w = np.zeros(A.shape[1]) if start is None else start
    return _newton(A, y, loss, w, value, slopes, lambda w, dw: 2.0)


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
    largest = float(np.abs(A.T @ loss.multipliers(np.zeros_like(y), y)).max())
    w, total, now = np.zeros(A.shape[1]), 0, max(eps, largest)
    while True:
        barrier = Barrier(lam, now)

        def value(w: Floats, barrier: Barrier = barrier) -> float:
            return loss.value(A @ w, y) + barrier.value(w)

        def slopes(w: Floats, eps: float = now) -> tuple[Floats, Floats]:
            room = 1 - lam * np.abs(w)
            return eps * lam * w / room, eps * lam / room**2

        w, steps = _newton(
            A, y, loss, w, value, slopes, lambda w, dw: _to_the_walls(w, dw, 1 / lam)
        )
        total += steps
        if now <= eps:
            return w, total
        now = max(eps, now * _STAGE)


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
        factor = _factor(H)

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
    A: Floats,
    y: Floats,
    loss: MeanLoss,
    lam: float,
    group: NDArray[np.int64],
    gap: Callable[[Floats], float],
    *,
    tol: float,
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam sum_h ||w_h||`` by Newton's method on ``sqrt(||w_h||^2 + d^2)``.

    As d falls; `group` (m,) names the group of every coefficient. One unknown a coefficient: for
    more samples than these, and penalties so small that multipliers of the samples are far from 0
    while those of the groups are near it. At every d the loss's multipliers are feasible.
    """
    n_groups, m = int(group.max()) + 1, A.shape[1]
    V = A.T @ loss.multipliers(np.zeros_like(y), y)
    curved = float(np.mean(np.sum(A**2, axis=0)) * np.max(loss.curvature(np.zeros_like(y), y)))
    w, steps = np.zeros(m), 0
    width = float(np.linalg.norm(V)) / max(curved, 1e-300)
    same = group[:, None] == group[None, :]
    best = (gap(w), w)
    for _ in range(_STAGES):

        def size(w: Floats, d: float = width) -> Floats:
            return np.asarray(np.sqrt(np.bincount(group, w**2, minlength=n_groups) + d**2))

        def value(w: Floats, size: Callable[[Floats], Floats] = size) -> float:
            return loss.value(A @ w, y) + lam * float(size(w).sum())

        before = value(w)
        for _ in range(_STEPS):
            steps += 1
            f, rho = A @ w, size(w)[group]
            slope = lam * w / rho - A.T @ loss.multipliers(f, y)
            H = (A * loss.curvature(f, y)[:, None]).T @ A
            H -= np.where(same, lam * np.outer(w, w) / rho**3, 0.0)
            H[np.diag_indices(m)] += lam / rho
            dw = _factor(H)(-slope)
            decrement = -float(slope @ dw)
            t, after = 1.0, before
            for _ in range(_HALVINGS):
                after = value(w + t * dw)
                if after <= before - 1e-4 * t * decrement:
                    break
                t /= 2
            else:  # values no longer tell steps apart
                if decrement <= 1e-10 * abs(before) and gap(w + dw) < gap(w):
                    w = w + dw
                    continue
                break
            w, before = w + t * dw, after
            if decrement <= 1e-15 * abs(before):
                break
        found = gap(w)
        if found < best[0]:
            best = (found, w)
        if found <= tol:
            break
        width *= _STAGE
    return best[1], steps


def _newton(
    A: Floats,
    y: Floats,
    loss: MeanLoss,
    w: Floats,
    value: Callable[[Floats], float],
    slopes: Callable[[Floats], tuple[Floats, Floats]],
    room: Callable[[Floats, Floats], float],
) -> tuple[Floats, int]:
    """Minimise the loss and a separable function of these slopes and curvatures."""
    steps, before = 0, value(w)
    for steps in range(1, _STEPS + 1):
        f = A @ w
        first, second = slopes(w)
        slope = first - A.T @ loss.multipliers(f, y)
        H = (A * loss.curvature(f, y)[:, None]).T @ A + np.diag(second)
        dw = _factor(H)(-slope)
        decrement = -float(slope @ dw)
        if decrement <= 1e-16 * abs(before):  # values no longer tell steps apart
            return (w + dw if room(w, dw) > 1 else w), steps
        size, after = min(1.0, 0.95 * room(w, dw)), before
        for _ in range(_HALVINGS):
            after = value(w + size * dw)
            if after <= before - 1e-4 * size * decrement:
                break
            size /= 2
        else:
            return (w + dw if decrement <= 1e-10 * abs(before) < room(w, dw) else w), steps
        w, before = w + size * dw, after
    return w, steps


def _factor(H: Floats) -> Callable[[Floats], Floats]:
    """Return the solution of a positive definite system, equilibrated, as a function."""
    d = 1 / np.sqrt(H.diagonal())
    scaled = H * d[:, None] * d
    more = 0.0
    while True:
        try:
            factor = cho_factor(scaled + more * np.eye(len(H)), lower=True)
            break
        except np.linalg.LinAlgError:
            more = max(10 * more, 1e-15)
            if more > 1:
                raise

    def solved(right: Floats) -> Floats:
        x = cho_solve(factor, right * d)
        return np.asarray((x + cho_solve(factor, right * d - scaled @ x)) * d)

    return solved


def _to_the_walls(w: Floats, dw: Floats, radius: float) -> float:
    return min(longest_step(radius - w, -dw), longest_step(radius + w, dw))
