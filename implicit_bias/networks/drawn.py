"""Initial weights that limits depend on: drawn by NumPy, for limit and network alike."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def averaged_units(
    n_units: int, n_inputs: int, init_scale: float, random_state: int | np.random.Generator
) -> Floats:
    """Return Gaussian weights (K, D) of standard deviation ``init_scale / sqrt(D)``."""
    draw = np.random.default_rng(random_state).standard_normal((n_units, n_inputs))
    return np.asarray(draw * (init_scale / math.sqrt(n_inputs)))


def balanced_diagonal(n_features: int) -> tuple[Floats, Floats]:
    """Return weights u and v (m,) of a diagonal network that is 0, of ``u^2 - v^2 = 2``."""
    return np.full(n_features, 2**0.5), np.zeros(n_features)
