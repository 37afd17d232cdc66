"""Local limits modulo rotations of units, and their curvature apart from these symmetries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._solve import Status
from .limit import LocalLimit, same_limit
from .reduced import ZERO_MODE

__all__ = ["limits_reached", "lowest_curvature", "same_orbit"]

# Relative: multipliers and values of limits that are one, as `same_limit` has it of scores.
_SAME = 1e-6


def same_orbit(a: LocalLimit, b: LocalLimit) -> bool:
    """Return whether two local limits agree up to rotations of units that no active sample sees.

    Along those rotations value, active samples and multipliers stay the same; scores of other
    samples, whose gates distinguish these units, do not. `same_limit` compares all scores.

    Parameters
    ----------
    a, b : LocalLimit
        On the same data. A limit that FAILED is on no orbit.

    Raises
    ------
    ValueError
        If they have different numbers of samples.

    Examples
    --------
    >>> X, y, gates = np.array([[3.0, 4.0], [0.0, -2.0]]), np.array([1.0, -1.0]), np.eye(2)
    >>> network = ib.FReLU.from_zeta(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> limit = ib.local_limit(network, X, y, gates)
    >>> same_orbit(limit, limit)
    True
    """
    if same_limit(a, b):
        return True
    if Status.FAILED in (a.status, b.status) or not min(a.n_zero_modes, b.n_zero_modes):
        return False
    largest = float(a.multipliers.max())
    close = float(np.abs(a.multipliers - b.multipliers).max()) <= _SAME * largest
    return close and abs(a.value - b.value) <= _SAME * a.value


def lowest_curvature(limit: LocalLimit) -> float:
    """Return the lowest eigenvalue of the reduced Hessian apart from zero modes.

    NaN where curvature was not looked at, or there are zero modes alone.
    """
    beyond = limit.curvature[np.abs(limit.curvature) > ZERO_MODE]
    return float(beyond[0]) if len(beyond) else math.nan


def limits_reached(limits: Sequence[LocalLimit | None]) -> list[int | None]:
    """Number the local limits of several starts: equal numbers for limits of one orbit.

    Parameters
    ----------
    limits : sequence of LocalLimit or None
        On the same data.

    Returns
    -------
    list of int or None
        Numbers from 1 on, in the order in which limits are met; None for a start without one.
    """
    known: list[LocalLimit] = []
    found: list[int | None] = []
    for limit in limits:
        if limit is None or limit.status is Status.FAILED:
            found.append(None)
            continue
        same = [i for i, other in enumerate(known) if same_orbit(limit, other)]
        if not same:
            known.append(limit)
        found.append(same[0] + 1 if same else len(known))
    return found
