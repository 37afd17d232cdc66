"""Local limits modulo rotations of units, and their curvature apart from these symmetries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..._support.solve import Status
from .limit import LocalLimit, same_limit
from .reduced import ZERO_MODE


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
        same = [i for i, other in enumerate(known) if same_limit(limit, other)]
        if not same:
            known.append(limit)
        found.append(same[0] + 1 if same else len(known))
    return found
