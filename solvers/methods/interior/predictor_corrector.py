"""Starting points and steps of the interior point."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...numerics.arrays import (
    Array,
    array_namespace,
    cholesky_lower,
    cholesky_solve,
    float_of,
    matmul,
)
from .group_kernels import GroupKernels
from .newton import Direction, Iterate, NewtonSystem, Targets

__all__ = ["Start", "advance", "starting_point", "warm_point"]

# Mehrotra's centring exponent and the share of the way to the boundary that a step may take.
CENTRING = 3
TO_BOUNDARY = 0.99
# Gondzio's correctors aim at a step this much longer and pull products of pairs into a band
# around their target, while a corrector is worth its solve; a second one still pays, a third did
# not shorten runs on MNIST digits.
CORRECTORS = 2
LONGER = 0.3
WORTH = 0.01
BAND = (0.1, 10.0)
# Choices of the start, by iteration counts on MNIST digits: the ridge added to a kernel of mean
# diagonal one, the smallest multiplier relative to the mean one, the room left above the norms.
RIDGE = 1.0
FLOOR = 0.1
ROOM = 0.2
# Choices of a start from the answer of a similar program, by flops on digits behind 100 units: the
# relative gap of its pairs, and the multiplier of samples that are new, relative to the mean one.
CENTRED = 0.1
NEWCOMER = 0.3
TINY = 2.0**-1000


@dataclass(frozen=True, eq=False)
class Start:
    """Multipliers (n,) and kernel weights (G,) to begin with, non-negative, at any scale."""

    lam: Array
    d: Array


def starting_point(kernels: GroupKernels) -> Iterate:
    """Start from a ridge-regularised fit of all margins to one, pushed to the interior."""
    xp = array_namespace(kernels.gram)
    n_groups = kernels.n_groups
    d = xp.ones_like(kernels.weight[0, :]) / n_groups
    matrix = kernels.weighted(d)
    index = xp.arange(matrix.shape[0], device=matrix.device)
    matrix[index, index] += RIDGE
    lam = cholesky_solve(cholesky_lower(matrix), xp.ones_like(kernels.sizes))
    lam = xp.clip(lam, min=FLOOR * float_of(xp.mean(xp.abs(lam))))
    lam = lam / xp.sum(lam)
    products = kernels.products(lam)
    norms = matmul(lam, products)
    # On data that every group maps to zero the norms vanish; the slacks must not.
    t = float_of(xp.max(norms)) * (1 + ROOM) + 2.0**-52
    w = (t - norms) / 2
    rho = float_of(d @ norms)
    centre = float_of(d @ w) / n_groups
    z = xp.clip(matmul(products, d) - rho, min=0.0) + centre / lam
    return Iterate(lam=lam, d=d, z=z, w=w, rho=rho, t=t, products=products)


def warm_point(kernels: GroupKernels, start: Start) -> Iterate:
    """Start from a centred point near `start`, with the pair products of a relative gap of 0.1.

    Samples whose margins stay below the level get a share of a multiplier, and groups below the
    largest norm the kernel weight of their slack.
    """
    xp = array_namespace(start.lam)
    n_samples, n_groups = int(start.lam.shape[0]), kernels.n_groups
    lam, d = start.lam / xp.sum(start.lam), start.d / xp.sum(start.d)
    products = kernels.products(lam)
    norms = matmul(lam, products)
    rho, t = float_of(d @ norms), float_of(xp.max(norms))
    mu = CENTRED * rho / (n_samples + n_groups) + TINY
    slack = xp.clip(matmul(products, d) - rho, min=mu * n_samples / NEWCOMER)
    lam = xp.maximum(lam, mu / slack)
    d = xp.maximum(d, mu / xp.clip((t - norms) / 2, min=mu))
    lam, d = lam / xp.sum(lam), d / xp.sum(d)
    products = kernels.products(lam)
    return Iterate(lam=lam, d=d, z=mu / lam, w=mu / d, rho=rho, t=t, products=products)


def advance(kernels: GroupKernels, point: Iterate, system: NewtonSystem) -> Iterate:
    """Take one step of Mehrotra's method with Gondzio's correctors.

    References
    ----------
    S. Mehrotra, "On the implementation of a primal-dual interior point method", 1992;
    J. Gondzio, "Multiple centrality corrections in a primal-dual method for linear programming",
    1996.
    """
    n_pairs = point.lam.shape[0] + point.d.shape[0]
    mu = float_of(point.lam @ point.z + point.d @ point.w) / n_pairs
    residual = Targets(
        stationarity=point.rho + point.z - matmul(point.products, point.d),
        slack=point.w - (point.t - matmul(point.lam, point.products)) / 2,
        samples=-point.lam * point.z,
        groups=-point.d * point.w,
    )
    affine = system.direction(residual)
    length = _length(point, affine)
    predicted = float_of(
        (point.lam + length * affine.lam) @ (point.z + length * affine.z)
        + (point.d + length * affine.d) @ (point.w + length * affine.w)
    )
    centre = (max(predicted, 0.0) / n_pairs / mu) ** CENTRING * mu
    # The equations are quadratic: these are their exact second-order terms along `affine`.
    bent = kernels.rough_products(affine.lam)
    targets = Targets(
        stationarity=residual.stationarity - matmul(bent, affine.d),
        slack=residual.slack + matmul(affine.lam, bent) / 2,
        samples=residual.samples + centre - affine.lam * affine.z,
        groups=residual.groups + centre - affine.d * affine.w,
    )
    direction = _lengthen(point, system, targets, centre)
    length = min(1.0, TO_BOUNDARY * _length(point, direction, limit=math.inf))
    return _move(kernels, point, direction, length)


def _lengthen(point: Iterate, system: NewtonSystem, targets: Targets, centre: float) -> Direction:
    """Solve for `targets`, and correct them as long as that allows a longer step."""
    direction = system.direction(targets)
    length = _length(point, direction)
    for _ in range(CORRECTORS):
        trial = min(1.0, length + LONGER)
        targets = Targets(
            stationarity=targets.stationarity,
            slack=targets.slack,
            samples=targets.samples
            + _pull((point.lam + trial * direction.lam) * (point.z + trial * direction.z), centre),
            groups=targets.groups
            + _pull((point.d + trial * direction.d) * (point.w + trial * direction.w), centre),
        )
        candidate = system.direction(targets)
        reach = _length(point, candidate)
        if not reach > length:
            break
        worth = reach - length
        direction, length = candidate, reach
        if worth < WORTH:
            break
    return direction


def _pull(products: Array, centre: float) -> Array:
    """Changes that move the products of pairs into the band around `centre`, bounded from below."""
    xp = array_namespace(products)
    low, high = BAND[0] * centre, BAND[1] * centre
    return xp.clip(xp.clip(products, min=low, max=high) - products, min=-high)


def _length(point: Iterate, direction: Direction, limit: float = 1.0) -> float:
    """Longest step up to `limit` that keeps every paired variable non-negative."""
    xp = array_namespace(point.lam)
    for value, change in (
        (point.lam, direction.lam),
        (point.z, direction.z),
        (point.d, direction.d),
        (point.w, direction.w),
    ):
        steepest = float_of(xp.max(-change / value))
        if math.isnan(steepest):  # a zero step, which ends the run
            return 0.0
        if steepest > 0:
            limit = min(limit, 1 / steepest)
    return limit


def _move(kernels: GroupKernels, point: Iterate, direction: Direction, length: float) -> Iterate:
    lam = point.lam + length * direction.lam
    return Iterate(
        lam=lam,
        d=point.d + length * direction.d,
        z=point.z + length * direction.z,
        w=point.w + length * direction.w,
        rho=point.rho + length * direction.rho,
        t=point.t + length * direction.t,
        products=kernels.products(lam),
    )
