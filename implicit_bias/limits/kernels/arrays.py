"""Checked samples, gates, kernels and targets, and blocks of rows of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._support.solve import (
    require_columns,
    require_finite,
    require_memory,
    require_real,
    require_scale,
    to_numpy,
)
from ...data.arrays import Floats, as_csr

# Entries of a kernel computed at once: 5,000 rows of as many columns, 200 MB of float64.
_ENTRIES = 5000**2
# Of the largest entry: what rounding may take from a kernel's symmetry and from its least
# eigenvalue.
_ASYMMETRY = 1e-10


def matrix(name: str, values: Any, n_rows: int | None = None) -> Floats:
    """Return `values` as a finite float64 matrix, of `n_rows` rows unless that is None.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        If they are not finite or no such matrix.
    """
    require_real(name, values)
    array = np.asarray(to_numpy(values), dtype=np.float64)
    if array.ndim != 2 or len(array) == 0 or n_rows not in (None, len(array)):
        rows = "n" if n_rows is None else n_rows
        raise ValueError(
            f"`{name}` must have shape ({rows}, ...) with a row a sample, got {array.shape}"
        )
    require_finite(name, array)
    return array


def cross_matrix(k_cross: Any, n_train: int) -> Floats:
    """Return the kernel (m, n) of new samples with n training samples, checked as a matrix."""
    cross = matrix("k_cross", k_cross)
    require_columns("k_cross", cross, n_train, "one column a training sample, one row a new one")
    return cross


def require_pair(X2: Any, gates2: Any) -> None:
    """Refuse second inputs without their gates, and gates without inputs, by a `ValueError`."""
    if (X2 is None) != (gates2 is None):
        raise ValueError("`X2` and `gates2` go together: give both or neither")


def layers_of(name: str, gates: Any, widths: Sequence[int], n_rows: int | None) -> list[Floats]:
    """Split gates (n, sum of widths) into one array (n, width) a hidden layer.

    Raises
    ------
    TypeError, ValueError
        If they are not real and finite, or have other shapes.
    """
    array = matrix(name, gates, n_rows)
    sizes = [int(width) for width in widths]
    if any(size < 1 for size in sizes) or array.shape[1] != sum(sizes):
        raise ValueError(
            f"`{name}` must have {sum(sizes)} columns for widths {tuple(sizes)}, got "
            f"{array.shape[1]}: one gate a hidden unit, layer after layer"
        )
    return np.split(array, np.cumsum(sizes)[:-1], axis=1) if sizes else []


def row_blocks(n_rows: int, n_columns: int, copies: int = 1) -> list[slice]:
    """Return blocks of rows of a matrix, each small enough to be computed at once.

    `copies` is the number of blocks held at the same time. Call it before the matrix is allocated.

    Raises
    ------
    ValueError
        If the whole matrix does not fit into memory.
    """
    require_memory(
        n_rows * n_columns,
        f"a kernel of {n_rows} x {n_columns} samples",
        "compute it for fewer rows at a time, with the other samples as second argument",
    )
    step = max(1, _ENTRIES // (copies * max(1, n_columns)))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def check_kernel(K: Any, *, sparse: bool = False) -> Any:
    """Return `K` as a float64 matrix (n, n) that is symmetric up to rounding; CSR if `sparse`.

    Raises
    ------
    TypeError
        If it does not hold real numbers.
    ValueError
        If it is not finite, square or symmetric, or has a negative diagonal, or its largest entry
        is beyond 1e304 or, if not zero, below 1e-304.
    """
    csr = as_csr("K", K) if sparse else None
    kernel: Any = matrix("K", K) if csr is None else csr
    require_finite("K", kernel)
    require_scale("K", kernel, power=2)
    if kernel.shape[0] != kernel.shape[1]:
        raise ValueError(
            f"`K` must be square, one row and column a training sample, got {kernel.shape}: "
            "kernels with other samples are for the predictor"
        )
    size = float(abs(kernel).max())
    if abs(kernel - kernel.T).max() > _ASYMMETRY * size or np.any(kernel.diagonal() < 0):
        raise ValueError("`K` must be symmetric with a diagonal that is not negative: no kernel")
    return kernel


def targets(name: str, values: Any, n: int) -> Floats:
    """Return `values` as finite float64 numbers (n,).

    Raises
    ------
    TypeError, ValueError
        If they are not.
    """
    require_real(name, values)
    array = np.asarray(to_numpy(values), dtype=np.float64)
    if array.shape != (n,) or not np.all(np.isfinite(array)):
        raise ValueError(
            f"`{name}` must be finite, of shape ({n},), one number a training sample, got shape "
            f"{array.shape}"
        )
    return array
