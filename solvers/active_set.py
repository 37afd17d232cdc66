"""Programs of one group by their active set: exact, and quick where few samples matter.

With Q the kernel of one group, times labels, the multipliers of the hard-margin program are

    maximise  sum(lam) - lam^T Q lam / 2   subject to  lam >= 0,

whose optimum has margins `Q lam = 1` where `lam > 0` and above 1 elsewhere. Lawson and Hanson's
method for non-negative least squares finds it by letting samples in whose margins are too small
and out whose multipliers turn negative; here several come in at once, and a sample whose inputs
depend on those that are in takes the place of one of them.

References
----------
C. L. Lawson, R. J. Hanson, "Solving least squares problems", 1974, chapter 23;
D. Goldfarb, A. Idnani, "A numerically stable dual method for solving strictly convex quadratic
programs", 1983, for the exchange.
"""

from __future__ import annotations

import numpy as np

from .arrays import NotPositiveDefinite, cholesky_lower, cholesky_solve, matmul
from .settings import Settings

__all__ = ["active_set_multipliers"]

# At most so many samples come in at once, and at most this share of those that are in: measured
# on MNIST digits, 8 to 20 rounds instead of one for each of 20 to 270 support vectors.
AT_ONCE, SHARE = 8, 0.3
# Of the worst shortfall: samples that fall less short wait for what the others change.
WORTHWHILE = 0.3
# Pivots below this share of their diagonal are rounding: the sample depends on those before it.
DEPENDENT = 1e-12
# Of the tolerance, which the certificate on the features has to meet with its own rounding.
EXACT = 0.1
# The work after which the interior point is the better choice, in factorisations of all samples.
BUDGET = 10.0


def active_set_multipliers(
    Q: np.ndarray, settings: Settings, *, rank: int, start: np.ndarray | None = None
) -> tuple[np.ndarray | None, int]:
    """Multipliers (n,) whose relative duality gap is within tolerance, and the rounds it took.

    Parameters
    ----------
    Q : (n, n) array
        Symmetric, positive semidefinite.
    settings : Settings
        `max_iterations` bounds the rounds, by default to three for every sample that can be in.
    rank : int
        A bound of the rank of Q.
    start : (n,) array, optional
        Optimal multipliers of a part of the samples, zero on the others.

    Returns
    -------
    ((n,) array or None, int)
        None where rounding stopped it, its work was used up, or nothing separates.
    """
    n = len(Q)
    most = settings.max_iterations or 3 * min(rank, n) + 20
    lam = np.zeros(n) if start is None else start
    active, work = lam > 0, 0.0
    if start is not None:
        settled = _settled(Q, lam, active)
        lam, active = settled or (np.zeros(n), np.zeros(n, dtype=bool))
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
        work += (active.sum() + AT_ONCE) ** 3 / n**3
        found = _advanced(Q, lam, active, shortfall, rank)
        if found is None or work > BUDGET:
            return None, done
        lam, active = found
    return None, most


def _advanced(
    Q: np.ndarray, lam: np.ndarray, active: np.ndarray, shortfall: np.ndarray, rank: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Multipliers of a higher value, and the samples that are in."""
    outside = np.where(active, -np.inf, shortfall)
    order = np.argsort(-outside)
    size = int(active.sum())
    count = min(max(AT_ONCE, int(SHARE * size)), max(1, (rank - size) // 2))
    several = order[:count][outside[order[:count]] >= WORTHWHILE * outside[order[0]]]
    for entering in (several, order[:1]):
        wider = active.copy()
        wider[entering] = True
        found = _settled(Q, lam, wider)
        if found is not None and not np.array_equal(found[1], active):
            return found
        if len(several) == 1:
            break
    return _exchanged(Q, lam, active, int(order[0]))


def _settled(
    Q: np.ndarray, lam: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Margins 1 on `active`, less those samples whose multipliers turn negative on the way."""
    active, lam = active.copy(), lam.copy()
    while True:
        rows = np.flatnonzero(active)
        factor = _factor(Q, rows)
        if factor is None:
            return None
        wanted = cholesky_solve(factor, np.ones(len(rows)))
        negative = wanted <= 0
        if not negative.any():
            lam[rows] = wanted
            return lam, active
        now = lam[rows]
        steps = now[negative] / (now[negative] - wanted[negative])
        moved = now + steps.min() * (wanted - now)
        out = rows[negative][steps <= steps.min()]
        lam[rows] = np.clip(moved, 0.0, None)
        lam[out], active[out] = 0.0, False


def _factor(Q: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Lower Cholesky factor of the kernel of `rows`; None if they depend on each other."""
    part = Q[np.ix_(rows, rows)].T
    try:
        factor = cholesky_lower(part)
    except NotPositiveDefinite:
        return None
    if np.any(np.diag(factor) ** 2 <= DEPENDENT * np.diag(part)):
        return None
    return np.asarray(factor)


def _exchanged(
    Q: np.ndarray, lam: np.ndarray, active: np.ndarray, entering: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """`entering`, whose inputs are `z` times those that are in, for the first that it empties.

    Along `lam[entering] += s`, `lam -= s z` the blocks stay what they are and the value grows by
    `s (1 - sum(z))`. If no multiplier shrinks, the blocks of `(1, -z)` cancel: nothing separates.
    """
    rows = np.flatnonzero(active)
    factor = _factor(Q, rows)
    if factor is None:
        return None
    z = cholesky_solve(factor, Q[rows, entering])
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
    return _settled(Q, lam, active)
