"""Limits of training with weight decay, which predict where nothing separates the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ..data.arrays import Floats
from ..limits.finite.fit import solve_fit
from ..limits.finite.limit import FitLimit


def penalised(
    X: Any,
    y: Floats,
    gates: NDArray[np.int64] | None,
    weights: Floats,
    *,
    norm: str,
    n_contexts: int | None,
    weight_decay: float,
    tol: float,
) -> FitLimit:
    """Solve for the limit of training with weight decay.

    Parameters
    ----------
    X : (n, D) array or CSR array
        Sparse without gates only.
    y : (n,) labels in {-1, +1}, or (n, K) shares of classes
    gates : (n, H) array or None
    weights : (n,) array
        Positive.
    norm : str
        As `solve_fit` takes it.
    n_contexts : int or None
    weight_decay, tol : float
    """
    asked: dict[str, Any] = {
        "loss": "logistic" if y.ndim == 1 else "softmax",
        "penalty": weight_decay,
        "norm": norm,
        "n_contexts": n_contexts,
        "sample_weight": weights,
        "tol": tol,
    }
    if not issparse(X):
        return solve_fit(X, y, gates, **asked)
    n, D = X.shape
    if n >= D:
        return solve_fit(X.toarray(), y, gates, **asked)
    # A ridge lives in the row space, of which products of inputs tell all.
    values, vectors = np.linalg.eigh((X @ X.T).toarray())
    inner = vectors * np.sqrt(np.maximum(values, 0.0))
    found = solve_fit(inner, y, gates, **asked)
    zeta: Floats = np.asarray((X.T @ found.dual).T) / weight_decay
    return replace(found, zeta=zeta)
