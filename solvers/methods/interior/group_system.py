"""Newton system of the game on samples and groups, solved through one Cholesky factor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from ...numerics.arrays import (
    Array,
    NotPositiveDefinite,
    array_namespace,
    as_float32,
    cholesky_lower,
    cholesky_solve,
    float_of,
    gram_lower,
    lu_factor,
    lu_solve,
    matmul,
    symmetric_product,
)
from ...numerics.central_path import Lengths, PairSystem
from ...numerics.threads import choose_threads
from .group_kernels import GroupKernels

# Gondzio's correctors pull products of pairs into a band around their target; a second one still
# pays, a third did not shorten runs on MNIST digits.
CORRECTORS = 2
BAND = (0.1, 10.0)


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
class Iterate(Direction):
    """Point of the primal-dual method; `z`, `w`, `lam` and `d` are positive.

    `lam` (n,) and `d` (G,) sum to one. `products` (n, G) holds `K_g lam`, so that the margins
    of the network with kernel weights `d` are `products @ d`.
    """

    products: Array


@dataclass(frozen=True, eq=False)
class Targets:
    """Right-hand sides of the Newton system: the changes that each equation asks for."""

    stationarity: Array  # (n,)   K_d lam - rho - z
    slack: Array  # (G,)   (t - lam^T K_g lam) / 2 - w
    samples: Array  # (n,)   lam * z
    groups: Array  # (G,)   d * w


class GroupSystem(PairSystem[Iterate, Targets, Direction]):
    """Linearised optimality conditions at one iterate.

        K_d dlam + Q dd - drho - dz        = targets.stationarity
        dt / 2 - Q^T dlam - dw             = targets.slack
        z * dlam + lam * dz                = targets.samples
        w * dd + d * dw                    = targets.groups
        sum(dlam) = sum(dd) = 0

    Eliminating dz and dw leaves the positive definite matrix `M = K_d + diag(z / lam)`,
    bordered by the columns Q (n, G), the ones vector and dt.

    Where groups outnumber samples, those whose pivot `w / d` is far above what M makes of their
    column ("light": dead ones, and nearly all far from the optimum) are eliminated as well,

        dd = r (lower + Q^T dlam - dt / 2),   r = d / w,   N = M + Q diag(r) Q^T,

    which adds the column `-Q r / 2` to the border and `-sum(r) / 4` to its corner. The others stay
    in the border, since `r` grows without bound for a live group and would swallow M in N. So
    there are one Cholesky factorisation of N and one LU factorisation of size `heavy` + 2.
    """

    inner: ClassVar[float] = 0.99
    correctors: ClassVar[int] = CORRECTORS
    pairs: ClassVar[tuple[tuple[str, str], ...]] = (("lam", "z"), ("d", "w"))

    def __init__(self, kernels: GroupKernels, point: Iterate) -> None:
        choose_threads(kernels.flops)
        kernel = kernels.weighted(point.d)  # K_d, whose diagonal is changed for a while
        xp = array_namespace(kernel)
        self.kernels, self.point = kernels, point
        self._xp, self._kernel = xp, kernel
        self._single = kernel.dtype == xp.float32
        index = xp.arange(kernel.shape[0], device=kernel.device)
        own = xp.asarray(kernel[index, index], copy=True)
        self._added = point.z / point.lam
        diagonal = own + self._added
        light = _light(point, diagonal)
        self._heavy, self._light = xp.nonzero(~light)[0], xp.nonzero(light)[0]
        self._ratios = point.d[self._light] / point.w[self._light]
        self._columns = point.products[:, self._light]
        kernel[index, index] = as_float32(diagonal) if self._single else diagonal
        if self._light.shape[0] > 0:
            kernel = kernel + gram_lower(self._columns * xp.sqrt(self._ratios))
        choose_threads()
        self._factor = factorise(kernel, float_of(xp.max(own)))
        self._kernel[index, index] = own
        self._border = self._border_columns()
        self._images = cholesky_solve(self._factor, self._border)
        self._bordered = lu_factor(self._corner())

    def _border_columns(self) -> Array:
        """Columns (n, heavy + 2) of the changes of d, of rho and of t."""
        xp, products = self._xp, self.point.products
        ones = xp.ones_like(products[:, :1])
        of_t = -0.5 * matmul(self._columns, self._ratios)
        heavy = products[:, self._heavy] if self._light.shape[0] > 0 else products
        return xp.concat([heavy, -ones, of_t[:, None]], axis=1)

    def _corner(self) -> Array:
        """Dense system for the border's unknowns, N being eliminated."""
        xp, point = self._xp, self.point
        corner = matmul(self._border.T, self._images)
        n_heavy = int(self._heavy.shape[0])
        diagonal = xp.arange(n_heavy, device=corner.device)
        if n_heavy > 0:
            # Groups with the same kernel make this block singular as w vanishes: which of them
            # takes the change of d is then arbitrary, and a ridge of the size of rounding decides.
            ridge = RIDGE * float_of(xp.max(corner[diagonal, diagonal]))
            corner[diagonal, diagonal] += point.w[self._heavy] / point.d[self._heavy] + ridge
        corner[:n_heavy, n_heavy + 1] += 0.5
        corner[n_heavy + 1, :n_heavy] += 0.5
        corner[n_heavy + 1, n_heavy + 1] -= 0.25 * float_of(xp.sum(self._ratios))
        return corner

    def predicting(self) -> Targets:
        point = self.point
        return Targets(
            stationarity=point.rho + point.z - matmul(point.products, point.d),
            slack=point.w - (point.t - matmul(point.lam, point.products)) / 2,
            samples=-point.lam * point.z,
            groups=-point.d * point.w,
        )

    def correcting(self, affine: Direction, mu: float) -> Targets:
        # The equations are quadratic: these are their exact second-order terms along `affine`.
        bent, linear = self.kernels.rough_products(affine.lam), self.predicting()
        return Targets(
            stationarity=linear.stationarity - matmul(bent, affine.d),
            slack=linear.slack + matmul(affine.lam, bent) / 2,
            samples=linear.samples + mu - affine.lam * affine.z,
            groups=linear.groups + mu - affine.d * affine.w,
        )

    def centring(self, target: Targets, step: Direction, lengths: Lengths, mu: float) -> Targets:
        samples, groups = (_pull(each, mu) for each in self.products(step, lengths[0]))
        return replace(target, samples=target.samples + samples, groups=target.groups + groups)

    def moved(self, step: Direction, lengths: Lengths) -> Iterate:
        point = super().moved(step, lengths)
        return replace(point, products=self.kernels.products(point.lam))

    def solve(self, target: Targets) -> Direction:
        """Solve for one set of right-hand sides, refined until rounding is all that is left.

        Cancellation between the factor's solutions can cost many digits where samples are nearly
        parallel, as with a large constant column; a residual tells, and mends it.
        """
        xp, point = self._xp, self.point
        n_groups = int(point.d.shape[0])
        upper = target.stationarity + target.samples / point.lam
        lower = xp.concat([target.slack + target.groups / point.d, xp.zeros_like(upper[:1])])
        lower = xp.concat([lower, xp.zeros_like(upper[:1])])
        lam, rest = self._eliminate(upper, lower)
        residual = self._residual(upper, lower, lam, rest)
        enough = (ACCURACY_SINGLE if self._single else ACCURACY) * _size((upper, lower))
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
            z=(target.samples - point.z * lam) / point.lam,
            w=(target.groups - point.w * d) / point.d,
            rho=float_of(rest[n_groups]),
            t=float_of(rest[n_groups + 1]),
        )

    def _eliminate(self, upper: Array, lower: Array) -> tuple[Array, Array]:
        """Solve for dlam and u = (dd, drho, dt), the matrix of groups, rho and t being

        M dlam + [Q, -1, 0] u = upper,   -[Q, -1, 0]^T dlam + E u = lower.
        """
        xp = self._xp
        light = lower[self._light]
        base = cholesky_solve(self._factor, upper - matmul(self._columns, self._ratios * light))
        right = xp.concat([lower[self._heavy], lower[-2:]])
        right[-1] -= 0.5 * (self._ratios @ light)
        u = lu_solve(self._bordered, right + matmul(self._border.T, base))
        lam = base - matmul(self._images, u)
        rest = xp.zeros_like(lower)
        rest[self._heavy], rest[-2:] = u[:-2], u[-2:]
        rest[self._light] = self._ratios * (light + matmul(self._columns.T, lam) - 0.5 * u[-1])
        return lam, rest

    def _residual(self, upper: Array, lower: Array, lam: Array, rest: Array) -> tuple[Array, Array]:
        xp, point = self._xp, self.point
        n_groups = int(point.d.shape[0])
        d, rho, t = rest[:n_groups], rest[n_groups], rest[n_groups + 1]
        product = symmetric_product(self._kernel, lam) + self._added * lam
        product = product + matmul(point.products, d) - rho
        of_groups = point.w / point.d * d + 0.5 * t - matmul(point.products.T, lam)
        below = xp.concat([of_groups, xp.sum(lam)[None], 0.5 * xp.sum(d)[None]])
        return upper - product, lower - below


def _pull(products: Array, centre: float) -> Array:
    """Changes that move the products of pairs into the band around `centre`, bounded from below."""
    xp = array_namespace(products)
    low, high = BAND[0] * centre, BAND[1] * centre
    return xp.clip(xp.clip(products, min=low, max=high) - products, min=-high)


# A light group adds at most this share of M's diagonal to N, so that N is hardly worse than M.
LIGHT = 1.0


def _light(point: Iterate, diagonal: Array) -> Array:
    """Mask (G,) of the groups to eliminate on the samples' side, none as long as they are few."""
    xp = array_namespace(diagonal)
    n_samples, n_groups = point.products.shape
    if n_groups <= n_samples:
        return xp.zeros_like(point.d, dtype=xp.bool)
    shares = xp.max(point.products**2 / diagonal[:, None], axis=0) * point.d / point.w
    return shares <= LIGHT


def _size(residual: tuple[Array, Array]) -> float:
    """Norm of both parts of a residual together."""
    return math.hypot(*(float_of(part @ part) ** 0.5 for part in residual))


# A diagonal lifted by a share s of the kernel's leaves directions with eigenvalues above s well
# solved after a few refinements; below the first lift the matrix is not known to rounding.
REFINEMENTS = 3
ACCURACY = 1e-12
# The same for a matrix in single precision, itself known to 1e-7: 1e-4 and 1e-6 give the same
# iterations on digits, as what a step leaves of the equations is asked of the next one.
ACCURACY_SINGLE = 1e-5
RIDGE = 1e-15
LIFTS = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
LIFTS_SINGLE = (1e-7, 1e-6, 1e-5)


def factorise(matrix: Array, size: float) -> Array:
    """Cholesky factor of `matrix`, its diagonal lifted where rounding made it indefinite.

    Parameters
    ----------
    matrix : (n, n) array
        Symmetric, given by its lower triangle; left as it is.
    size : float
        Largest entry of the kernel's diagonal: lifts are shares of it.

    Raises
    ------
    NotPositiveDefinite
        If the largest lift is not enough.
    """
    try:
        return cholesky_lower(matrix)
    except NotPositiveDefinite:
        lifted = array_namespace(matrix).asarray(matrix, copy=True)
    index = array_namespace(matrix).arange(matrix.shape[0], device=matrix.device)
    lifts = LIFTS_SINGLE if matrix.dtype == array_namespace(matrix).float32 else LIFTS
    for lift in lifts:
        lifted[index, index] = matrix[index, index] + lift * size
        try:
            return cholesky_lower(lifted)
        except NotPositiveDefinite:
            continue
    raise NotPositiveDefinite(
        f"the Newton matrix of {matrix.shape[0]} samples stays indefinite when its diagonal is "
        f"lifted by {lifts[-1]:.0e} of the kernel's"
    )
