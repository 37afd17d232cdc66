"""Checked samples, gates, kernels and targets, and blocks of rows of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._support.kinds import counts, floats
from ..._support.solve import (
    require_columns,
    require_finite,
    require_memory,
    require_real,
    require_scale,
    to_numpy,
)
from ...data.arrays import Floats, as_csr

_LAYERS = "+widths: one gate a hidden unit, layer after layer"
GATES, OTHER_GATES = floats(f"n {_LAYERS}"), floats(f"m {_LAYERS}")
OF_GATES = {"gates": GATES, "gates2": OTHER_GATES, "widths": counts()}
"""What doors check of gates, and of those of other samples."""
OF_SAMPLES = {"X": floats("n D"), "X2": floats("m D"), **OF_GATES}
"""The same, and of the inputs that have these gates."""

# Entries of a kernel computed at once: 5,000 rows of as many columns, 200 MB of float64.
_ENTRIES = 5000**2
# Of the largest entry: what rounding may take from a kernel's symmetry and from its least
# eigenvalue.
_ASYMMETRY = 1e-10


def matrix(name: str, values: Any) -> Floats:
    """Return `values` as a finite float64 matrix.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        If they are not finite or no such matrix.
    """
    require_real(name, values)
    array = np.asarray(to_numpy(values), dtype=np.float64)
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(
            f"`{name}` must have shape (n, ...) with a row a sample, got {array.shape}"
        )
    require_finite(name, array)
    return array


def cross_matrix(k_cross: Any, n_train: int) -> Floats:
    """Return the kernel (m, n) of new samples with n training samples, checked as a matrix."""
    cross = matrix("k_cross", k_cross)
    require_columns("k_cross", cross, n_train, "one column a training sample, one row a new one")
    return cross


def others(first: tuple[Floats, Floats], **second: Floats | None) -> tuple[Floats, Floats]:
    """Return two arrays of other samples, by their names; those of the first where both are None.

    Raises
    ------
    ValueError
        If one of them alone is None.
    """
    a, b = second.values()
    if (a is None) != (b is None):
        raise ValueError(
            f"{' and '.join(f'`{name}`' for name in second)} go together: give both or neither"
        )
    return first if a is None or b is None else (a, b)


def layers_of(gates: Floats, widths: Sequence[int]) -> list[Floats]:
    """Split gates (n, sum of widths) into one array (n, width) a hidden layer."""
    return np.split(gates, np.cumsum(widths)[:-1], axis=1) if len(widths) else []


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
