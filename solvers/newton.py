"""The Newton system of the interior point and its solution through one Cholesky factor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    cholesky_lower,
    cholesky_solve,
    float_of,
    matmul,
    solve_square,
    symmetric_product,
)

__all__ = ["Direction", "Iterate", "NewtonSystem", "Targets", "factorise"]


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the primal-dual method; `z`, `w`, `lam` and `d` are positive.

    `lam` (n,) and `d` (G,) sum to one. `products` (n, G) holds `K_g lam`, so that the margins
    of the network with kernel weights `d` are `products @ d`.
    """

    lam: Array
    d: Array
    z: Array
    w: Array
    rho: float
    t: float
    products: Array


@dataclass(frozen=True, eq=False)
class Direction:
    """Changes of the fields of an `Iterate` of the same names."""

    lam: Array
    d: Array
    z: Array
    w: Array
    rho: float
    t: float


@dataclass(frozen=True, eq=False)
class Targets:
    """Right-hand sides of the Newton system: what each equation must change by."""

    stationarity: Array  # (n,)   K_d lam - rho - z
    slack: Array  # (G,)   (t - lam^T K_g lam) / 2 - w
    samples: Array  # (n,)   lam * z
    groups: Array  # (G,)   d * w


class NewtonSystem:
    """The linearised optimality conditions at one iterate.

        K_d dlam + Q dd - drho - dz        = targets.stationarity
        dt / 2 - Q^T dlam - dw             = targets.slack
        z * dlam + lam * dz                = targets.samples
        w * dd + d * dw                    = targets.groups
        sum(dlam) = sum(dd) = 0

    Eliminating dz and dw leaves the positive definite matrix `M = K_d + diag(z / lam)`,
    bordered by the columns Q (n, G), the ones vector and dt: one Cholesky factorisation of M and
    a dense system of size G + 2.
    """

    def __init__(self, point: Iterate, kernel: Array) -> None:
        """`kernel` is the lower triangle of K_d; it is overwritten."""
        xp = array_namespace(kernel)
        self._xp, self._point = xp, point
        n_samples, n_groups = point.products.shape
        index = xp.arange(n_samples, device=kernel.device)
        size = float_of(xp.max(kernel[index, index]))
        kernel[index, index] += point.z / point.lam
        self._matrix = kernel
        self._factor = factorise(kernel, size)
        ones = xp.ones((n_samples, 1), dtype=kernel.dtype, device=kernel.device)
        self._border = xp.concat([point.products, -ones], axis=1)
        self._images = cholesky_solve(self._factor, self._border)
        bordered = xp.zeros((n_groups + 2,) * 2, dtype=kernel.dtype, device=kernel.device)
        bordered[: n_groups + 1, : n_groups + 1] = matmul(self._border.T, self._images)
        diagonal = xp.arange(n_groups, device=kernel.device)
        # Groups with the same kernel make this block singular as w vanishes: which of them takes
        # the change of d is then arbitrary, and a ridge of the size of rounding decides it.
        ridge = RIDGE * float_of(xp.max(bordered[diagonal, diagonal]))
        bordered[diagonal, diagonal] += point.w / point.d + ridge
        bordered[:n_groups, n_groups + 1] = 0.5
        bordered[n_groups + 1, :n_groups] = 0.5
        self._bordered = bordered

    def direction(self, targets: Targets) -> Direction:
        """Solve for one set of right-hand sides, refined until rounding is all that is left.

        Cancellation between the factor's solutions can cost many digits where samples are nearly
        parallel, as with a large constant column; a residual tells, and mends it.
        """
        xp, point = self._xp, self._point
        n_groups = int(point.d.shape[0])
        upper = targets.stationarity + targets.samples / point.lam
        lower = xp.concat([targets.slack + targets.groups / point.d, xp.zeros_like(upper[:1])])
        lower = xp.concat([lower, xp.zeros_like(upper[:1])])
        lam, rest = self._eliminate(upper, lower)
        residual = self._residual(upper, lower, lam, rest)
        enough = ACCURACY * _size((upper, lower))
        for _ in range(REFINEMENTS):
            if _size(residual) <= enough:
                break
            more_lam, more_rest = self._eliminate(*residual)
            finer = self._residual(upper, lower, lam + more_lam, rest + more_rest)
            if not _size(finer) < 0.5 * _size(residual):
                break
            lam, rest, residual = lam + more_lam, rest + more_rest, finer
        d = rest[:n_groups]
        return Direction(
            lam=lam,
            d=d,
            z=(targets.samples - point.z * lam) / point.lam,
            w=(targets.groups - point.w * d) / point.d,
            rho=float_of(rest[n_groups]),
            t=float_of(rest[n_groups + 1]),
        )

    def _eliminate(self, upper: Array, lower: Array) -> tuple[Array, Array]:
        """Solve M dlam + B u = upper, -B^T dlam + E u = lower for u = (dd, drho, dt)."""
        xp = self._xp
        n_border = int(self._border.shape[1])
        base = cholesky_solve(self._factor, upper)
        right = xp.asarray(lower, copy=True)
        right[:n_border] += matmul(self._border.T, base)
        rest = solve_square(self._bordered, right)
        return base - matmul(self._images, rest[:n_border]), rest

    def _residual(self, upper: Array, lower: Array, lam: Array, rest: Array) -> tuple[Array, Array]:
        xp, point = self._xp, self._point
        n_groups = int(point.d.shape[0])
        d, t = rest[:n_groups], rest[n_groups + 1]
        product = symmetric_product(self._matrix, lam)
        product = product + matmul(self._border, rest[: n_groups + 1])
        below = xp.concat([-matmul(self._border.T, lam), 0.5 * xp.sum(d)[None]])
        below[:n_groups] += point.w / point.d * d + 0.5 * t
        return upper - product, lower - below


def _size(residual: tuple[Array, Array]) -> float:
    """Norm of both parts of a residual together."""
    return math.hypot(*(float_of(part @ part) ** 0.5 for part in residual))


# A diagonal lifted by a share s of the kernel's leaves directions with eigenvalues above s well
# solved after a few refinements; below the first lift the matrix is not known to rounding.
REFINEMENTS = 3
ACCURACY = 1e-12
RIDGE = 1e-15
LIFTS = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)


def factorise(matrix: Array, size: float) -> Array:
    """Cholesky factor of `matrix`, of a lifted one where rounding made it indefinite."""
    try:
        return cholesky_lower(matrix)
    except NotPositiveDefinite:
        lifted = array_namespace(matrix).asarray(matrix, copy=True)
    index = array_namespace(matrix).arange(matrix.shape[0], device=matrix.device)
    for lift in LIFTS:
        lifted[index, index] = matrix[index, index] + lift * size
        try:
            return cholesky_lower(lifted)
        except NotPositiveDefinite:
            continue
    raise NotPositiveDefinite(
        f"the Newton matrix of {matrix.shape[0]} samples stays indefinite when its diagonal is "
        f"lifted by {LIFTS[-1]:.0e} of the kernel's"
    )
