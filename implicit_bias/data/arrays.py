"""Checks of arrays of real numbers that users give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from .._support.solve import (
    ArrayLike,
    require_finite,
    require_inputs,
    require_labels,
    require_real,
    require_scale,
    require_shape,
    to_numpy,
)

Floats = NDArray[np.float64]
SparseLike = ArrayLike
"""What functions take for inputs that may be sparse too: matrices of SciPy"""
SparseArray = Any
"""The same within the library"""
ONE_LABEL = "one label per row of X"


def as_csr(name: str, value: Any) -> csr_array | None:
    """Return a sparse matrix of SciPy as CSR in float64; None for what is not sparse.

    Parameters
    ----------
    name : str
        What messages call it.
    value : object

    Returns
    -------
    csr_array or None
        Without duplicates; it shares the entries where they can stay as they are.

    Raises
    ------
    TypeError, ValueError
        If it has not two axes, or does not hold real numbers.
    """
    if not issparse(value):
        return None
    if np.dtype(value.dtype).kind not in "biuf":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {value.dtype}: convert it")
    if value.ndim != 2:
        raise ValueError(f"`{name}` must have shape (n, D), got {value.shape}")
    matrix = csr_array(value, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


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


def is_planar(X: ArrayLike) -> bool:
    """Return whether inputs (n, D) lie in the plane: D = 2, or 3 with a constant last column."""
    X = np.asarray(X)
    return X.ndim == 2 and (
        X.shape[1] == 2 or (X.shape[1] == 3 and len(X) > 0 and bool(np.all(X[:, 2] == X[0, 2])))
    )
