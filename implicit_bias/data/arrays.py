"""Checks of arrays of real numbers that users give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._solve import (
    require_finite,
    require_inputs,
    require_labels,
    require_scale,
    require_shape,
    to_numpy,
)

__all__ = [
    "ONE_LABEL",
    "Floats",
    "checked_data",
    "checked_weights",
    "refuse_disguised",
    "refuse_masked",
    "require_real",
]

Floats = NDArray[np.float64]
ONE_LABEL = "one label per row of X"


def require_real(name: str, value: Any, wanted: str = "real numbers") -> None:
    """Check that `value` is an array of real numbers, or one that NumPy converts to such.

    Raises
    ------
    TypeError
        If it is complex, masked, sparse, ragged, or holds strings or other objects.
    """
    refuse_disguised(name, value)
    if hasattr(value, "toarray"):
        raise TypeError(f"`{name}` must be dense, got a sparse array: give `{name}.toarray()`")
    dtype = value.dtype if hasattr(value, "detach") else _dtype(name, value)
    if "complex" in str(dtype):
        raise TypeError(f"`{name}` must hold {wanted}, got dtype {dtype}: take real features of it")
    if isinstance(dtype, np.dtype) and dtype.kind not in "biuf":
        got = "None" if value is None else f"dtype {dtype}"
        raise TypeError(f"`{name}` must hold {wanted}, got {got}: convert it to float64")


def refuse_disguised(name: str, value: Any) -> None:
    """Raise TypeError for masked arrays, and strings, which NumPy reads as numbers silently."""
    refuse_masked(name, value)
    if isinstance(value, list | tuple | np.ndarray) and _dtype(name, value).kind in "US":
        raise TypeError(f"`{name}` must hold numbers, got strings: convert it to float64")


def refuse_masked(name: str, value: Any) -> None:
    """Raise TypeError for masked arrays, whose mask NumPy drops silently."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(
            f"`{name}` is a masked array, whose mask would be lost: drop the samples that it marks "
            "or fill them in"
        )


def checked_data(X: Any, y: Any) -> tuple[Floats, Floats]:
    """Return `X` (n, D) and `y` (n,) as checked float64 NumPy arrays.

    Raises
    ------
    TypeError, ValueError
        If one is no array of real numbers, shapes disagree, an input is not finite, the largest
        is beyond 1e152 or, if not zero, below 1e-152, or a label is neither -1 nor +1.
    """
    require_real("X", X)
    require_real("y", y)
    X, y = np.asarray(to_numpy(X), dtype=float), np.asarray(to_numpy(y), dtype=float)
    require_inputs(X)
    require_shape("y", y, (len(X),), ONE_LABEL)
    require_finite("X", X)
    require_scale("X", X)
    require_labels(y)
    return X, y


def checked_weights(sample_weight: Any, n_samples: int) -> Floats:
    """Return weights (n,) of samples as float64; None stands for ones.

    Raises
    ------
    TypeError, ValueError
        If they are no numbers, one a sample, or one is negative or not finite, or all are zero.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    require_real("sample_weight", sample_weight)
    weights = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    weights = np.full(n_samples, weights) if weights.ndim == 0 else weights
    require_shape("sample_weight", weights, (n_samples,), "one weight a row")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("`sample_weight` must be finite, and no weight negative: drop such rows")
    if not np.any(weights):
        raise ValueError("`sample_weight` leaves no sample: every weight is zero")
    return weights


def _dtype(name: str, value: Any) -> np.dtype[Any]:
    try:
        return np.asarray(value).dtype
    except ValueError as error:  # a ragged list
        raise TypeError(
            f"`{name}` must be an array of numbers, got {type(value).__name__} ({error}): "
            "encode the samples as float64"
        ) from error
