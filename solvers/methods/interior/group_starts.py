"""Starting points of the game on samples and groups."""

from __future__ import annotations

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
from .group_system import Iterate

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
