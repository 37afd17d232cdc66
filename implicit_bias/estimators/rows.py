"""Rows of the data that a program needs: those of positive weight, repeated ones once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.class_weight import (  # type: ignore[import-untyped,unused-ignore]
    compute_sample_weight,
)

from ..data.arrays import Floats, checked_weights

ClassWeight = Mapping[Any, float] | str | None


def weigh(
    y: NDArray[Any], sample_weight: ArrayLike | None, class_weight: ClassWeight
) -> tuple[Floats, Floats]:
    """Return weights (n,) of samples, and these times the weights of their classes.

    Raises
    ------
    TypeError, ValueError
        If they are no weights, or leave no sample.
    """
    weights = checked_weights(sample_weight, len(y))
    if class_weight is None:
        return weights, weights
    if isinstance(class_weight, str) and class_weight == "balanced":
        _, labels = np.unique(y, return_inverse=True)
        totals = np.bincount(labels, weights)
        # A class without weight has no samples, whatever its factor.
        return weights, weights / np.where(totals > 0, totals, 1.0)[labels]
    factors = compute_sample_weight(class_weight, y)
    if not np.all((factors >= 0) & np.isfinite(factors)) or not np.any(factors * weights):
        raise ValueError(
            "`class_weight` must be finite, no weight negative, and not all of them zero, got "
            f"{class_weight!r}: 0 leaves a class out"
        )
    return weights, weights * factors


def merge_rows(
    inputs: Floats, labels: NDArray[np.int64], gates: NDArray[np.int64] | None, *, weighted: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows (m,) that the program needs, and for every row (n,) the one it equals.

    Where rows repeat, or are `weighted`, they come in an order that depends on them alone, so that
    a weight of 2 is a row twice to the bit. Otherwise they are all rows, as they stand.
    """
    if issparse(inputs):
        return _merge_sparse(inputs, labels, weighted=weighted)
    parts = [labels[:, None], inputs, *([] if gates is None else [gates])]
    table = np.hstack(parts, dtype=np.float64) + 0.0  # minus zero is zero
    if not weighted and len({hash(row.tobytes()) for row in table}) == len(table):
        every = np.arange(len(table))
        return every, every
    _, first, same = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, same.ravel()


def _merge_sparse(
    inputs: Any, labels: NDArray[np.int64], *, weighted: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`merge_rows` of CSR inputs without gates, of which no row is made dense."""
    inputs = inputs.copy()
    inputs.eliminate_zeros()
    ends = inputs.indptr
    keys = [
        (int(label), inputs.indices[a:b].tobytes(), inputs.data[a:b].tobytes())
        for label, a, b in zip(labels, ends[:-1], ends[1:], strict=True)
    ]
    known = {key: place for place, key in enumerate(sorted(set(keys)))}
    if not weighted and len(known) == len(keys):
        every = np.arange(len(keys))
        return every, every
    same = np.array([known[key] for key in keys])
    _, first = np.unique(same, return_index=True)
    return first, same
