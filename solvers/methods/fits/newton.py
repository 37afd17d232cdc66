"""Newton's method in the coefficients: ridge, groups, balls in l2, and the barrier of AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ...norms.balls import Blocks
from ...norms.matrix_barriers import NuclearBall, SmoothNuclear, SpectralCone
from ...norms.norm import Norm
from ...norms.regularisers import Ball, Barrier, Cones, Penalty, Ridge, Smooth, SmoothGroups
from ...programs.images import Floats
from ...programs.mean_losses import FlatLoss
from ..damped_newton import damped_newton

_STAGE = 0.1
_WALL = 1e-15  # part of log F that a wall holds back at the end
Gap = Callable[[Floats], float]


def solve_ridge(F: FlatLoss, lam: float, start: Floats | None = None) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam ||w||^2 / 2``; return w and the number of steps.

    In the row space of A, whichever of samples and coefficients are fewer.
    """
    n, m = F.A.shape
    if m > n:  # A = L Q' with L (n, n)
        Q, R = np.linalg.qr(F.A.T)
        w, steps = solve_ridge(replace(F, A=R.T), lam, None if start is None else Q.T @ start)
        return np.asarray(Q @ w), steps
    return _minimised(F, Ridge(lam), np.zeros(m) if start is None else start)


def solve_l2_ball(F: FlatLoss, radius: float) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` over ``||w|| <= radius``: a ridge whose weight makes it so long."""
    found, steps = np.zeros(F.A.shape[1]), 0
    size = float(np.linalg.norm(F.gradient(found)))

    def excess(log_lam: float) -> float:
        nonlocal found, steps
        found, more = solve_ridge(F, float(np.exp(log_lam)), found)
        steps += more
        return float(np.log(np.linalg.norm(found) / radius))

    most = float(np.log(size / radius))  # lam ||w|| <= ||V||
    least = most - 3
    while excess(least) < 0:
        if least < most - 40:  # the constraint does not bind
            return found, steps
        least -= 5
    excess(brentq(excess, least, most + 1e-6, xtol=1e-14, rtol=1e-14))
    return found, steps


def solve_barrier(F: FlatLoss, barrier: Barrier) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` and the barrier; return w and steps."""
    w = np.zeros(F.A.shape[1])
    largest = max(barrier.eps, float(np.abs(F.gradient(w)).max()))
    return _followed(F, lambda eps: replace(barrier, eps=eps), w, largest, barrier.eps)


def solve_walls(F: FlatLoss, radius: float, gap: Gap, tol: float) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` over ``|w_i| <= radius``, as the barrier of the walls falls."""
    w, least = np.zeros(F.A.shape[1]), _WALL / radius
    return _followed(
        F, lambda eps: Barrier(1 / radius, eps), w, 1 / radius, least, gap, tol, most=500
    )


def solve_groups(
    F: FlatLoss, lam: float, group: NDArray[np.int64], gap: Gap, tol: float
) -> tuple[Floats, int]:
    """Minimise ``F(A w) + lam sum_h ||w_h||`` by Newton's method on ``sqrt(||w_h||^2 + d^2)``.

    As d falls; `group` (m,) names the group of every coefficient. One unknown a coefficient: for
    more samples than these, and penalties so small that multipliers of the samples are far from 0
    while those of the groups are near it. At every d the loss's multipliers are feasible.
    """
    w = np.zeros(F.A.shape[1])
    curved = float(np.mean(np.sum(F.A**2, axis=0)) * np.max(F.loss.curvature(F.A @ w, F.y)))
    width = float(np.linalg.norm(F.gradient(w))) / max(curved, 1e-300)
    groups = SmoothGroups(lam, group, width)
    return _followed(F, lambda d: replace(groups, width=d), w, width, 1e-16 * width, gap, tol)


def blocks_of(norm: Norm, shape: tuple[int, ...]) -> NDArray[np.int64] | None:
    """Return the block of every flat coefficient of a norm in l2 inside; None of other norms."""
    every = np.arange(int(np.prod(shape)))
    if norm.inside != "l2" or norm.over not in ("sum", "max"):
        return None
    if norm.blocks in ("rows", "columns") and len(shape) != 2:
        return None
    each = {
        "whole": np.zeros_like(every), "entries": every, "rows": every // shape[-1],
        "columns": every % shape[-1], "units": every // (len(every) // shape[0]),
    }  # fmt: skip
    return each[norm.blocks]


def solve_cones(
    F: FlatLoss,
    regulariser: Penalty | Ball,
    block: NDArray[np.int64],
    fall: float,
    gap: Gap,
    tol: float,
) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` with a penalty or a ball of a norm of blocks, as a barrier falls.

    Steps are those of Newton's method in w and the sizes of blocks, whatever the sizes of inputs
    are to each other; `block` is that of every coefficient, and F falls at most by `fall`.
    """
    b, m = int(block.max()) + 1, len(block)
    size = np.zeros(b, dtype=np.int64) if regulariser.norm.over == "max" else np.arange(b)
    n_sizes = int(size.max()) + 1
    width = fall / (2 * b)
    if isinstance(regulariser, Ball):
        cones = Cones(0.0, regulariser.radius, block, size, width)
        t = np.full(n_sizes, regulariser.radius / (2 * n_sizes))
    else:
        cones = Cones(regulariser.lam, math.inf, block, size, width)
        t = np.full(n_sizes, 2 * width * b / n_sizes / regulariser.lam)
    wider = replace(F, A=np.hstack([F.A, np.zeros((len(F.A), n_sizes))]))
    found, steps = _followed(
        wider, lambda width: replace(cones, width=width), np.r_[np.zeros(m), t], width,
        1e-15 * min(width, 1.0), lambda u: gap(u[:m]), tol,
    )  # fmt: skip
    return found[:m], steps


def solve_matrices(
    F: FlatLoss, regulariser: Penalty | Ball, blocks: Blocks, fall: float, gap: Gap, tol: float
) -> tuple[Floats, int]:
    """Minimise ``F(A w)`` with a penalty or a ball of matrices' norms, as a barrier falls.

    Of the largest spectral norm of blocks, or of the sum of their nuclear ones; F falls at most by
    `fall`.
    """
    m = blocks.size
    width, start = fall / (2 * blocks.order), np.zeros(m)
    smooth: Smooth
    if isinstance(regulariser, Ball):
        lam, radius, t = 0.0, regulariser.radius, regulariser.radius / 2
        smooth = NuclearBall(blocks, radius, width)
    else:
        lam, radius, t = regulariser.lam, math.inf, width * blocks.order / regulariser.lam
        smooth = SmoothNuclear(blocks, lam, width)
    if regulariser.norm.inside == "spectral":
        smooth, start = SpectralCone(blocks, lam, radius, width), np.append(start, t)
        F = replace(F, A=np.hstack([F.A, np.zeros((len(F.A), 1))]))
    found, steps = _followed(
        F, lambda width: replace(smooth, width=width), start, width, 1e-15 * min(width, 1.0),
        lambda u: gap(u[:m]), tol,
    )  # fmt: skip
    return found[:m], steps


def _followed(
    F: FlatLoss,
    regulariser: Callable[[float], Smooth],
    w: Floats,
    width: float,
    least: float,
    gap: Gap = lambda w: math.inf,
    tol: float = 0.0,
    most: float = math.inf,
) -> tuple[Floats, int]:
    """Follow minimisers as a width falls, to the first of a gap within `tol`, or the least one.

    From `most` steps on there is no further width.
    """
    best, steps = (math.inf, w), 0
    while True:
        w, more = _minimised(F, regulariser(width), w)
        steps += more
        found = gap(w)
        if not found > best[0]:
            best = (found, w)
        if found <= tol or width <= least or steps >= most:
            return best[1], steps
        width = max(least, width * _STAGE)


def _minimised(F: FlatLoss, R: Smooth, w: Floats) -> tuple[Floats, int]:
    return damped_newton(
        lambda w: F.value(w) + R.value(w),
        lambda w: (F.gradient(w) + R.gradient(w), F.hessian(w) + R.hessian(w)),
        w,
        room=R.room,
    )
