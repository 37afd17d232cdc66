"""Arguments of a fit as its data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._support.solve import (
    FIT_LOSSES,
    FitProgram,
    require_finite,
    require_inputs,
    require_labels,
    require_real,
    require_scale,
    require_shape,
    to_numpy,
)
from ...data.arrays import ONE_LABEL, Floats, checked_weights
from ..predictors import checked_columns


def fit_problem(
    X: Any, y: Any, gates: Any, loss: str, n_contexts: int | None, sample_weight: Any = None
) -> FitProgram:
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
    else:
        columns, H = checked_columns("gates", gates, inputs, n_contexts)
        require_finite("gates", columns)
        group = np.repeat(np.arange(H), n_contexts or 1)
        shape = (H, D) if n_contexts is None else (H, n_contexts, D)
    if targets.ndim == 2:
        shape = (*shape[: len(shape) > 1], targets.shape[1], (n_contexts or 1) * D)
    mean_loss = FIT_LOSSES[loss](_shares(sample_weight, n))
    return FitProgram(inputs, targets, columns, group, shape, mean_loss, n_contexts)


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
