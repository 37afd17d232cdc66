"""Steps towards smaller norms: coefficients by the sizes of which a norm is sum or maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .norm import Floats, Norm


def has_proximal(norm: Norm) -> bool:
    """Return whether steps in a norm are known here: of l2 norms, and of all singular values.

    Parameters
    ----------
    norm : Norm

    Returns
    -------
    bool
    """
    if norm.inside == "l2" or norm.blocks == "whole":
        return True
    return (norm.inside, norm.over) in (("nuclear", "sum"), ("spectral", "max"))


def pulled_back(norm: Norm, B: Floats, lam: float) -> Floats:
    """Return ``argmin_U ||U - B||^2 / 2 + lam N(U)``."""
    sizes, rebuilt = _sizes(norm, B)
    if _is_sum(norm):
        return rebuilt(np.maximum(sizes - lam, 0.0))
    return rebuilt(sizes - _onto_sum(sizes, lam))


def pulled_in(norm: Norm, B: Floats, radius: float) -> Floats:
    """Return the point of the ball ``N(U) <= radius`` nearest to B."""
    sizes, rebuilt = _sizes(norm, B)
    return rebuilt(_onto_sum(sizes, radius) if _is_sum(norm) else np.minimum(sizes, radius))


def _is_sum(norm: Norm) -> bool:
    """Return whether the norm is the sum of its sizes, not the largest."""
    return norm.over == "sum" if norm.blocks != "whole" else norm.inside != "spectral"


def _sizes(norm: Norm, B: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the sizes of which the norm is sum or maximum, and B as a function of them."""
    rows = norm.blocks == "units" and B.ndim == 2
    if norm.inside != "l2" and not rows:  # singular values of all units, or of the one matrix
        left, values, right = np.linalg.svd(B, full_matrices=False)
        shape = values.shape

        def spectral(sizes: Floats) -> Floats:
            return np.asarray((left * sizes.reshape(shape)[..., None, :]) @ right)

        return values.ravel(), spectral
    if norm.blocks == "columns":
        sizes, back = _sizes(Norm("l2", norm.over, "rows"), B.T)
        return sizes, lambda changed: back(changed).T
    if norm.blocks == "whole":
        flat = B.reshape(1, -1)
    elif norm.blocks == "entries":
        flat = B.reshape(-1, 1)
    else:
        flat = B.reshape(len(B), -1)
    sizes = np.linalg.norm(flat, axis=1)
    safe = np.where(sizes > 0, sizes, 1.0)
    return sizes, lambda changed: np.asarray((flat * (changed / safe)[:, None]).reshape(B.shape))


def _onto_sum(sizes: Floats, radius: float) -> Floats:
    """Project numbers that are not negative onto those of sum at most `radius`."""
    if sizes.sum() <= radius:
        return sizes
    falling = np.sort(sizes)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, len(sizes) + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(sizes - excess[last], 0.0))
