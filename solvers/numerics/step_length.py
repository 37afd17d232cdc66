"""How far a step may go before it leaves what it must stay in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .arrays import Array, array_namespace, float_of

Floats = NDArray[np.float64]


def longest_step(values: Array, steps: Array) -> float:
    """Return the longest step that leaves positive values at least 0.

    Parameters
    ----------
    values, steps : (n,) arrays
        Of NumPy or torch.

    Returns
    -------
    float
        In [0, inf]; 0 where an entry of the step is no number.
    """
    down = ~(steps >= 0)
    xp = array_namespace(steps)
    longest = float_of(xp.min(-values[down] / steps[down])) if bool(xp.any(down)) else math.inf
    return 0.0 if math.isnan(longest) else longest


def longest_in_cone(matrices: Floats, steps: Floats) -> float:
    """Return the longest step in [0, inf] that leaves positive definite matrices semidefinite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix (..., n, n) is not positive definite.
    """
    L = np.linalg.cholesky(matrices)
    half = np.linalg.solve(L, steps)
    scaled = np.linalg.solve(L, np.swapaxes(half, -1, -2))
    least = float(np.linalg.eigvalsh(symmetric(scaled)).min())
    return math.inf if least >= 0 else -1 / least


def symmetric(matrices: Floats) -> Floats:
    """Return the symmetric parts of matrices (..., n, n)."""
    return np.asarray((matrices + np.swapaxes(matrices, -1, -2)) / 2)
