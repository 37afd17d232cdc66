"""The few array operations that NumPy and torch spell differently.

Everything else in this package is written once, in the array-API dialect that both
libraries share through `array_api_compat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import array_api_compat
import numpy as np
from array_api_compat import numpy as numpy_namespace
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import csr_array, issparse

Array = Any  # inside the solvers: the functions of `array_namespace` have no types


class DenseArray(Protocol):
    """A NumPy array or a torch tensor, as answers hold them: of the kind of the data.

    Type checkers know what both kinds have; `numpy.asarray` and `torch.as_tensor` make one of
    either, with all that it has.

    Examples
    --------
    >>> def smallest(array: DenseArray) -> float:
    ...     return float(array.min())
    >>> smallest(np.array([2.0, 1.0]))
    1.0
    """

    # Without docstrings: the operators and methods of arrays, as everyone knows them.
    # fmt: off
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def device(self) -> Any: ...
    @property
    def T(self) -> DenseArray: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __array__(self) -> NDArray[Any]: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __neg__(self) -> DenseArray: ...
    def __abs__(self) -> DenseArray: ...
    def __invert__(self) -> DenseArray: ...
    def __add__(self, other: Any, /) -> DenseArray: ...
    def __radd__(self, other: Any, /) -> DenseArray: ...
    def __sub__(self, other: Any, /) -> DenseArray: ...
    def __rsub__(self, other: Any, /) -> DenseArray: ...
    def __mul__(self, other: Any, /) -> DenseArray: ...
    def __rmul__(self, other: Any, /) -> DenseArray: ...
    def __truediv__(self, other: Any, /) -> DenseArray: ...
    def __rtruediv__(self, other: Any, /) -> DenseArray: ...
    def __pow__(self, other: Any, /) -> DenseArray: ...
    def __matmul__(self, other: Any, /) -> DenseArray: ...
    def __rmatmul__(self, other: Any, /) -> DenseArray: ...
    def __and__(self, other: Any, /) -> DenseArray: ...
    def __or__(self, other: Any, /) -> DenseArray: ...
    def __lt__(self, other: Any, /) -> DenseArray: ...
    def __le__(self, other: Any, /) -> DenseArray: ...
    def __gt__(self, other: Any, /) -> DenseArray: ...
    def __ge__(self, other: Any, /) -> DenseArray: ...
    def sum(self) -> Any: ...
    def mean(self) -> Any: ...
    def min(self) -> Any: ...
    def max(self) -> Any: ...
    def all(self) -> Any: ...
    def any(self) -> Any: ...
    def item(self) -> Any: ...
    def tolist(self) -> Any: ...
    def round(self) -> DenseArray: ...
    def squeeze(self) -> DenseArray: ...
    def reshape(self, shape: tuple[int, ...], /) -> DenseArray: ...
    # fmt: on


class _Convertible(Protocol):
    """What becomes an array: those of NumPy and torch, data frames."""

    def __array__(self) -> NDArray[Any]: ...


Row = Sequence[float] | _Convertible
ArrayLike = Row | Sequence[Row] | Sequence[Sequence[Row]]
"""What functions take for an array: one of NumPy or torch, a data frame, nested lists of numbers"""


class SingularMatrix(ArithmeticError):
    """Raised where an elimination meets a pivot that is zero."""


class NotPositiveDefinite(ArithmeticError):
    """Raised where a Cholesky factorisation meets a pivot that is not positive."""


def array_namespace(*arrays: Array) -> Any:
    """Return the functions of the array API for arrays of one kind."""
    # NumPy's own are told apart at once: small programs ask dozens of times.
    for array in arrays:
        if type(array) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return numpy_namespace


def is_torch_array(array: object) -> bool:
    """Tell whether an object is a torch tensor."""
    return type(array) is not np.ndarray and array_api_compat.is_torch_array(array)


def float_of(value: Array) -> float:
    """Convert a zero-dimensional array of either kind to a Python float."""
    return float(value)


def as_float64(array: Array, *, like: Array | None = None) -> Array:
    """Convert an array to float64, keeping its kind and device or taking those of another.

    Parameters
    ----------
    array : NumPy array, torch tensor or nested sequence of numbers, of any shape
    like : NumPy array or torch tensor, optional
        Array whose kind and device the result has; by default `array` itself.

    Returns
    -------
    float64 array or tensor of the same shape
        Detached from any graph of derivatives; `array` itself where nothing has to change.

    Examples
    --------
    >>> as_float64([1, 2]).dtype
    dtype('float64')
    """
    if like is not None and is_torch_array(like):
        import torch

        return torch.as_tensor(array, dtype=torch.float64, device=like.device)
    if is_torch_array(array):
        import torch

        if like is None:
            return array.detach().to(torch.float64)
        array = to_numpy(array)
    return np.asarray(array, dtype=np.float64)


def to_numpy(array: Array) -> np.ndarray:
    """Convert an array of either kind to a NumPy array on the host.

    Parameters
    ----------
    array : NumPy array, torch tensor or nested sequence, of any shape

    Returns
    -------
    NumPy array of the same shape and dtype

    Examples
    --------
    >>> to_numpy([[1.0, 2.0]]).shape
    (1, 2)
    """
    if is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def is_sparse(array: Array) -> bool:
    """Tell whether an array is sparse: in this package a `scipy.sparse.csr_array` in float64."""
    return type(array) is not np.ndarray and bool(issparse(array))


def entries_of(array: Array) -> Array:
    """Return the entries of an array, of a sparse one those that are stored."""
    return array.data if is_sparse(array) else array


def largest_entry(array: Array) -> float:
    """Return the largest absolute value of an array; NaN where one is, 0 where it is empty."""
    stored = entries_of(array)
    if 0 in stored.shape:
        return 0.0
    xp = array_namespace(stored)
    high, low = float_of(xp.max(stored)), -float_of(xp.min(stored))
    return high if high >= low or high != high else low


def scale_rows(matrix: Array, factors: Array) -> Array:
    """Multiply the rows of a matrix, dense or sparse, by `factors` (n,)."""
    if not is_sparse(matrix):
        return matrix * factors[:, None]
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def gram_lower(factor: Array) -> Array:
    """Lower triangle, at least, of `factor @ factor.T` (syrk on NumPy)."""
    if is_torch_array(factor):
        return factor @ factor.T
    if factor.shape[1] == 0:
        return np.zeros((factor.shape[0],) * 2, dtype=factor.dtype, order="F")
    matrix, flipped = _fortran(factor)
    return _routine(blas, "syrk", factor)(1.0, matrix, trans=flipped, lower=1)


def gram_full(factor: Array) -> Array:
    """Both triangles of `factor @ factor.T`, dense."""
    if is_torch_array(factor):
        return factor @ factor.T
    if is_sparse(factor):
        return (factor @ factor.T).toarray(order="F")
    return mirror_lower(gram_lower(factor))


def mirror_lower(lower: np.ndarray) -> np.ndarray:
    """Complete a symmetric matrix, in place, from its lower triangle."""
    # Column by column block: the transposed copy of one stays in cache.
    for start in range(0, len(lower), BLOCK):
        stop = start + BLOCK
        lower[:start, start:stop] = lower[start:stop, :start].T
        block = lower[start:stop, start:stop]
        block += np.tril(block, -1).T
    return lower


BLOCK = 128


def cholesky_lower(matrix: Array) -> Array:
    """Lower Cholesky factor, a new array, of a symmetric matrix given by its lower triangle.

    Raises
    ------
    NotPositiveDefinite
    """
    if is_torch_array(matrix):
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        if int(info) != 0:
            raise NotPositiveDefinite(f"pivot {int(info)} of {matrix.shape[0]} is not positive")
        return factor
    factor, info = _routine(lapack, "potrf", matrix)(matrix, lower=1, clean=0)
    if info != 0:
        raise NotPositiveDefinite(f"pivot {info} of {matrix.shape[0]} is not positive")
    return factor


def cholesky_solve(factor: Array, right: Array) -> Array:
    """Solve `L L^T x = right` for a vector or a matrix of right-hand sides, in the dtype of L."""
    if is_torch_array(factor):
        import torch

        columns = right if right.ndim == 2 else right[:, None]
        solution = torch.cholesky_solve(columns, factor)
        return solution if right.ndim == 2 else solution[:, 0]
    if factor.dtype == np.float32:
        return _in_single(right, lambda part: lapack.spotrs(factor, part, lower=1)[0])
    solution, _ = lapack.dpotrs(factor, right, lower=1)
    return solution


def matmul(left: Array, right: Array) -> Array:
    """Product `left @ right` of vectors and matrices, by the BLAS that also factorises.

    NumPy and SciPy each bring a BLAS with threads of its own. Taking turns with both leaves the
    threads of one spinning while the other works, which on two cores doubles the time.
    """
    if is_torch_array(left) or is_sparse(left):
        return left @ right
    if is_sparse(right):
        return (right.T @ left.T).T
    rows = left if left.ndim == 2 else left[None, :]
    columns = right if right.ndim == 2 else right[:, None]
    # In Fortran order (right^T left^T) is what (left right) is in C order: nothing is copied.
    (b, flip_b), (a, flip_a) = _fortran(columns), _fortran(rows)
    product = _routine(blas, "gemm", left)(1.0, b, a, trans_a=1 - flip_b, trans_b=1 - flip_a).T
    if left.ndim == 1:
        product = product[0]
    return product if right.ndim == 2 else product[..., 0]


def _fortran(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """The matrix in Fortran order without a copy, and 1 if it had to be transposed for that."""
    return (matrix, 0) if matrix.flags.f_contiguous else (matrix.T, 1)


def lu_factor(matrix: Array) -> tuple[Array, Array]:
    """Factors and pivots of a small general matrix, for `lu_solve`.

    Raises
    ------
    SingularMatrix
    """
    if is_torch_array(matrix):
        import torch

        factors, pivots, info = torch.linalg.lu_factor_ex(matrix)
    else:
        factors, pivots, info = lapack.dgetrf(matrix)
    if int(info) != 0:
        raise SingularMatrix(f"pivot {int(info)} of {matrix.shape[0]} is zero")
    return factors, pivots


def lu_solve(factors: tuple[Array, Array], right: Array) -> Array:
    """Solve the system of `lu_factor` for one right-hand side (m,)."""
    if is_torch_array(right):
        import torch

        return torch.linalg.lu_solve(*factors, right[:, None])[:, 0]
    solution, _ = lapack.dgetrs(*factors, right)
    return solution


def group_sums(values: Array, group: Array, n_groups: int) -> Array:
    """Sum the last axis of `values` (..., J) over groups, none of them empty, to (..., G)."""
    if is_torch_array(values):
        import torch

        sums = torch.zeros((*values.shape[:-1], n_groups), dtype=values.dtype, device=values.device)
        return sums.index_add_(-1, group, values)
    one = len(group) == 1
    if one or (n_groups == len(group) and np.array_equal(group, np.arange(n_groups))):
        return values
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(n_groups))
    return np.add.reduceat(values[..., order], starts, axis=-1)


def symmetric_product(matrix: Array, right: Array) -> Array:
    """Product `S @ right` with a symmetric S given by the lower triangle of `matrix`."""
    if is_torch_array(matrix):
        # torch holds the full matrix: `gram_lower` computed both triangles there.
        return matrix @ right
    if matrix.dtype == np.float32:
        return _in_single(right, lambda part: blas.ssymv(1.0, matrix, part, lower=1))
    if right.ndim == 1:
        return blas.dsymv(1.0, matrix, right, lower=1)
    return blas.dsymm(1.0, matrix, right, lower=1)


def as_float32(array: np.ndarray) -> np.ndarray:
    """Round to single precision, entries beyond +-1e18, whose squares overflow, to that."""
    return np.asarray(np.clip(array, -LARGEST, LARGEST), dtype=np.float32)


LARGEST = 1e18


def _in_single(right: np.ndarray, operate: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a linear map in single precision to `right` in float64, scaled to size one for it."""
    size = float(np.abs(right).max()) or 1.0
    return np.asarray(operate((right / size).astype(np.float32)), dtype=np.float64) * size


def _routine(library: Any, name: str, array: np.ndarray) -> Any:
    """The routine of BLAS or LAPACK for the precision of `array`."""
    return getattr(library, ("s" if array.dtype == np.float32 else "d") + name)
