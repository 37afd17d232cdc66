"""Lower bounds of the value of every two-layer ReLU network, of any width."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear

from .._doors import door
from .._kinds import count
from .._solve import require_fraction, require_real, require_shape, to_numpy
from ..data.arrays import Floats
from .arrangement import arrangement_directions
from .directions import Side, best_directions, dual_function, shortest, sides
from .problem import ReLUProblem

__all__ = ["MAX_PATTERNS", "TooManyPatterns", "largest_dual", "n_patterns", "relu_lower_bound"]

MAX_PATTERNS = 2**24
# Patterns whose bound is worked on at once, and samples whose patterns are summed at once.
_CHUNK, _LOW = 2**14, 14
# Of the largest value that is known: patterns below it by so much, or above by less, need no more.
_CLOSE = 1e-10
# Rounds of the accelerated gradient on patterns that remain; those that remain then are solved
# one at a time.
_ROUNDS = (5, 20, 80, 320, 1280)
_UNIT = 2.0**-53


class TooManyPatterns(ValueError):
    """Raised where a bound would have to look at more gate patterns than are allowed."""


@door(max_patterns=count())
def relu_lower_bound(
    multipliers: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    *,
    slope: float = 0.0,
    max_patterns: int = MAX_PATTERNS,
) -> float:
    r"""Return a lower bound of the value of every two-layer ReLU network, of any width.

    .. math:: \frac{\sum_n \lambda_n}{\max_{\|v\| \le 1} |\sum_n \lambda_n y_n
              \max(\langle v, x_n\rangle, 0)|} \;\le\; \min \sum_h \|u_h\|
              \quad\text{s.t. margins of at least 1}

    The maximum is that over both signs of a unit, and the gate patterns of its helping samples
    with a multiplier, of ``min ||sum_n g_n lam_n x_n - sum_m gam_m lam_m x_m||`` over shares gam
    in [0, 1] of the opposing ones. Any shares bound their pattern from above, so that minima that
    are not exact prove the bound too. Inputs of rank 3 or less need no patterns: the kinks cut the
    sphere into O(p^2) faces. Computed in floating point.

    Parameters
    ----------
    multipliers : (n,) array
        Non-negative, not all zero, at any scale; those of a local limit.
    X : (n, D) array
        Inputs; a bias is a constant column.
    y : (n,) array
        Labels in {-1, +1}.
    slope : float
        Of the activation left of its kink, in [0, 1): a leaky ReLU.
    max_patterns : int
        Gate patterns to look at.

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If an array is not of real numbers.
    ValueError
        If shapes disagree, a number is out of range, or there are 2^p patterns with more than
        `max_patterns`; p is in the message.

    Examples
    --------
    Two samples of opposite labels need a unit each:

    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> round(ib.limits.relu_lower_bound(np.array([1.0, 0.5]), X, y), 9)
    1.5
    """
    require_fraction("slope", slope)
    problem = ReLUProblem.checked(X, y, slope)
    require_real("multipliers", multipliers)
    lam = np.asarray(to_numpy(multipliers), dtype=np.float64)
    require_shape("multipliers", lam, problem.y.shape, "one multiplier a sample")
    if not (np.all(np.isfinite(lam)) and np.all(lam >= 0) and np.any(lam > 0)):
        raise ValueError("`multipliers` must be finite, non-negative and not all zero")
    lam = lam / lam.max()
    total = float(lam.sum()) * (1 - (len(lam) + 2) * _UNIT)
    return total / largest_dual(problem, lam, max_patterns=max_patterns)


def n_patterns(problem: ReLUProblem, lam: Floats) -> int:
    """Return how many gate patterns a bound looks at; 0 where the arrangement gives it."""
    if problem.X.shape[1] <= 3:
        return 0
    return int(sum(2 ** len(side.helping) for side in sides(problem, lam)))


def largest_dual(
    problem: ReLUProblem,
    lam: Floats,
    known: Floats | None = None,
    *,
    max_patterns: int = MAX_PATTERNS,
) -> float:
    """Return an upper bound of the dual function's size on the unit sphere, close to it.

    Parameters
    ----------
    problem : ReLUProblem
    lam : (n,) array
        Multipliers.
    known : (k, r) array, optional
        Directions at which it may be large.
    max_patterns : int

    Raises
    ------
    TooManyPatterns
    """
    # Of a sum over samples of products over inputs.
    weights = float(lam @ problem.sizes)
    lost = (sum(problem.X.shape) + 8) * _UNIT * weights
    if problem.X.shape[1] <= 3:
        v = arrangement_directions(problem, lam)
        return float(np.max(np.abs(dual_function(problem, lam, v)))) * (1 + _CLOSE) + lost
    n = n_patterns(problem, lam)
    if n > max_patterns:
        p = [len(side.helping) for side in sides(problem, lam)]
        raise TooManyPatterns(
            f"{p[0]} and {p[1]} support samples of the two labels have {n} gate patterns, more "
            f"than `max_patterns` = {max_patterns}: allow more of them, or take fewer samples"
        )
    begins = np.zeros((0, problem.X.shape[1])) if known is None else known
    found = best_directions(problem, lam, begins)
    floor = max(direction.dual for direction in found) * (1 + _CLOSE)
    largest = floor
    for side in sides(problem, lam):
        ends = [d.v for d in found if d.sign == side.sign]
        largest = max(largest, _largest_of(side, largest, np.array(ends)))
    return largest + lost


def _largest_of(side: Side, floor: float, ends: Floats) -> float:
    """Upper bound over all patterns of one sign; `floor` where none is above it."""
    p = len(side.helping)
    if p == 0 or not len(ends):
        return floor
    shares = _candidates(side, ends)
    n_low = min(p, _LOW)
    low = _patterns(n_low)
    weights = side.slope + (1 - side.slope) * low
    low_sums = weights @ side.helping[:n_low]
    largest = floor
    low_squares = np.sum(low_sums**2, axis=1)[:, None]
    sums: list[Floats] = []
    firsts: list[Floats] = []
    n_waiting, n_blocks = 0, 2 ** (p - n_low)
    for block in range(n_blocks):
        high = (block >> np.arange(p - n_low)) & 1
        rest = (side.slope + (1 - side.slope) * high) @ side.helping[n_low:]
        rest = rest - side.slope * side.opposing.sum(axis=0)
        # ||low + rest - shares B||^2 of all patterns and all candidates.
        offset = rest - shares @ side.hinges
        squares = 2 * low_sums @ offset.T
        squares += low_squares
        squares += np.sum(offset**2, axis=1)
        best = np.argmin(squares, axis=1)
        above = squares[np.arange(len(best)), best] > floor**2 * (1 - 1e-9)
        sums.append(low_sums[above] + rest)
        firsts.append(shares[best[above]])
        n_waiting += int(above.sum())
        if n_waiting >= _CHUNK or block == n_blocks - 1:
            found = _refined(side, np.concatenate(sums), np.concatenate(firsts), floor)
            largest = max(largest, found)
            sums, firsts, n_waiting = [], [], 0
    return largest


def _candidates(side: Side, ends: Floats) -> Floats:
    """Shares (k, q) to try on every pattern: none, all, and the best of known directions."""
    opened = (ends @ side.helping.T > 0).astype(float)
    q = len(side.opposing)
    best = shortest(side.linear(opened), side.hinges, np.full((len(ends), q), 0.5), 200)
    return np.concatenate([np.zeros((1, q)), np.ones((1, q)), np.full((1, q), 0.5), best])


def _refined(side: Side, c: Floats, shares: Floats, floor: float) -> float:
    """Largest upper bound of patterns with helping sums `c` (k, r), or `floor`.

    It starts from shares (k, q).
    """
    B = side.hinges
    for n_steps in _ROUNDS:
        shares = shortest(c, B, shares, n_steps)
        left = c - shares @ B
        above = np.einsum("kr,kr->k", left, left) > floor**2
        c, shares = c[above], shares[above]
        if not len(c):
            return floor
    largest = floor
    for row in c:
        exact = lsq_linear(B.T, row, bounds=(0.0, 1.0), method="bvls") if len(B) else None
        gam = np.zeros(0) if exact is None else np.clip(exact.x, 0.0, 1.0)
        largest = max(largest, float(np.linalg.norm(row - gam @ B)))
    return largest if largest < math.inf else floor


def _patterns(p: int) -> Floats:
    return np.asarray((np.arange(2**p)[:, None] >> np.arange(p)) & 1, dtype=np.float64)
