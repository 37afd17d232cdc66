"""The Newton system of the interior point and its solution through one Cholesky factor."""

from __future__ import annotations

from dataclasses import dataclass

from .arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    cholesky_lower,
    cholesky_solve,
    float_of,
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
        self._factor, self._lifted = factorise(kernel, size)
        ones = xp.ones((n_samples, 1), dtype=kernel.dtype, device=kernel.device)
        self._border = xp.concat([point.products, -ones], axis=1)
        self._images = self._solve(self._border)
        bordered = xp.zeros((n_groups + 2,) * 2, dtype=kernel.dtype, device=kernel.device)
        bordered[: n_groups + 1, : n_groups + 1] = self._border.T @ self._images
        diagonal = xp.arange(n_groups, device=kernel.device)
        bordered[diagonal, diagonal] += point.w / point.d
        bordered[:n_groups, n_groups + 1] = 0.5
        bordered[n_groups + 1, :n_groups] = 0.5
        self._bordered = bordered

    def direction(self, targets: Targets) -> Direction:
        """Solve for one set of right-hand sides."""
        xp, point = self._xp, self._point
        n_groups = int(point.d.shape[0])
        base = self._solve(targets.stationarity + targets.samples / point.lam)
        right = xp.concat([self._border.T @ base, xp.zeros_like(base[:1])])
        right[:n_groups] += targets.slack + targets.groups / point.d
        multipliers = xp.linalg.solve(self._bordered, right[:, None])[:, 0]
        lam = base - self._images @ multipliers[: n_groups + 1]
        d = multipliers[:n_groups]
        return Direction(
            lam=lam,
            d=d,
            z=(targets.samples - point.z * lam) / point.lam,
            w=(targets.groups - point.w * d) / point.d,
            rho=float_of(multipliers[n_groups]),
            t=float_of(multipliers[n_groups + 1]),
        )

    def _solve(self, right: Array) -> Array:
        """Solve with M; where the factor is that of a lifted M, refine against M itself."""
        solution = cholesky_solve(self._factor, right)
        for _ in range(REFINEMENTS if self._lifted else 0):
            residual = right - symmetric_product(self._matrix, solution)
            solution = solution + cholesky_solve(self._factor, residual)
        return solution


# A diagonal lifted by a share s of the kernel's leaves directions with eigenvalues above s well
# solved after two refinements; below the first lift the matrix is not known to rounding.
REFINEMENTS = 2
LIFTS = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)


def factorise(matrix: Array, size: float) -> tuple[Array, bool]:
    """Cholesky factor of `matrix`, of a lifted one where rounding made it indefinite."""
    try:
        return cholesky_lower(matrix), False
    except NotPositiveDefinite:
        lifted = array_namespace(matrix).asarray(matrix, copy=True)
    index = array_namespace(matrix).arange(matrix.shape[0], device=matrix.device)
    for lift in LIFTS:
        lifted[index, index] = matrix[index, index] + lift * size
        try:
            return cholesky_lower(lifted), True
        except NotPositiveDefinite:
            continue
    raise NotPositiveDefinite(
        f"the Newton matrix of {matrix.shape[0]} samples stays indefinite when its diagonal is "
        f"lifted by {LIFTS[-1]:.0e} of the kernel's"
    )
