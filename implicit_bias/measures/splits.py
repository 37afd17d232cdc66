"""Trained weights beside a limit in two parts: a direction, and a finite part in a span."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._support.doors import result
from ..data.arrays import Floats
from ..limits.exact.split import SplitLimit
from ..quantities.measured import Measured, quantity


@result()
class SplitComparison(Measured):
    """Trained weights, compared with their limit: the part out of the span, and that in it.

    Examples
    --------
    >>> found = ib.measures.SplitComparison(margin_ratio=0.98, zeta_cosine=0.99, limit_error=1e-3)
    >>> found.margin_ratio
    0.98
    """

    TITLE = "weights beside a limit in two parts"
    SCREEN = ("margin_ratio", "zeta_cosine", "limit_error")

    margin_ratio: float = quantity()
    zeta_cosine: float = quantity()
    limit_error: float = quantity(
        "finite part off its limit",
        column="limit_error",
        doc="Distance of the part in the span from the finite part, relative to that where it is "
        "above 1.",
    )


def split_parts(
    limit: SplitLimit,
    weights: Floats,
    basis: Floats,
    margins: Callable[[Floats], Floats],
) -> tuple[dict[str, Any], Floats, Floats]:
    """Measure weights beside a limit in two parts.

    Parameters
    ----------
    limit : SplitLimit
        In the l2 norm.
    weights : array of the shape of its coefficients
    basis : (r, size) array
        Orthonormal, of the span of what contradicts itself.
    margins : callable
        Returns the separable margins of coefficients.

    Returns
    -------
    dict, array, array
        The values of `SplitComparison`, and the parts of the weights in the span and out of it.
    """
    inside = (basis.T @ (basis @ weights.ravel())).reshape(weights.shape)
    out = weights - inside
    size, known = float(np.linalg.norm(out)), float(np.linalg.norm(limit.zeta))
    ratio = cosine = math.nan
    if size * known > 0:
        ratio = float(margins(out).min()) / size * limit.dual_objective
        cosine = float(np.vdot(out, limit.zeta)) / size / known
    off = float(np.linalg.norm(inside - limit.finite))
    values = {
        "margin_ratio": ratio,
        "zeta_cosine": cosine,
        "limit_error": off / max(float(np.linalg.norm(limit.finite)), 1.0),
    }
    return values, inside, out
