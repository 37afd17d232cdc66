"""Data of a fit: inputs, targets, gate columns, and the map from coefficients to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._solve import (
    Norm,
    require_finite,
    require_inputs,
    require_labels,
    require_real,
    require_scale,
    require_shape,
    to_numpy,
)
from ..data.arrays import ONE_LABEL, Floats, checked_weights
from ..limits.predictors import ContextColumns, count_units
from .losses import FIT_LOSSES, MeanLoss

__all__ = ["FitProblem"]


@dataclass(frozen=True, eq=False)
class FitProblem:
    """Checked data of a fit; scores are linear in coefficients `zeta` of the shape `shape`.

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

    @classmethod
    def checked(
        cls,
        X: Any,
        y: Any,
        gates: Any,
        loss: str,
        n_contexts: int | None,
        sample_weight: Any = None,
    ) -> Self:
        """Check the arguments of `solve_fit`.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or the targets are not those of the loss.
        """
        require_real("X", X)
        inputs = np.array(to_numpy(X), dtype=np.float64)
        require_inputs(inputs)
        require_finite("X", inputs)
        require_scale("X", inputs)
        targets = _targets(y, len(inputs), loss)
        n, D = inputs.shape
        shape: tuple[int, ...]
        if gates is None:
            if n_contexts is not None:
                raise ValueError("`n_contexts` are those of `gates`, which are missing")
            columns, group, shape = np.ones((n, 1)), np.zeros(1, dtype=np.int64), (D,)
        elif n_contexts is not None:
            H = count_units("gates", np.asarray(to_numpy(gates)), n)
            rule = ContextColumns(H, n_contexts)
            columns = np.asarray(rule(rule.check(np.asarray(to_numpy(gates)), inputs)))
            group, shape = np.repeat(np.arange(H), n_contexts), (H, n_contexts, D)
        else:
            require_real("gates", gates)
            columns = np.array(to_numpy(gates), dtype=np.float64)
            H = count_units("gates", columns, n)
            require_finite("gates", columns)
            group, shape = np.arange(H), (H, D)
        if targets.ndim == 2:
            shape = (*shape[: len(shape) > 1], targets.shape[1], (n_contexts or 1) * D)
        mean_loss = FIT_LOSSES[loss](_shares(sample_weight, n))
        return cls(inputs, targets, columns, group, shape, mean_loss, n_contexts)

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

    def matrix(self) -> Floats:
        """Return the map from zeta to one score a sample, (n, J D)."""
        n = len(self.X)
        return np.asarray((self.columns[:, :, None] * self.X[:, None, :]).reshape(n, -1))

    def unit_norms(self, zeta: Floats) -> Floats:
        """Return the l2 norm of the coefficients of every unit, (H,)."""
        return np.asarray(np.linalg.norm(zeta.reshape(self.n_units, -1), axis=1))


def _shares(sample_weight: Any, n: int) -> Floats:
    """Return what every sample counts in the mean."""
    if sample_weight is None:
        return np.full(n, 1 / n)
    weights = checked_weights(sample_weight, n)
    if not np.all(weights > 0):
        raise ValueError("`sample_weight` must be positive: leave samples of weight 0 out")
    weights = weights / weights.max()
    return np.asarray(weights / weights.sum())


def _targets(y: Any, n: int, loss: str) -> Floats:
    require_real("y", y)
    targets = np.array(to_numpy(y), dtype=np.float64)
    if loss == "softmax":
        if targets.ndim != 2 or len(targets) != n or targets.shape[1] < 2:
            raise ValueError(
                f"`y` must have shape ({n}, K) of K >= 2 classes for the loss 'softmax', got "
                f"{targets.shape}: one row of shares a sample, 1 in the column of its class"
            )
        require_finite("y", targets)
        if np.any(targets < 0) or np.any(np.abs(targets.sum(axis=1) - 1) > 1e-8):
            raise ValueError("`y` must have rows of shares in [0, 1] with sum 1")
        return np.asarray(targets / targets.sum(axis=1, keepdims=True))
    if loss == "squared" and targets.ndim == 2:
        require_shape("y", targets, (n, targets.shape[1]), ONE_LABEL)
    else:
        require_shape("y", targets, (n,), ONE_LABEL)
    require_finite("y", targets)
    if loss == "logistic":
        require_labels(targets)
    else:
        require_scale("y", targets)
    return targets
