"""Types that many modules speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats"]

Floats = NDArray[np.float64]
