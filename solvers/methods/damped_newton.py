"""Newton's method on a smooth convex function, damped as long as values tell steps apart."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..numerics.factor import Factor

Floats = NDArray[np.float64]

# Of the fall that the slope promises, what a step must keep; halvings of a step.
ARMIJO, HALVINGS = 1e-4, 60
# Of the way to the edge of the domain.
KEPT = 0.95
# Newton decrements, relative to the value, from which its rounding hides that it falls, and which
# a step takes to rounding.
LEVEL, ENOUGH = 1e-10, 1e-16


def damped_newton(
    value: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    *,
    room: Callable[[Floats, Floats], float] = lambda at, step: math.inf,
    enough: float = 0.0,
    max_steps: int = 200,
) -> tuple[Floats, int]:
    """Minimise a convex function from `start`, inside of its domain.

    Parameters
    ----------
    value : callable
        ``value(w)``; infinite or NaN outside of the domain.
    derivatives : callable
        ``derivatives(w)``: gradient (m,) and Hessian (m, m).
    start : (m,) array
    room : callable, optional
        ``room(w, dw)``, the longest step along dw inside of the domain.
    enough : float
        The decrement ``g' H^-1 g``, twice what is left to gain, at which to end; by default
        rounding alone ends.
    max_steps : int

    Returns
    -------
    ((m,) array, int)
        The point, and the number of steps.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", algorithm 9.5.
    """
    w, before, last = start, value(start), math.inf
    for steps in range(1, max_steps + 1):
        try:
            gradient, hessian = derivatives(w)
            dw = -Factor(hessian).solve(gradient)
        except (ArithmeticError, np.linalg.LinAlgError):  # rounding leaves no direction
            return w, steps
        decrement = -float(gradient @ dw)
        if decrement <= enough:
            return w, steps
        size = min(1.0, KEPT * room(w, dw))
        if size == 1.0 and decrement <= LEVEL * abs(before):
            # Values no longer tell steps apart: whole ones go on as long as they shrink.
            if decrement > last / 2:
                return w, steps
            after = value(w + dw)
            if not after < math.inf:  # rounding alone leaves the domain
                return w, steps
            w, last, before = w + dw, decrement, after
            if decrement <= ENOUGH * abs(before):
                return w, steps
            continue
        for _ in range(HALVINGS):
            after = value(w + size * dw)
            if after <= before - ARMIJO * size * decrement:
                break
            size /= 2
        else:
            return w, steps
        w, before = w + size * dw, after
    return w, max_steps
