"""Standard form of max-margin programs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..numerics.arrays import Array, array_namespace, float_of
from ..numerics.checks import require_finite, require_gated_inputs, require_labels, require_shape
from .design import GatedDesign


@dataclass(frozen=True, eq=False)
class MaxMarginProgram:
    """Hard-margin program that minimises a sum of the norms of groups.

        minimise    sum_g || (V[j])_{j in g} ||_F
        subject to  y[n] sum_j Z[n, j] <X[n], V[j]> >= 1       for every n

    Its dual, with `v_g(lam)` the block g of `sum_n lam[n] y[n] Z[n, .] X[n]`:

        maximise  sum_n lam[n]   subject to  lam >= 0,  ||v_g(lam)||_F <= 1 for every g.

    Parameters
    ----------
    design : GatedDesign
        Inputs (n, D), gate columns (n, J), groups (J,).
    y : (n,) float64 array
        Labels in {-1, +1}.

    Raises
    ------
    TypeError
        If an array is not float64, or `group` does not hold integers.
    ValueError
        If shapes disagree, an entry is not finite or a label is neither -1 nor +1.

    References
    ----------
    F. R. Bach, G. R. G. Lanckriet, M. I. Jordan, "Multiple kernel learning, conic duality, and the
    SMO algorithm", 2004, for the dual of a sum of norms.

    Examples
    --------
    <w, (2, 0)> >= 1 and <w, (0, 1)> <= -1:

    >>> import numpy as np
    >>> design = GatedDesign(np.diag([2.0, 1.0]), np.ones((2, 1)), np.zeros(1, dtype=np.int64))
    >>> program = MaxMarginProgram(design, np.array([1.0, -1.0]))
    >>> program.margins(np.array([[0.5, -1.0]])).tolist()
    [1.0, 1.0]
    """

    design: GatedDesign
    y: Array

    def __post_init__(self) -> None:
        X, Z, group, y = self.design.X, self.design.Z, self.design.group, self.y
        xp = array_namespace(Z)
        for name, array in (("X", X), ("Z", Z), ("y", y)):
            if array.dtype != xp.float64:
                raise TypeError(f"`{name}` must be float64, got {array.dtype}: convert it first")
        if not xp.isdtype(group.dtype, "integral"):
            raise TypeError(f"`group` must hold integers, got {group.dtype}")
        require_gated_inputs(X, Z)
        require_shape("group", group, (int(Z.shape[1]),), "one group per column of Z")
        require_shape("y", y, (self.n_samples,), "one label per row of X")
        if not math.isfinite(self.design.largest):
            require_finite("X", X)
        require_finite("Z", Z)
        require_labels(y)
        if not _numbered(group):
            raise ValueError("`group` must number the groups 0 .. G-1 with no number left out")

    @property
    def n_samples(self) -> int:
        """Number n of samples."""
        return self.design.n_samples

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.design.n_groups

    def margins(self, V: Array) -> Array:
        """Margins (n,) `y[n] f(x[n])` of the coefficients `V` (J, D)."""
        return self.y * self.design.scores(V)

    def dual_blocks(self, lam: Array) -> Array:
        """Coefficients (J, D) `v(lam) = sum_n lam[n] y[n] Z[n, .] X[n]` of multipliers (n,)."""
        return self.design.adjoint(lam * self.y)

    def data_scale(self, lam: Array) -> float:
        """Upper bound `sum_n lam[n] ||X[n]|| max_g ||Z[n, g]||` of the norms of `v(lam)`."""
        return float_of(lam @ self.design.sample_sizes)

    def subset(self, rows: Array) -> MaxMarginProgram:
        """Restrict the program to the samples `rows` (indices)."""
        some = object.__new__(MaxMarginProgram)  # rows of what has been checked need no checks
        vars(some).update(design=self.design.subset(rows), y=self.y[rows])
        return some

    def first(self, n_samples: int) -> MaxMarginProgram:
        """Restrict the program to its first `n_samples` samples."""
        xp = array_namespace(self.y)
        return self.subset(xp.arange(n_samples, device=self.y.device))

    def of_groups(self, groups: Array) -> MaxMarginProgram:
        """Restrict the program to `groups` (indices in rising order), all others being zero."""
        return MaxMarginProgram(design=self.design.of_groups(groups), y=self.y)


def _numbered(group: Array) -> bool:
    """True if the groups are numbered from 0 on and none is left out."""
    xp = array_namespace(group)
    n_groups = int(xp.max(group)) + 1
    if int(xp.min(group)) < 0 or n_groups > group.shape[0]:
        return False
    present = xp.zeros((n_groups,), dtype=xp.bool, device=group.device)
    present[group] = True
    return bool(xp.all(present))
