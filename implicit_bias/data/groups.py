"""Finite groups whose elements are the places of inputs: what a convolution over them needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
# Places of a group of which tables of pairs are made: some hundreds of megabytes.
MOST = 4096
WANTED = (
    "`group` must be None (one circle), sizes of circles such as (8, 8), or the (D, D) table of a "
    "group's products"
)


@dataclass(frozen=True, eq=False)
class Group:
    """A finite group of D elements.

    Attributes
    ----------
    sizes : tuple of int
        Of the circles whose product it is, elements in C order; empty for one known by its table.
    stored : int array
        What it is made of again: the sizes (k,), or the table (D, D) of products.
    quotients : (D, D) int array
        The element ``g^-1 h`` of each pair g, h: ``w[quotients]`` is the matrix of a kernel w.
    """

    sizes: tuple[int, ...]
    stored: Indices
    quotients: Indices

    @classmethod
    def of(cls, group: Any, n_inputs: int) -> Self:
        """Return the group of D inputs: one circle, a product of circles, or that of a table.

        Raises
        ------
        TypeError, ValueError
            If it is neither, has another number of elements, or the table is not that of a group.
        """
        if n_inputs > MOST:
            raise ValueError(f"`X` must have at most {MOST} columns for a group, got {n_inputs}")
        given = as_places((n_inputs,) if group is None else group)
        if given.ndim == 2:
            return cls((), given, _of_table(given, n_inputs))
        sizes = tuple(map(int, given))
        if min(sizes) < 1 or math.prod(sizes) != n_inputs:
            raise ValueError(
                f"`group` {sizes} must have as many elements as inputs have columns, {n_inputs}: "
                "a constant column has no place on a circle"
            )
        places = np.indices(sizes).reshape(len(sizes), -1)
        moved = places[:, None, :] - places[:, :, None]
        quotients = np.ravel_multi_index(list(moved), sizes, mode="wrap").astype(np.int64)
        return cls(sizes, given, quotients)

    @cached_property
    def frequencies(self) -> tuple[Indices, Indices]:
        """Frequencies (H,) of a product of circles, one of each conjugate pair, and their number.

        The second array (H,) is 1 for those that are their own conjugates, else 2.
        """
        places = np.indices(self.sizes).reshape(len(self.sizes), -1)
        conjugate = np.array(np.ravel_multi_index(list(-places), self.sizes, mode="wrap"))
        every = np.arange(len(conjugate))
        kept = np.flatnonzero(every <= conjugate)
        return kept, np.where(conjugate[kept] == kept, 1, 2)


def as_places(group: Any) -> Indices:
    """Return sizes (k,) or a table of products, of any group, as an array.

    Raises
    ------
    TypeError
        If it is no such array of whole numbers.
    """
    try:
        given: NDArray[Any] = np.asarray(group)
    except ValueError:  # rows of several lengths
        given = np.empty(0)
    if given.dtype.kind not in "iu" or given.ndim not in (1, 2) or given.size == 0:
        raise TypeError(f"{WANTED}; got {group!r}")
    return given.astype(np.int64)


def _of_table(table: Indices, n_inputs: int) -> Indices:
    """Return the quotients of the group with a table of products."""
    if table.shape != (n_inputs, n_inputs):
        raise ValueError(
            f"`group` must be a table ({n_inputs}, {n_inputs}), an element a column of the inputs, "
            f"got {table.shape}"
        )
    every = np.arange(n_inputs)
    rows, columns = np.sort(table, axis=1) == every, np.sort(table, axis=0) == every[:, None]
    latin = bool(rows.all() and columns.all())
    neutral = np.flatnonzero(np.all(table == every, axis=1) & latin)
    if not len(neutral) or not all(
        np.array_equal(table[table[g]], table[g][table]) for g in range(n_inputs)
    ):
        raise ValueError(
            "`group` must be the table of a group: entry (g, h) the number of the product g h, "
            "from 0 on, every element once in each row and column, with a neutral one, associative"
        )
    inverse = np.argmax(table == neutral[0], axis=1)
    return np.asarray(table[inverse])
