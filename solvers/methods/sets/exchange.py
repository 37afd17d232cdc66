"""Multipliers that are not negative, by exchanging whole blocks of variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from ...numerics.arrays import Array, array_namespace, float_of

# Multipliers below this share of the largest are rounding.
ROUNDING = 1e-11
# Exchanges of blocks that may fail to lower the number of wrong signs before single ones take over.
ALONE = 3
# Wrong signs, as a share of the set, from which on systems are solved exactly.
NEAR = 0.02


class SetSolution(NamedTuple):
    """Multipliers lam (n,) of a set, slopes (n,), and the largest that are rounding, below 0."""

    lam: Array
    slope: Array
    allowed: Array | float


class Exchanged(NamedTuple):
    """Multipliers (n,), None where the exchanges do not end, and how many there were."""

    lam: Array | None
    exchanges: int


def exchange(
    solve: Callable[[Array, Array, bool], SetSolution | None],
    active: Array,
    *,
    max_exchanges: int,
    patience: int,
    growth: float = math.inf,
    rough: bool = False,
    told: Callable[[int, int], None] = lambda done, wrong: None,
) -> Exchanged:
    r"""Solve :math:`\min \tfrac12 \lambda^T K \lambda - b^T \lambda, \lambda \ge 0`.

    Each exchange solves for the multipliers of a set of variables, drops those that come out
    negative, and takes in variables whose slopes ask for a multiplier. That ends in the solution
    where it ends; it need not end. Where wrong signs do not become fewer the last one alone is
    exchanged.

    Parameters
    ----------
    solve : callable
        ``solve(active, lam, exact)``: of a set (n,), from the multipliers before; roughly as long
        as `exact` is False. None where it cannot.
    active : (n,) boolean array
        The set to begin with.
    max_exchanges, patience : int
        Exchanges in all, and those that may fail to lower the number of wrong signs.
    growth : float
        Variables that may enter at a time, the steepest first, as a share of those that are in.
    rough : bool
        Whether systems are solved roughly until few signs are wrong.
    told : callable, optional
        Called with the exchanges so far and the wrong signs.

    Returns
    -------
    Exchanged

    References
    ----------
    J. Kim, H. Park, "Fast nonnegative matrix factorization: an active-set-like method and
    comparisons", SIAM Journal on Scientific Computing 33 (2011), section 4: block pivoting with
    a finite backup rule.
    """
    xp = array_namespace(active)
    lam = xp.zeros(active.shape[0], dtype=xp.float64, device=active.device)
    exact, fewest, left = not rough, math.inf, patience
    for done in range(1, max_exchanges + 1):
        solved = solve(active, lam, exact)
        if solved is None:
            return Exchanged(None, done)
        lam, slope, allowed = solved
        negative = active & (lam < -ROUNDING * float_of(xp.max(xp.abs(lam))))
        asking = ~active & (slope < -allowed)
        wrong = int(xp.count_nonzero(negative)) + int(xp.count_nonzero(asking))
        told(done, wrong)
        if wrong == 0 and exact:
            return Exchanged(xp.clip(lam, min=0.0), done)
        fewest, left = (wrong, patience) if wrong < fewest else (fewest, left - 1)
        n_active = int(xp.count_nonzero(active))
        if not exact and (wrong <= NEAR * n_active or left < 0):
            exact, fewest, left = True, math.inf, patience
        if left < 0:
            return Exchanged(None, done)
        changing = negative | asking
        if patience - left > ALONE:
            last = xp.nonzero(changing)[0][-1]
            changing = xp.zeros_like(changing)
            changing[last] = True
        elif growth < math.inf:
            entering = xp.nonzero(asking)[0]
            steepest = entering[xp.argsort(slope[entering])]
            changing[steepest[max(int(growth * n_active), 1) :]] = False
        active = active ^ changing
    return Exchanged(None, max_exchanges)
