"""Spectral and nuclear norms as smooth functions, for Newton's method in the coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..programs.images import Floats
from .balls import Blocks, Cone, Linearised, bordered
from .regularisers import Smooth

# Share of a size that singular values stay below: what two decompositions may differ by.
_CLEAR = 1e-14


@dataclass(frozen=True, eq=False)
class SpectralCone(Smooth):
    """Size t of the largest spectral norm of blocks C, over coefficients followed by t.

    ``cost t - width (sum_b log det [[t I, C_b], [C_b', t I]] + log(radius - t))``

    Attributes
    ----------
    blocks : Blocks
    cost : float
        Penalty of the size.
    radius : float
        What it stays below; infinite without such.
    width : float
    """

    blocks: Blocks
    cost: float
    radius: float
    width: float

    def value(self, B: Floats) -> float:
        """Return it; infinite outside of the cone."""
        t, left = float(B[-1]), self.radius - float(B[-1])
        sizes = np.linalg.svd(self.blocks.stack(B[:-1]), compute_uv=False)
        if not (left > 0 and t * (1 - _CLEAR) > sizes.max()):
            return math.inf
        own = float(np.sum(np.log((t - sizes) * (t + sizes))))
        own += (self.blocks.order - 2 * sizes.size) * math.log(t)
        return self.cost * t - self.width * (own + (math.log(left) if left < math.inf else 0.0))

    def _line(self, w: Floats) -> Linearised:
        """Return the cone with the inverse of its matrices in the place of the multiplier."""
        C = self.blocks.stack(w[:-1])
        line = Linearised.at(Cone(C, float(w[-1]), bordered(C, 0.0)))
        return replace(line, cone=replace(line.cone, Z=line.P))

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives, of coefficients and t."""
        cone = self._line(w).cone
        of_t = 1 / (self.radius - cone.t) - float(np.trace(cone.Z, axis1=1, axis2=2).sum())
        own = -2 * self.width * self.blocks.flat(cone.corner())
        return np.concatenate([own, [self.cost + self.width * of_t]])

    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives, of coefficients and t."""
        line, found = self._line(w), np.zeros((len(w), len(w)))
        self.blocks.add(line.operator(), found[:-1, :-1])
        h, c = line.radial()
        found[:-1, -1] = found[-1, :-1] = self.blocks.flat(h)
        found[-1, -1] = c + 1 / (self.radius - float(w[-1])) ** 2
        return self.width * found


@dataclass(frozen=True, eq=False)
class SmoothNuclear(Smooth):
    """``lam`` times the nuclear norms of blocks, smooth: ``sum (r - d log(d + r))``.

    Over singular values s, with ``r = sqrt(d^2 + lam^2 s^2)`` and d the width: but for a constant
    the least of ``lam a - d log(a^2 - s^2)`` over a > s.
    """

    blocks: Blocks
    lam: float
    width: float

    def value(self, B: Floats) -> float:
        """Return it."""
        sizes = np.linalg.svd(self.blocks.stack(B), compute_uv=False)
        r = np.hypot(self.width, self.lam * sizes)
        return float(np.sum(r - self.width * np.log(self.width + r)))

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives (m,)."""
        U, s, W = np.linalg.svd(self.blocks.stack(w), full_matrices=False)
        slopes = self.lam**2 * s / (self.width + np.hypot(self.width, self.lam * s))
        return self.blocks.flat((U * slopes[:, None, :]) @ W)

    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives (m, m).

        They are divided differences of the slopes, between eigenvalues u and v of the matrices
        ``[[0, C], [C', 0]]``, and computed without a difference of what is nearly equal.
        """
        b, p, q = self.blocks.place.shape
        values, basis = np.linalg.eigh(bordered(self.blocks.stack(w), 0.0))
        d, u = self.width, self.lam * values
        r, products = np.hypot(d, u), u[:, :, None] * u[:, None, :]
        sums = r[:, :, None] + r[:, None, :]
        of_r, squares = r[:, :, None] * r[:, None, :], u[:, :, None] ** 2 + u[:, None, :] ** 2
        apart = np.where(
            products < 0, of_r - products, d**2 * (d**2 + squares) / (of_r + np.abs(products))
        )
        outer = (d + r)[:, :, None] * (d + r)[:, None, :]
        divided = self.lam**2 * (d + (d**2 + apart) / sums) / outer
        units = bordered(np.eye(p * q).reshape(p * q, p, q), 0.0)[:, None]
        turned = np.swapaxes(basis, 1, 2) @ units @ basis
        back = basis @ (divided * turned) @ np.swapaxes(basis, 1, 2)
        found = np.zeros((len(w), len(w)))
        blocks = np.moveaxis(back[:, :, :p, p:].reshape(p * q, b, p * q), 0, 2)
        self.blocks.add(np.asarray(blocks), found)
        return found


@dataclass(frozen=True, eq=False)
class NuclearBall(Smooth):
    """Barrier of ``sum of nuclear norms < radius``.

    ``max over lam of S(lam) + (2 k + 1) d log(lam) - lam radius``, with S the value of
    `SmoothNuclear`, k the number of singular values s and d the width: but for a constant the least
    of ``-d (sum log(a^2 - s^2) + log(radius - sum a))`` over a > s.
    """

    blocks: Blocks
    radius: float
    width: float

    def _weight(self, sizes: Floats) -> float:
        """Return lam; infinite outside of the ball."""
        x: float = (self.radius - float(sizes.sum())) / (sizes.size + 1)
        if not x > self.radius * _CLEAR:
            return math.inf
        while True:  # Newton's method for d / lam on a convex function, from above
            r = np.hypot(x, sizes)
            excess = float(r.sum()) + (sizes.size + 1) * x - self.radius
            following = x - excess / (float((x / r).sum()) + sizes.size + 1)
            if not 0 < following < x:
                return float(self.width / x)
            x = following

    def _smooth(self, w: Floats) -> SmoothNuclear:
        sizes = np.asarray(np.linalg.svd(self.blocks.stack(w), compute_uv=False), dtype=float)
        return SmoothNuclear(self.blocks, self._weight(sizes), self.width)

    def value(self, B: Floats) -> float:
        """Return it; infinite outside of the ball."""
        smooth, k = self._smooth(B), self.blocks.place.shape[0] * min(self.blocks.place.shape[1:])
        if smooth.lam == math.inf:
            return math.inf
        own: float = (2 * k + 1) * self.width * math.log(smooth.lam)
        return smooth.value(B) + own - smooth.lam * self.radius

    def gradient(self, w: Floats) -> Floats:
        """Return the first derivatives (m,)."""
        return self._smooth(w).gradient(w)

    def hessian(self, w: Floats) -> Floats:
        """Return the second derivatives (m, m)."""
        smooth, d = self._smooth(w), self.width
        U, s, W = np.linalg.svd(self.blocks.stack(w), full_matrices=False)
        u = smooth.lam * s
        r = np.hypot(d, u)
        mixed = self.blocks.flat((U * (u / r)[:, None, :]) @ W)
        bent = (float(np.sum(d * (d + r) / r)) + d) / smooth.lam**2
        return smooth.hessian(w) + np.outer(mixed, mixed) / bent
