"""Data of a fit: inputs, targets, gate columns, and the map from coefficients to scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..norms.norm import Norm
from .images import Floats
from .mean_losses import FlatLoss, MeanLoss


@dataclass(frozen=True, eq=False)
class FitProgram:
    """Data of a fit; scores are linear in coefficients `zeta` of the shape `shape`.

    Attributes
    ----------
    X : (n, D) array
    y : (n,) or (n, K) array
    columns : (n, J) array
        Gates; one-hot contexts; ones where there are no gates.
    group : (J,) array
        Unit of each column.
    shape : tuple of int
        Of zeta: (D,), (H, D), (H, C, D); with K scores (K, D), (H, K, D), and of contexts
        (H, K, C D), a matrix a unit.
    loss : MeanLoss
    n_contexts : int or None
        Contexts C of each unit; None of gates.
    """

    X: Floats
    y: Floats
    columns: Floats
    group: NDArray[np.int64]
    shape: tuple[int, ...]
    loss: MeanLoss
    n_contexts: int | None = None

    @property
    def own_shape(self) -> tuple[int, ...]:
        """Shape of zeta as networks have it: of K scores in contexts (H, K, C, D)."""
        if not self.several or self.n_contexts is None:
            return self.shape
        return (*self.shape[:-1], self.n_contexts, self.X.shape[1])

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.group[-1]) + 1

    @property
    def several(self) -> bool:
        """True if every sample has several scores."""
        return self.y.ndim == 2

    def in_rows(self, norm: Norm) -> bool:
        """Return whether a norm is a sum of l2 norms over units, or over all, or over entries."""
        if norm == Norm.of("l2") or norm == Norm.of("l1"):
            return True
        return norm in (Norm.of("units"), Norm.of("rows")) and len(self.shape) in (2, 3)

    def scores(self, zeta: Floats) -> Floats:
        """Return the scores (n,) or (n, K)."""
        if not self.several:
            blocks = zeta.reshape(len(self.group), -1)
            return np.asarray(np.sum(self.columns * (self.X @ blocks.T), axis=1))
        units = zeta.reshape(self.n_units, self.y.shape[1], self.n_contexts or 1, -1)
        several = np.swapaxes(units, 1, 2).reshape(len(self.group), self.y.shape[1], -1)
        pairs = zip(self.columns.T, several, strict=True)
        return np.asarray(sum(z[:, None] * (self.X @ block.T) for z, block in pairs))

    def adjoint(self, r: Floats) -> Floats:
        """Return ``V(r) = sum_n r_n (gradient of the scores of n)``, in the shape of zeta."""
        if not self.several:
            return np.asarray((self.columns * r[:, None]).T @ self.X).reshape(self.shape)
        rows = np.stack([(z[:, None] * r).T @ self.X for z in self.columns.T])
        units = rows.reshape(self.n_units, self.n_contexts or 1, *rows.shape[1:])
        return np.swapaxes(units, 1, 2).reshape(self.shape)

    def multipliers(self, zeta: Floats) -> Floats:
        """Return the multipliers of the loss, minus its slopes, at the scores of coefficients."""
        return self.loss.multipliers(self.scores(zeta), self.y)

    @property
    def loss_at_zero(self) -> float:
        """Loss of coefficients 0."""
        return self.loss.value(np.zeros_like(self.y), self.y)

    def flat(self) -> FlatLoss:
        """Return the loss of flat coefficients."""
        if not self.several:
            return FlatLoss(self.matrix(), self.y, self.loss)
        each = np.eye(int(np.prod(self.shape))).reshape(-1, *self.shape)
        A = np.stack([self.scores(zeta).reshape(-1) for zeta in each], axis=1)
        return FlatLoss(A, self.y, self.loss)

    def matrix(self) -> Floats:
        """Return the map from zeta to one score a sample, (n, J D)."""
        n = len(self.X)
        return np.asarray((self.columns[:, :, None] * self.X[:, None, :]).reshape(n, -1))

    def unit_rows(self) -> tuple[Floats, Floats]:
        """Return `matrix()` with rows of norm 1, and the norms that they had; 1 of rows of 0.

        Interpolants are those of these rows too, however far apart the sizes of samples are.
        """
        A = self.matrix()
        sizes = np.linalg.norm(A, axis=1)
        sizes[sizes == 0] = 1.0
        return A / sizes[:, None], sizes

    def shaped(self, W: Floats) -> Floats:
        """Return coefficients (..., J D), with K scores (..., J D, K), in the shape of zeta."""
        if not self.several:
            return W.reshape(*W.shape[:-1], *self.shape)
        blocks = W.reshape(*W.shape[:-2], self.n_units, self.n_contexts or 1, -1, W.shape[-1])
        return np.moveaxis(blocks, -1, -3).reshape(*W.shape[:-2], *self.shape)

    def unit_norms(self, zeta: Floats) -> Floats:
        """Return the l2 norm of the coefficients of every unit, (H,)."""
        return np.asarray(np.linalg.norm(zeta.reshape(self.n_units, -1), axis=1))
