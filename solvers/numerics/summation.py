"""Sums of products with proved error bounds, plain and compensated.

References
----------
N. J. Higham, Accuracy and Stability of Numerical Algorithms (2002), section 3.1.
T. Ogita, S. M. Rump and S. Oishi, Accurate sum and dot product (2005), algorithms 3.1 to 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..programs.design import GatedDesign
from .arrays import Array, array_namespace, entries_of, float_of, is_sparse

UNIT = 2.0**-53
# A product below the smallest normal number is off by 2^-1074 at most; 2^50 of them by this.
TINY = 2.0**-1022
# Veltkamp's constant cuts 53 bits in half. The error of a product is a float if the product is
# zero or at least this large, with room for the factors of three.
SPLIT = 2.0**27 + 1
REPRESENTABLE = 2.0**-900


def rounding(n_operations: int) -> float:
    """Upper bound of the error of a sum of products over the sum of their absolute values.

    `n_operations` is the largest number of roundings between a factor and the result, in
    whatever order is summed (Higham's gamma_n). The last factor covers the rounding of the
    absolute sum that the bound is multiplied with, for up to 1e9 operations.
    """
    return n_operations * UNIT * (1 + 1e-6)


def power_of_two(size: float) -> float:
    """Power of two within a factor of two of `size`: dividing by it rounds nothing."""
    return 2.0 ** min(max(math.frexp(size)[1], -1000), 1000)


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Exact numbers within `radius` of `value`, two arrays of one shape."""

    value: Array
    radius: Array


@dataclass(frozen=True, eq=False)
class _Parts:
    """Unevaluated sums `high + low`; `size` is the sum of the absolute values behind `low`."""

    high: Array
    low: Array
    size: Array

    def put(self, index: tuple[object, ...], part: _Parts) -> None:
        """Write `part` at an index."""
        self.high[index], self.low[index], self.size[index] = part.high, part.low, part.size


def enclose_scores(design: GatedDesign, V: Array) -> Enclosure:
    """Enclose the scores (n,) of `V` (J, D), no entry above one, as if in twice the precision."""
    X, Z = design.X, design.Z
    xp = array_namespace(Z)
    columns = _Parts(xp.zeros_like(Z.T), xp.zeros_like(Z.T), xp.zeros_like(Z.T))
    for j in range(int(Z.shape[1])):
        rows = xp.nonzero(Z[:, j])[0]
        if is_sparse(X):
            part = X[rows]
            gates = np.repeat(Z[rows, j], np.diff(part.indptr))
            columns.put((j, rows), _sparse_sums(part, gates, V[j][part.indices]))
            continue
        terms = _products(X[rows].T, Z[rows, j][None, :], V[j][:, None])
        columns.put((j, rows), _sum(terms))
    return _rounded(_sum(columns), X.shape[1] * Z.shape[1], (X, Z, V))


def enclose_adjoint(design: GatedDesign, weights: Array) -> Enclosure:
    """Enclose the blocks (J, D) of `weights` (n,), none above one, as if in twice the precision."""
    X, Z = design.X, design.Z
    xp = array_namespace(Z)
    empty = xp.zeros((Z.shape[1], X.shape[1]), dtype=Z.dtype, device=Z.device)
    blocks = _Parts(empty, xp.zeros_like(empty), xp.zeros_like(empty))
    for j in range(int(Z.shape[1])):
        rows = xp.nonzero((Z[:, j] != 0) & (weights != 0))[0]
        if is_sparse(X):
            part = X[rows].T.tocsr()  # inputs by samples
            samples = rows[part.indices]
            blocks.put((j,), _sparse_sums(part, Z[samples, j], weights[samples]))
            continue
        terms = _products(X[rows], Z[rows, j][:, None], weights[rows][:, None])
        blocks.put((j,), _sum(terms))
    return _rounded(blocks, X.shape[0], (X, Z, weights))


def _products(a: Array, b: Array, c: Array) -> _Parts:
    """Elementwise products `a b c`."""
    xp = array_namespace(a)
    product, lost = _two_product(a, b)
    high, low = _two_product(product, c)
    rest = lost * c
    return _Parts(high, low + rest, xp.abs(low) + xp.abs(rest))


def _sparse_sums(matrix: Array, b: Array, c: Array) -> _Parts:
    """Sums (n,) over the rows of a CSR matrix of its entries times `b` and `c`, one an entry.

    Rows of similar numbers of entries are summed together, filled up with zeros.
    """
    counts, starts = np.diff(matrix.indptr), matrix.indptr[:-1]
    zeros = np.zeros(len(counts))
    total, lower, width = _Parts(zeros, zeros.copy(), zeros.copy()), 0, 1
    while lower < counts.max(initial=0):
        rows = np.flatnonzero((counts > lower) & (counts <= width))
        if len(rows):
            steps = np.arange(width)[:, None]
            there = steps < counts[rows]
            place = np.where(there, starts[rows] + steps, 0)
            factors = (np.where(there, entries[place], 0.0) for entries in (matrix.data, b, c))
            total.put((rows,), _sum(_products(*factors)))
        lower, width = width, 2 * width
    return total


def _sum(parts: _Parts) -> _Parts:
    """Sum over the first axis: pairs are added, and the error of each addition goes to `low`."""
    xp = array_namespace(parts.high)
    high, low, size = parts.high, xp.sum(parts.low, axis=0), xp.sum(parts.size, axis=0)
    if high.shape[0] == 0:
        return _Parts(xp.zeros_like(low), low, size)
    while high.shape[0] > 1:
        half = (high.shape[0] + 1) // 2
        odd = xp.zeros_like(high[: 2 * half - high.shape[0]])
        high, lost = _two_sum(high[:half], xp.concat([high[half:], odd], axis=0))
        low, size = low + xp.sum(lost, axis=0), size + xp.sum(xp.abs(lost), axis=0)
    return _Parts(high[0], low, size)


def _rounded(parts: _Parts, n_terms: int, factors: tuple[Array, ...]) -> Enclosure:
    """Round `high + low`. Only `low`, of two parts a product and one a sum, has been rounded."""
    xp = array_namespace(parts.high)
    value = parts.high + parts.low
    radius = rounding(3 * n_terms + 3) * parts.size + rounding(1) * xp.abs(value)
    if math.prod(min(_smallest(factor), 1.0) for factor in factors) < REPRESENTABLE:
        radius = radius + TINY
    return Enclosure(value, radius)


def _smallest(array: Array) -> float:
    """Smallest absolute value that is not zero; infinite if all are."""
    array = entries_of(array)
    xp = array_namespace(array)
    if math.prod(array.shape) == 0:
        return math.inf
    return float_of(xp.min(xp.where(array == 0, math.inf, xp.abs(array))))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's sum: `a + b` rounded, and its error exactly."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Dekker's and Veltkamp's product: `a b` rounded, and its error exactly."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, a_low * b_low - (
        ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
    )


def _halves(a: Array) -> tuple[Array, Array]:
    high = SPLIT * a
    high = high - (high - a)
    return high, a - high
