"""The structured design: samples, gate columns and groups, never multiplied out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.arrays import (
    Array,
    array_namespace,
    float_of,
    group_sums,
    largest_entry,
    matmul,
)

# Largest entries from this to its inverse are squared as they are.
MIDDLE = 1e-10


@dataclass(frozen=True, eq=False)
class GatedDesign:
    """Linear map from the coefficients to the scores of a gated linear network.

        scores[n] = sum_j Z[n, j] <X[n], V[j]>,      V (J, D)

    Column j belongs to group `group[j]`; the norm of a program is taken over the groups. For
    a gated linear network a column is one context of one unit and a group is a unit; for a
    frozen-gate ReLU network every unit is one column and one group. The n x (J D) matrix of
    the map is never formed.

    Parameters
    ----------
    X : (n, D) float64 array
        Inputs, one row a sample; beside NumPy gates also a `scipy.sparse.csr_array`.
    Z : (n, J) float64 array
        Gates: one-hot contexts or gate columns, any real numbers.
    group : (J,) integer array
        Group of each column, 0 .. n_groups - 1, every group non-empty.

    Examples
    --------
    Two contexts of one unit, the second sample in the second of them:

    >>> import numpy as np
    >>> X, Z = np.array([[1.0, 2.0], [3.0, 4.0]]), np.eye(2)
    >>> design = GatedDesign(X, Z, np.zeros(2, dtype=np.int64))
    >>> design.scores(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [1.0, 4.0]
    """

    X: Array
    Z: Array
    group: Array

    @property
    def n_samples(self) -> int:
        """Number n of samples."""
        return int(self.X.shape[0])

    @cached_property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.group.max()) + 1

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of the inputs; NaN where one is, 0 where there are none."""
        return largest_entry(self.X)

    @cached_property
    def sample_sizes(self) -> Array:
        """Upper bounds (n,) of the norms of one sample's blocks, `||X[n]|| max_g ||Z[n, g]||`."""
        xp = array_namespace(self.Z)
        if self.Z.shape[1] == 1:
            gates = xp.abs(self.Z[:, 0])
        else:
            squares = group_sums(self.Z * self.Z, self.group, self.n_groups)
            gates = xp.sqrt(xp.max(squares, axis=1))
        # Relative to the largest entry, so that no square over- or underflows.
        size = self.largest or 1.0
        if isinstance(self.X, np.ndarray) and MIDDLE < size < 1 / MIDDLE:
            return np.asarray(gates * np.sqrt(np.einsum("nd,nd->n", self.X, self.X)))
        X = self.X / size
        return size * gates * xp.sqrt((X * X).sum(axis=1))

    def scores(self, V: Array) -> Array:
        """Scores (n,) of the coefficients `V` (J, D)."""
        xp = array_namespace(self.Z)
        terms = matmul(self.X, V.T) * self.Z
        return terms[:, 0] if terms.shape[1] == 1 else xp.sum(terms, axis=1)

    def adjoint(self, weights: Array) -> Array:
        """Transposed map: coefficients (J, D) `V[j] = sum_n weights[n] Z[n, j] X[n]`."""
        return matmul((self.Z * weights[:, None]).T, self.X)

    def group_norms(self, V: Array) -> Array:
        """Frobenius norms (n_groups,) of the groups of `V` (J, D)."""
        xp = array_namespace(self.Z)
        # Relative to the largest entry, so that no square over- or underflows.
        size = float_of(xp.max(xp.abs(V))) or 1.0
        V = V / size
        return size * xp.sqrt(group_sums(xp.sum(V * V, axis=1), self.group, self.n_groups))

    def subset(self, rows: Array) -> GatedDesign:
        """Restrict the design to the samples `rows` (indices); the groups stay as they are."""
        some = GatedDesign(X=self.X[rows], Z=self.Z[rows], group=self.group)
        if "sample_sizes" in vars(self):
            vars(some)["sample_sizes"] = self.sample_sizes[rows]
        return some

    def columns_of(self, groups: Array) -> Array:
        """Indices of the columns of `groups` (indices in rising order), themselves in order."""
        xp = array_namespace(self.Z)
        wanted = xp.zeros((self.n_groups,), dtype=xp.bool, device=self.group.device)
        wanted[groups] = True
        return xp.nonzero(wanted[self.group])[0]

    def of_groups(self, groups: Array) -> GatedDesign:
        """Restrict the design to `groups` (indices in rising order), numbered from 0 again."""
        columns = self.columns_of(groups)
        xp = array_namespace(self.Z)
        group = xp.searchsorted(groups, self.group[columns])
        return GatedDesign(X=self.X, Z=self.Z[:, columns], group=group)
