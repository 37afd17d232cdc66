"""Active-set method for programs of one group: exact, and quick where few samples matter.

With Q the kernel of one group, times labels, the multipliers of the hard-margin program are

    maximise  sum(lam) - lam^T Q lam / 2   subject to  lam >= 0,

whose optimum has margins `Q lam = 1` where `lam > 0` and above 1 elsewhere. Lawson and Hanson's
method for non-negative least squares finds it by letting samples in whose margins are too small
and out whose multipliers turn negative; here several come in at once, and a sample whose inputs
depend on those that are in takes the place of one of them.

It ends. Every turn within a round takes at least one sample out. A round ends with margins 1 on
independent samples of positive multipliers, which the set of these samples determines, and with a
larger `sum(lam)`, twice the objective: those that came in had margins below 1. So no set comes
back, ties and duplicates or not. Rounding could undo that, and a round after which the sum has not
grown is the last one.

References
----------
C. L. Lawson, R. J. Hanson, "Solving least squares problems", 1974, chapter 23;
D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic
programs", 1983, for the exchange.
"""

from __future__ import annotations

import numpy as np

from ...numerics.arrays import NotPositiveDefinite, cholesky_lower, cholesky_solve, matmul
from ..settings import Settings

# At most so many samples come in at once, and at most this share of those that are in: measured
# on MNIST digits, 8 to 20 rounds instead of one for each of 20 to 270 support vectors.
AT_ONCE, SHARE = 8, 0.3
# Samples whose shortfall is a smaller share of the worst one wait for what the others change.
WORTHWHILE = 0.3
# Pivots below this share of their diagonal are rounding: the sample depends on those before it.
DEPENDENT = 1e-12
# Share of the tolerance that is aimed at: the certificate on the features adds its own rounding.
EXACT = 0.1
# Where more than this share of the samples comes in the interior point is quicker: it was by two
# at 80 % on 1,000 samples, and slower by two at 40 % on 700. A set that was mostly in from the
# start, as the last working sets are, may still grow by a little, and so few may always come in:
# on them the interior point takes 20 ms, whatever it does.
CROWDED, GROWTH, FEW = 0.5, 1.2, 200
# Work from which on the interior point is quicker, in factorisations of all samples, of which it
# takes 10 to 20: where the active set succeeded on 700 samples or more it took 0.1 to 2. The work
# of one for 1,000 samples comes on top, which smaller sets, on which nothing takes long, may need.
BUDGET, SMALL = 2.0, 1000
# Rounds at most for every sample that can be in, and factorisations for every sample, beside those
# that even the smallest sets may take: of 1,500 random programs of 10 to 600 samples, small
# integers and exact ties among them, none took more than one and a half.
PER_SAMPLE, SPARE = 3, 20


def active_set_multipliers(
    Q: np.ndarray, settings: Settings, *, rank: int, start: np.ndarray | None = None
) -> tuple[np.ndarray | None, int]:
    """Find multipliers (n,) with a relative duality gap within tolerance, and count the rounds.

    Parameters
    ----------
    Q : (n, n) array
        Symmetric, positive semidefinite.
    settings : Settings
        `max_iterations` bounds the rounds, by default to 20 and three for every sample that can
        be in.
    rank : int
        A bound of the rank of Q.
    start : (n,) array, optional
        Optimal multipliers of a part of the samples, zero on the others.

    Returns
    -------
    ((n,) array or None, int)
        None where rounding stopped it, its work was used up, or nothing separates. There are at
        most 20 factorisations and three for every sample.
    """
    n, kernel = len(Q), _Kernel(Q, rank)
    most = settings.max_iterations or PER_SAMPLE * min(rank, n) + SPARE
    lam, active = np.zeros(n), np.zeros(n, dtype=bool)
    if start is not None:
        lam, active = _settled(kernel, start, start > 0) or (lam, active)
    crowd = max(CROWDED * n, GROWTH * active.sum(), FEW)
    for done in range(most + 1):
        shortfall = 1 - matmul(Q, lam)
        # All that are in have margin 1, so that lam^T Q lam = sum(lam) and the gap is that of the
        # smallest margin.
        worst = float(np.max(shortfall, where=~active, initial=0.0))
        gap = 1 / (1 - worst) - 1 if worst < 1 else np.inf
        if settings.progress is not None and done > 0:
            settings.progress(done, gap)
        if gap <= EXACT * settings.tol:
            return lam, done
        found = _advanced(kernel, lam, active, shortfall)
        if found is None or not found[0].sum() > lam.sum() or found[1].sum() > crowd:
            return None, done
        lam, active = found
    return None, most


class _Kernel:
    """Matrix Q of a bounded rank, whose parts are factorised within a budget."""

    def __init__(self, Q: np.ndarray, rank: int) -> None:
        self.Q, self.rank = Q, rank
        self._work, self._budget = 0.0, BUDGET + (SMALL / len(Q)) ** 3
        self._left = PER_SAMPLE * len(Q) + SPARE

    def factor(self, rows: np.ndarray) -> np.ndarray | None:
        """Lower Cholesky factor for `rows`; None for none, dependent ones, or once work is up."""
        self._work += (len(rows) / len(self.Q)) ** 3
        self._left -= 1
        if len(rows) == 0 or self._left < 0 or self._work > self._budget:
            return None
        part = self.Q[np.ix_(rows, rows)].T
        try:
            factor = cholesky_lower(part)
        except NotPositiveDefinite:
            return None
        if np.any(np.diag(factor) ** 2 <= DEPENDENT * np.diag(part)):
            return None
        return np.asarray(factor)


def _advanced(
    kernel: _Kernel, lam: np.ndarray, active: np.ndarray, shortfall: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Multipliers of a higher value, and the samples that are in."""
    outside = np.where(active, -np.inf, shortfall)
    order = np.argsort(-outside, kind="stable")
    size = int(active.sum())
    count = min(max(AT_ONCE, int(SHARE * size)), max(1, (kernel.rank - size) // 2))
    several = order[:count][outside[order[:count]] >= WORTHWHILE * outside[order[0]]]
    for entering in (several, order[:1]):
        wider = active.copy()
        wider[entering] = True
        found = _settled(kernel, lam, wider)
        if found is not None and found[0].sum() > lam.sum():
            return found
        if len(several) == 1:
            break
    return _exchanged(kernel, lam, active, int(order[0]))


def _settled(
    kernel: _Kernel, lam: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Bring margins to 1 on `active`, less samples whose multipliers turn negative on the way."""
    active, lam = active.copy(), lam.copy()
    while True:
        rows = np.flatnonzero(active)
        factor = kernel.factor(rows)
        if factor is None:
            return None
        wanted = cholesky_solve(factor, np.ones(len(rows)))
        negative = wanted <= 0
        if not negative.any():
            lam[rows] = wanted
            return lam, active
        now, sinking = lam[rows], lam[rows][negative]
        # A sample that is at zero and not to rise leaves before any other moves.
        steps = np.zeros_like(sinking)
        np.divide(sinking, sinking - wanted[negative], out=steps, where=sinking > 0)
        out = rows[negative][steps <= steps.min()]
        lam[rows] = np.clip(now + steps.min() * (wanted - now), 0.0, None)
        lam[out], active[out] = 0.0, False


def _exchanged(
    kernel: _Kernel, lam: np.ndarray, active: np.ndarray, entering: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Exchange `entering`, whose inputs are `z` times those in, for the first that it empties.

    Along `lam[entering] += s`, `lam -= s z` the blocks stay what they are and the value grows by
    `s (1 - sum(z))`. If no multiplier shrinks, the blocks of `(1, -z)` cancel: nothing separates.
    """
    rows = np.flatnonzero(active)
    factor = kernel.factor(rows)
    if factor is None:
        return None
    z = cholesky_solve(factor, kernel.Q[rows, entering])
    shrinking = z > 0
    if not shrinking.any() or not z.sum() < 1:
        return None
    steps = lam[rows[shrinking]] / z[shrinking]
    first = int(np.argmin(steps))
    lam, active = lam.copy(), active.copy()
    lam[rows] = np.clip(lam[rows] - steps[first] * z, 0.0, None)
    lam[entering] += steps[first]
    out = rows[shrinking][first]
    lam[out], active[out], active[entering] = 0.0, False, True
    return _settled(kernel, lam, active)
