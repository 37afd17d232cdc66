"""Max-margin programs whose margins are linear less hinges, and bounds that their points prove."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..certificates.html import FloatRecord
from ..certificates.max_margin import gap_between
from ..numerics.checks import require_shape
from ..numerics.summation import TINY, rounding

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HingeProgram:
    r"""Minimise a sum of norms under margins that are linear less nonnegative hinges.

    .. math:: \min_u \sum_h \|u_h\| \quad\text{s.t.}\quad
              m_n(u) = \sum_h a_{nh} \langle u_h, x_n \rangle
                       - \sum_h b_{nh} \max(\langle u_h, x_n \rangle, 0) \ge 1

    The margins are concave, so the program is convex. Without hinges it is the group lasso.

    Parameters
    ----------
    X : (n, D) array
        Inputs.
    linear : (n, H) array
        The coefficients a, of any sign.
    hinges : (n, H) array
        The coefficients b >= 0.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is not finite, or a hinge is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import HingeProgram
    >>> one = np.ones((1, 1))
    >>> HingeProgram(np.array([[3.0, 4.0]]), one, 0 * one).margins(np.array([[1.0, 0.0]])).tolist()
    [3.0]
    """

    X: Floats
    linear: Floats
    hinges: Floats

    def __post_init__(self) -> None:
        for name in ("X", "linear", "hinges"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim != 2 or array.size == 0:
                raise ValueError(f"`{name}` must have two axes and entries, got {array.shape}")
            if not np.all(np.isfinite(array)):
                raise ValueError(f"`{name}` has entries that are NaN or infinite: remove them")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        shape = (len(self.X), self.linear.shape[1])
        require_shape("linear", self.linear, shape, "one row of coefficients a sample")
        require_shape("hinges", self.hinges, shape, "one hinge a coefficient")
        if np.any(self.hinges < 0):
            raise ValueError("`hinges` must not be negative: margins would not be concave")

    @property
    def n_groups(self) -> int:
        """Number H of groups."""
        return int(self.linear.shape[1])

    def margins(self, u: Floats) -> Floats:
        """Return the margins (n,) of groups `u` (H, D)."""
        return margins_of(self, self.X @ u.T)

    def blocks(self, lam: Floats, shares: Floats) -> Floats:
        """Return ``v_h = sum_n lam_n (a_nh - shares_nh b_nh) x_n``, (H, D)."""
        slopes = self.linear - shares * self.hinges
        return np.asarray((lam[:, None] * slopes).T @ self.X)


def margins_of(program: HingeProgram, products: Floats) -> Floats:
    """Return the margins (n,) of groups whose products (n, H) with the inputs are known."""
    terms = program.linear * products - program.hinges * np.maximum(products, 0.0)
    return np.asarray(terms.sum(axis=1))


@dataclass(frozen=True)
class HingeCertificate(FloatRecord):
    """Proved bounds of the optimum of a `HingeProgram`.

    Attributes
    ----------
    objective : float
        An upper bound: sum of norms over the smallest margin, rounding errors of both at their
        worst; infinite if the margin is not positive for certain.
    dual_objective : float
        A lower bound: ``sum(lam) / max_h ||v_h||``, rounding errors at their worst.
    gap : float
        `objective / dual_objective - 1`, rounded up; infinite if either bound is missing.
    smallest_margin : float
        Smallest margin of the point as it was given.
    """

    objective: float
    dual_objective: float
    gap: float
    smallest_margin: float


def certify_hinge(
    program: HingeProgram, u: Floats, lam: Floats, shares: Floats
) -> HingeCertificate:
    r"""Bound the optimum by any groups, and by any multipliers with any shares in [0, 1].

    .. math:: \frac{\sum_n \lambda_n}{\max_h \|v_h\|} \le \text{optimum} \le
              \frac{\sum_h \|u_h\|}{\min_n m_n(u)}

    Left: a hinge is at least any share of its argument, so that at margins of at least 1
    ``sum lam <= sum_n lam_n m_n(u) <= sum_h <v_h, u_h>``.

    Parameters
    ----------
    program : HingeProgram
    u : (H, D) array
        At any scale.
    lam : (n,) array
        At any scale; negative entries count as 0.
    shares : (n, H) array
        Slope that stands for each hinge; clipped to [0, 1].

    Returns
    -------
    HingeCertificate

    Raises
    ------
    ValueError
        If a point has the wrong shape.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, section 5.1 (weak duality).

    Examples
    --------
    <u, (3, 4)> >= 1 at the norm 1/5:

    >>> import numpy as np
    >>> from solvers import HingeProgram, certify_hinge
    >>> one = np.ones((1, 1))
    >>> program = HingeProgram(np.array([[3.0, 4.0]]), one, 0 * one)
    >>> proved = certify_hinge(program, np.array([[3.0, 4.0]]), np.ones(1), 0 * one)
    >>> round(proved.objective, 9), round(proved.dual_objective, 9), proved.gap < 1e-13
    (0.2, 0.2, True)
    """
    n_samples, n_inputs = program.X.shape
    n_groups = program.n_groups
    require_shape("u", u, (n_groups, n_inputs), "one row a group")
    require_shape("lam", lam, (n_samples,), "one multiplier a sample")
    require_shape("shares", shares, (n_samples, n_groups), "one share a hinge")
    objective, smallest = _above(program, u)
    dual_objective = _below(program, lam, shares)
    gap = gap_between(objective, dual_objective)
    return HingeCertificate(objective, dual_objective, gap, smallest)


def _above(program: HingeProgram, u: Floats) -> tuple[float, float]:
    if not np.all(np.isfinite(u)):
        return math.inf, math.nan
    # The bound knows no scale; squares of entries far from 1 would overflow.
    unit = math.ldexp(1.0, math.frexp(float(np.max(np.abs(u))))[1] - 1)
    u = u / unit
    norms = np.linalg.norm(u, axis=1)
    n_operations = program.X.shape[1] + program.n_groups + 6
    margins = program.margins(u)
    # |a z - b max(z, 0)| <= (|a| + b) ||x|| ||u||.
    sizes = (np.abs(program.linear) + program.hinges) @ norms
    lost = rounding(n_operations) * sizes * np.linalg.norm(program.X, axis=1) + TINY
    floor, smallest = float(np.min(margins - lost)), float(np.min(margins))
    total = float(norms.sum()) * (1 + rounding(n_operations))
    return (total / floor * (1 + rounding(2)) if floor > 0 else math.inf), smallest * unit


def _below(program: HingeProgram, lam: Floats, shares: Floats) -> float:
    if not (np.all(np.isfinite(lam)) and np.all(np.isfinite(shares))):
        return 0.0
    lam, shares = np.maximum(lam, 0.0), np.clip(shares, 0.0, 1.0)
    if not lam.any():
        return 0.0
    n_operations = sum(program.X.shape) + 8
    norms = np.linalg.norm(program.blocks(lam, shares), axis=1)
    weights = lam * np.linalg.norm(program.X, axis=1)
    lost = rounding(n_operations) * (weights @ (np.abs(program.linear) + program.hinges)) + TINY
    largest = float(np.max(norms * (1 + rounding(n_operations)) + lost))
    return float(lam.sum()) * (1 - rounding(len(lam) + 2)) / largest * (1 - rounding(2))
