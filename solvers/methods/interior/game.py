"""Primal-dual interior point for max-margin programs, in the dual.

The programs are solved as a game. With `lam` and `d` on simplices and the kernels K_g,

    gamma^2 = min_lam max_g lam^T K_g lam = max_d min_lam lam^T (sum_g d[g] K_g) lam,

gamma is the best margin per unit of norm, 1 / gamma the optimum of the program, and gamma = 0
exactly when the data are not separable, lam being the proof. Both sides of the game always have
interior points, so there is no phase for infeasible programs, and no scaling to choose.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from ...numerics.arrays import Array, array_namespace, float_of, matmul
from ...numerics.central_path import Best, Path, Watch, follow_path
from ..settings import Settings
from .group_kernels import GroupKernels
from .group_starts import Start, starting_point, warm_point
from .group_system import GroupSystem, Iterate

# Stop once this many iterations have not narrowed the bounds by a tenth.
PATIENCE = 15
# Gram matrices know squared norms to about 1e-16 of the samples' sizes, so that gamma below 1e-8
# of those that lam weighs is noise to them: there the run ends and the refinement on the features
# themselves begins.
RESOLUTION = 1e-8
ITERATIONS = 100
# From this gap on, samples with `z / lam` above so many times their kernel's diagonal are left
# out, if that leaves at most this share. On MNIST digits no support vector has been among them.
SETTLED = 2e-2
DISTANT = 1.0
WORTHWHILE = 0.8


def play(kernels: GroupKernels, settings: Settings, start: Start | None = None) -> Best[Start]:
    """Follow the central path of the game, from `start` on, until its bounds meet within `tol`.

    Returns
    -------
    Best
        Bounds of gamma, those of Gram arithmetic: the caller certifies what it makes of them. The
        network with blocks `d[g] v_g(lam)` of its `primal` has the lower one as its margin per
        unit of norm, the multipliers of its `dual` give the upper one.
    """
    point = starting_point(kernels) if start is None else warm_point(kernels, start)
    run = partial(Watch[Start], enough=settings.tol, patience=PATIENCE, progress=settings.progress)
    return follow_path(Game(kernels), point, run, limit=settings.max_iterations or ITERATIONS)


class Game(Path[Iterate, Start]):
    """The game of some kernels, whose rows are samples."""

    def __init__(self, kernels: GroupKernels) -> None:
        self.kernels = kernels

    def system(self, point: Iterate) -> GroupSystem:
        return GroupSystem(self.kernels, point)

    def goes_on(self, best: Best[Start]) -> bool:
        sizes = float_of(matmul(best.dual.lam, self.kernels.sizes))
        return best.upper > RESOLUTION * sizes

    def near(self, point: Iterate, gap: float) -> Array | None:
        if gap >= SETTLED:
            return None
        xp = array_namespace(point.lam)
        near = point.z <= DISTANT * self.kernels.diagonal(point.d) * point.lam
        rows = xp.nonzero(near)[0]
        return rows if 0 < rows.shape[0] <= WORTHWHILE * point.lam.shape[0] else None

    def part(self, rows: Array) -> Game:
        return Game(self.kernels.subset(rows))

    def restricted(self, point: Iterate, rows: Array) -> Iterate:
        xp = array_namespace(point.lam)
        lam = point.lam[rows] / xp.sum(point.lam[rows])
        return replace(point, lam=lam, z=point.z[rows], products=self.kernels.products(lam))

    def with_all(self, best: Best[Start], rows: Array) -> Best[Start]:
        primal, dual = (self._padded(start, rows) for start in (best.primal, best.dual))
        lower = _lower_bound(primal.lam, primal.d, self.kernels.products(primal.lam))
        return Best(lower, primal, best.upper, dual, best.iterations)

    def _padded(self, start: Start, rows: Array) -> Start:
        """Multipliers of the samples `rows` as those of all."""
        lam = array_namespace(self.kernels.sizes).zeros_like(self.kernels.sizes)
        lam[rows] = start.lam
        return replace(start, lam=lam)

    def bounds(self, point: Iterate) -> Best[Start]:
        xp = array_namespace(point.lam)
        norms = xp.sqrt(xp.clip(matmul(point.lam, point.products), min=0.0))
        upper = float_of(xp.max(norms)) / float_of(xp.sum(point.lam))
        start = Start(lam=point.lam, d=point.d)
        return Best(_lower_bound(point.lam, point.d, point.products), start, upper, start)


def _lower_bound(lam: Array, d: Array, products: Array) -> float:
    """Smallest margin per unit of norm of the blocks `d[g] v_g(lam)`."""
    xp = array_namespace(lam)
    norms = xp.sqrt(xp.clip(matmul(lam, products), min=0.0))
    total = float_of(d @ norms)
    return float_of(xp.min(matmul(products, d))) / total if total > 0 else -math.inf
