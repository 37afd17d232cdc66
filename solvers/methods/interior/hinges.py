"""Interior point for programs of margins that are linear less hinges, on every pair at once.

The hinges are variables t of their own, ``t >= 0`` and ``t >= <u_h, x_n>``, and the norms stand
against the blocks in a second-order cone. A Newton step eliminates t and the groups: what a norm
and its curved pairs leave of them is a matrix of the samples.

References
----------
Y. Nesterov, M. Todd, "Self-scaled barriers and interior-point methods for convex programming",
1997 (the scaling of the cones).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from ...numerics.arrays import cholesky_lower, cholesky_solve, mirror_lower
from ...numerics.central_path import Lengths, System, follow
from ...numerics.factor import Factor
from ...numerics.step_length import longest_step
from ...programs.hinge_program import Floats, HingeProgram

# What products of pairs are to be beside those of margins and of norms.
_OF_PAIR = 0.1
# Curvature of a pair, beside that of its norm, that is left out of Newton's matrix.
_FLAT = 0.02
# Products at the start beside the optimum, least slacks of margins there, how round hinges are
# beside the mean product of units and inputs, and how far multipliers are from their bounds.
_PRODUCTS, _SLACK, _ROUND, _INSIDE = 0.3, 0.1, 0.02, 0.02
# Products at a start near the solution, and how far it is from its bounds.
_NEAR, _OFF = 0.03, 0.05
# Mean product beside the first one from which matrices are formed in double precision.
_DOUBLE = 0.01
# Steps to the boundary below which second-order terms mislead.
_BLOCKED = 0.1


@dataclass(frozen=True, eq=False)
class HingePath:
    """A point of the path, or a step.

    Attributes
    ----------
    u : (H, D), r : (H,)
        Groups, and what is at least their norms.
    v : (H, D)
        Blocks, of norm at most 1.
    s, lam : (n,)
        Slacks of the margins, and their multipliers.
    t, z : (n, H)
        Hinges, and what they have above their arguments; 1 where there is none.
    nu, mu : (n, H)
        Multipliers of t and z, which add up to ``lam_n hinges_nh``; 1 where there is none.
    """

    u: Floats
    r: Floats
    v: Floats
    s: Floats
    lam: Floats
    t: Floats
    z: Floats
    nu: Floats
    mu: Floats

    @property
    def shares(self) -> Floats:
        """Slopes (n, H) in [0, 1] that stand for the hinges."""
        return np.asarray(self.mu / (self.mu + self.nu))


def hinge_path(
    program: HingeProgram,
    u: Floats,
    guess: tuple[Floats, Floats] | None,
    goes_on: Callable[[HingePath, int], bool],
    *,
    limit: int,
) -> None:
    """Follow the path of a program from groups of positive margins, as long as it `goes_on`.

    Parameters
    ----------
    program : HingeProgram
    u : (H, D) array
        At any scale.
    guess : ((n,) array, (n, H) array) or None
        Multipliers and shares near the solution, as the groups are then.
    goes_on : callable
        Called as `goes_on(point, done)` at every point, the first one included.
    limit : int
        Steps at most.
    """
    gram = program.X @ program.X.T
    single: NDArray[Any] = gram.astype(np.float32)
    start = _start(program, u) if guess is None else _restart(program, u, *guess)
    begun = _mean_product(program, start)

    def linearised(at: HingePath) -> _System:
        far = _mean_product(program, at) > _DOUBLE * begun
        return _System(program, single if far else gram, at)

    follow(start, linearised, goes_on, limit=limit)


def _start(program: HingeProgram, u: Floats) -> HingePath:
    a, b, hinged = program.linear, program.hinges, program.hinges > 0
    u = u / np.min(program.margins(u))
    norms = np.linalg.norm(u, axis=1)
    value, n = float(norms.sum()), len(a)
    mu = _PRODUCTS * value / n
    r = mu + np.hypot(mu, norms)
    products = program.X @ u.T
    width = _ROUND * float(np.mean(np.abs(products))) + _OF_PAIR * mu
    root = np.hypot(products, 2 * width)
    t = (products + root) / 2
    s = np.maximum((a * products - b * t).sum(axis=1) - 1, _SLACK)
    lam = value / s / np.sum(1 / s)
    shares = np.clip(t / root, _INSIDE, 1 - _INSIDE)
    of_pairs = (t, t - products, lam[:, None] * b * (1 - shares), lam[:, None] * b * shares)
    return HingePath(
        u, r, u / r[:, None], s, lam, *(np.where(hinged, each, 1.0) for each in of_pairs)
    )


def _restart(program: HingeProgram, u: Floats, lam: Floats, shares: Floats) -> HingePath:
    """A point near the path, and as near to the solution as it may be without being stuck."""
    a, b, hinged = program.linear, program.hinges, program.hinges > 0
    u = u / np.min(program.margins(u))
    norms, products = np.linalg.norm(u, axis=1), program.X @ u.T
    level = _NEAR * float(norms.sum()) / len(a)
    lam = np.maximum(lam, 0.0) + _OFF * np.mean(lam)
    shares = np.clip(shares, _OFF, 1 - _OFF)
    whole = np.where(hinged, lam[:, None] * b, 1.0)
    width = _OF_PAIR * level / (whole * np.sqrt(shares * (1 - shares)))
    larger = (np.abs(products) + np.hypot(products, 2 * width)) / 2
    opened, smaller = products > 0, width**2 / larger
    # Away from its kink the multiplier of a hinge, or of its argument, is what centres it.
    least = np.minimum(whole * np.where(opened, 1 - shares, shares), _OF_PAIR * level / larger)
    t, z = np.where(opened, larger, smaller), np.where(opened, smaller, larger)
    mu = np.where(opened, whole - least, least)
    v = (lam[:, None] * a - np.where(hinged, mu, 0.0)).T @ program.X
    inside = (1 - _OFF) / np.max(np.linalg.norm(v, axis=1))
    lam, mu, nu = lam * inside, mu * inside, (whole - mu) * inside
    margins = (a * products - b * np.where(hinged, t, 0.0)).sum(axis=1)
    s = np.maximum(margins - 1, level / lam)
    pairs = (np.where(hinged, each, 1.0) for each in (t, z, nu, mu))
    return HingePath(u, level + np.hypot(level, norms), inside * v, s, lam, *pairs)


def _mean_product(program: HingeProgram, at: HingePath) -> float:
    hinged = program.hinges > 0
    pairs = np.where(hinged, at.t * at.nu + at.z * at.mu, 0.0).sum()
    total = float(at.s @ at.lam + pairs + (at.r - (at.u * at.v).sum(axis=1)).sum())
    return total / (len(at.s) + len(at.r) + 2 * _OF_PAIR * int(hinged.sum()))


class _Target(NamedTuple):
    """Products that are wanted of margins (n,) and pairs (n, H), and what norms are to become."""

    margins: Floats
    of_t: Floats
    of_z: Floats
    r: Floats
    u: Floats


class _System(System[HingePath, _Target, HingePath]):
    """Newton's system, reduced to the samples."""

    inner: ClassVar[float] = 0.9
    shares: ClassVar[tuple[float, float]] = (0.02, 1.0)

    def __init__(self, program: HingeProgram, gram: NDArray[Any], point: HingePath) -> None:
        self.program, self.point = program, point
        a, b, at = program.linear, program.hinges, point
        self.hinged = hinged = b > 0
        # A hinge gives way by `1 / stiffness`; its argument feels `curvature` through it.
        self.below, self.above = at.nu / at.t, at.mu / at.z
        self.stiffness = self.below + self.above
        curvature = np.where(hinged, self.below * self.above / self.stiffness, 0.0)
        self.tilt = np.where(hinged, self.above / self.stiffness, 0.0)
        self.slopes = a - b * self.tilt
        self._scale_cones()
        self.off_block = at.v - (at.lam[:, None] * a - np.where(hinged, at.mu, 0.0)).T @ program.X
        products = program.X @ at.u.T
        self.off_margin = (a * products - b * at.t).sum(axis=1) - 1 - at.s
        self.off_pair = np.where(hinged, b * at.lam[:, None] - at.nu - at.mu, 0.0)
        self._eliminate(gram, curvature)

    def _scale_cones(self) -> None:
        at = self.point
        own, self.room = at.r**2 - (at.u**2).sum(axis=1), 1 - (at.v**2).sum(axis=1)
        own, other = np.sqrt(own), np.sqrt(self.room)
        inner = (at.r - (at.u * at.v).sum(axis=1)) / (own * other)
        half = 2 * np.sqrt((1 + inner) / 2)
        self.axis = (at.u / own[:, None] + at.v / other[:, None]) / half[:, None]
        self.first = (at.r / own + 1 / other) / half
        self.size = own / other

    def _eliminate(self, gram: NDArray[Any], curvature: Floats) -> None:
        n, slopes, size = len(gram), self.slopes, self.size
        along = self.program.X @ self.axis.T
        matrix = (slopes * size) @ slopes.T * gram
        tilted = slopes * along * np.sqrt(2 * size)
        matrix += tilted @ tilted.T
        own = size * (np.diag(gram)[:, None] + 2 * along**2)
        self.curved: list[tuple[NDArray[np.int64], NDArray[Any]]] = []
        kind = gram.dtype
        trsm, syrk = get_blas_funcs(("trsm", "syrk"), dtype=kind)
        taken = np.zeros((n, n), dtype=kind, order="F")
        along, slopes = along.astype(kind), slopes.astype(kind)
        for h in range(slopes.shape[1]):
            kinks = np.flatnonzero(curvature[:, h] * own[:, h] > _FLAT)
            factor = np.zeros((0, 0), dtype=kind)
            if len(kinks):
                rows = gram[kinks]
                rows += np.outer(2 * along[kinks, h], along[:, h])
                rows *= kind.type(size[h])
                among = rows[:, kinks]
                among.flat[:: len(kinks) + 1] += 1 / curvature[kinks, h]
                factor = cholesky_lower(among)
                rows *= slopes[:, h]
                rows = trsm(1.0, factor, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1)
                taken = syrk(1.0, rows, beta=1.0, c=taken, lower=1, overwrite_c=1)
            self.curved.append((kinks, factor))
        matrix -= mirror_lower(taken)
        gives = np.where(self.hinged, self.program.hinges**2 / self.stiffness, 0.0).sum(axis=1)
        matrix.flat[:: n + 1] += self.point.s / self.point.lam + gives
        self.factor = Factor(matrix)

    def _of_norm(self, groups: Floats, sign: float = 1.0) -> Floats:
        """Product of (H, D) with the curvature of the norms (sign -1), or with its inverse."""
        along = (self.axis * groups).sum(axis=1)
        if sign > 0:
            return np.asarray(self.size[:, None] * (groups + 2 * self.axis * along[:, None]))
        along /= 1 + 2 * (self.axis**2).sum(axis=1)
        return np.asarray((groups - 2 * self.axis * along[:, None]) / self.size[:, None])

    def _of_groups(self, groups: Floats) -> Floats:
        """Inverse of the curvature of norms and pairs, times (H, D)."""
        X, first = self.program.X, self._of_norm(groups)
        products = X @ first.T
        held = np.zeros_like(products)
        for h, (kinks, factor) in enumerate(self.curved):
            if len(kinks):
                held[kinks, h] = cholesky_solve(factor, products[kinks, h])
        return first - self._of_norm(held.T @ X)

    def mu(self, step: HingePath | None = None, lengths: Lengths = (0.0, 0.0)) -> float:
        return _mean_product(
            self.program, self.point if step is None else self.moved(step, lengths)
        )

    def _aimed(self, mu: float) -> _Target:
        n, H = self.slopes.shape
        of_pair, by_room = np.full((n, H), _OF_PAIR * mu), mu / self.room
        return _Target(np.full(n, mu), of_pair, of_pair, by_room, by_room[:, None] * self.point.v)

    def predicting(self) -> _Target:
        return self._aimed(0.0)

    def correcting(self, affine: HingePath, mu: float) -> _Target:
        aimed = self._aimed(mu)
        if not min(self.longest(affine)) > _BLOCKED:
            return aimed
        r, u = self._second_order(affine)
        return _Target(
            aimed.margins - affine.s * affine.lam,
            aimed.of_t - affine.t * affine.nu,
            aimed.of_z - affine.z * affine.mu,
            aimed.r - r,
            aimed.u - u,
        )

    def _scaled(self, r: Floats, u: Floats, sign: float) -> tuple[Floats, Floats]:
        """Product of points of the cones with their scaling (sign 1) or its inverse (-1)."""
        along, size = (self.axis * u).sum(axis=1), self.size ** (sign / 2)
        turned = u + self.axis * (sign * r + along / (1 + self.first))[:, None]
        return size * (self.first * r + sign * along), size[:, None] * turned

    def _second_order(self, step: HingePath) -> tuple[Floats, Floats]:
        at, none = self.point, np.zeros(len(self.point.r))
        l0, l1 = self._scaled(none + 1, -at.v, 1)
        x0, x1 = self._scaled(step.r, step.u, -1)
        y0, y1 = self._scaled(none, -step.v, 1)
        d0, d1 = x0 * y0 + (x1 * y1).sum(axis=1), x0[:, None] * y1 + y0[:, None] * x1
        first = (l0 * d0 - (l1 * d1).sum(axis=1)) / (l0**2 - (l1**2).sum(axis=1))
        return self._scaled(first, (d1 - first[:, None] * l1) / l0[:, None], 1)

    def solve(self, target: _Target) -> HingePath:
        """Newton step."""
        at, X, b, hinged = self.point, self.program.X, self.program.hinges, self.hinged
        wanted = target.margins / at.lam - at.s
        of_t, of_z = target.of_t / at.t - at.nu, target.of_z / at.z - at.mu
        first_t = np.where(hinged, (of_t + of_z - self.off_pair) / self.stiffness, 0.0)
        to_u = target.u - at.u
        pull = np.where(hinged, of_z - self.above * first_t, 0.0)
        groups = self.off_block - self._of_norm(to_u, -1) + pull.T @ X
        freed = self._of_groups(groups)
        right = wanted - self.off_margin + (b * first_t + self.slopes * (X @ freed.T)).sum(axis=1)
        lam = np.asarray(self.factor.solve(right))
        u = self._of_groups((lam[:, None] * self.slopes).T @ X - groups)
        products = X @ u.T
        t = first_t + self.tilt * products
        t -= np.where(hinged, b / self.stiffness, 0.0) * lam[:, None]
        z = np.where(hinged, t - products, 0.0)
        v = self._of_norm(u - to_u, -1)
        return HingePath(
            u,
            target.r - at.r + 2 * self.size * self.first * (self.axis * v).sum(axis=1),
            v,
            self.off_margin + (self.program.linear * products - b * t).sum(axis=1),
            lam,
            t,
            z,
            np.where(hinged, of_t - self.below * t, 0.0),
            np.where(hinged, of_z - self.above * z, 0.0),
        )

    def longest(self, step: HingePath) -> Lengths:
        at = self.point
        primal = min(
            longest_step(at.s, step.s),
            longest_step(at.t.ravel(), step.t.ravel()),
            longest_step(at.z.ravel(), step.z.ravel()),
            _longest_in_cones((at.r, at.u), (step.r, step.u)),
        )
        dual = min(
            longest_step(at.lam, step.lam),
            longest_step(at.nu.ravel(), step.nu.ravel()),
            longest_step(at.mu.ravel(), step.mu.ravel()),
            _longest_in_cones((np.ones_like(at.r), at.v), (np.zeros_like(at.r), step.v)),
        )
        return primal, dual

    def moved(self, step: HingePath, lengths: Lengths) -> HingePath:
        at = vars(self.point)
        dual = ("v", "lam", "nu", "mu")
        return HingePath(
            **{name: at[name] + lengths[name in dual] * by for name, by in vars(step).items()}
        )


def _longest_in_cones(point: tuple[Floats, Floats], step: tuple[Floats, Floats]) -> float:
    """Longest step that leaves each ``r >= ||u||``."""
    (r, u), (dr, du) = point, step
    square = dr**2 - (du**2).sum(axis=1)
    cross, own = r * dr - (u * du).sum(axis=1), r**2 - (u**2).sum(axis=1)
    root = np.sqrt(np.maximum(cross**2 - square * own, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # The smaller positive root, without cancellation; there is none where the step stays in.
        far = np.where(cross < 0, own / (root - cross), -(cross + root) / square)
    leaves = (cross**2 >= square * own) & (far > 0) & ((cross < 0) | (square < 0))
    return float(np.min(far[leaves], initial=np.inf))
