"""Lower bounds of the value of every two-layer ReLU network, of any width."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ..._support.doors import door
from ..._support.kinds import count, floats
from ..._support.solve import require_fraction, require_shape
from ...data.arrays import Floats
from .arrangement import arrangement_directions
from .branching import Largest, largest_of_side
from .directions import Direction, best_directions, dual_function, sides
from .problem import ReLUProblem

# Half a minute to a minute of one core.
MAX_PATTERNS = 2**20
# Of the largest value that is known: patterns above it by less need no more.
_CLOSE = 1e-10
_UNIT = 2.0**-53


class TooManyPatterns(ValueError):
    """Raised where a bound would have to look at more gate patterns than are allowed."""


@door(multipliers=floats(), max_patterns=count())
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
    are not exact prove the bound too. Branch and bound fixes the gates of one sample after the
    other; where the bound over all gates that are left is below the largest value known, they need
    no more. Inputs of rank 3 or less need no patterns: the kinks cut the sphere into O(p^2) faces.
    Computed in floating point.

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
        Gate patterns, of some or all helping samples, to look at.

    Returns
    -------
    float
        Infinite where all samples with a multiplier are zero: no network separates these.

    Raises
    ------
    TypeError
        If an array is not of real numbers.
    ValueError
        If shapes disagree, a number is out of range, or the bound takes more than `max_patterns`.

    Examples
    --------
    Two samples of opposite labels need a unit each:

    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> round(ib.limits.relu_lower_bound(np.array([1.0, 0.5]), X, y), 9)
    1.5
    """
    require_fraction("slope", slope)
    problem = ReLUProblem.checked(X, y, slope)
    lam = np.asarray(multipliers)
    require_shape("multipliers", lam, problem.y.shape, "one multiplier a sample")
    if not (np.all(lam >= 0) and np.any(lam > 0)):
        raise ValueError("`multipliers` must be finite, non-negative and not all zero")
    lam = lam / lam.max()
    total = float(lam.sum()) * (1 - (len(lam) + 2) * _UNIT)
    largest = largest_dual(problem, lam, max_patterns=max_patterns).bound
    return total / largest if largest > 0 else math.inf


def largest_dual(
    problem: ReLUProblem,
    lam: Floats,
    known: Floats | None = None,
    *,
    max_patterns: int = MAX_PATTERNS,
) -> Largest:
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
        duals = dual_function(problem, lam, v)
        best = int(np.argmax(np.abs(duals)))
        size = float(abs(duals[best]))
        direction = Direction(v[best], float(np.sign(duals[best])), size)
        return Largest(size * (1 + _CLOSE) + lost, direction, 0)
    begins = np.zeros((0, problem.X.shape[1])) if known is None else known
    best_known = best_directions(problem, lam, begins)[0]
    largest = Largest(best_known.dual * (1 + _CLOSE), best_known, 0)
    p = [len(side.helping) for side in sides(problem, lam)]
    for side in sides(problem, lam):
        found = largest_of_side(side, largest, max_patterns)
        if found is None:
            raise TooManyPatterns(
                f"the bound over the gates of {p[0]} and {p[1]} support samples of the two labels "
                f"takes more than `max_patterns` = {max_patterns} gate patterns: allow more of "
                "them, or take fewer samples"
            )
        largest = found
    return largest._replace(bound=largest.bound + lost)
