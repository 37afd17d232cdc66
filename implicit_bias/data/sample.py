"""One part of the data with its gates, for limits and networks."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from .._solve import to_numpy

__all__ = ["Sample"]


class _Parts(NamedTuple):
    X: Any
    y: Any
    gates: Any


class Sample(_Parts):
    """Inputs (n, D) or (n, ...), labels (n,) in {-1, +1}, gates (n, ...) of one part of the data.

    A tuple of these three with equal numbers of rows, checked when it is made.

    Parameters
    ----------
    X, y : arrays or tensors
    gates : array or tensor, optional
        None for networks and limits without gates.

    Raises
    ------
    ValueError
        If `y` is not one label a row of `X`, or `gates` not one row a row of `X`.

    Examples
    --------
    >>> X, y, gates = ib.Sample([[1.0, 2.0], [3.0, 4.0]], [1, -1], gates=[[0], [1]])
    >>> ib.Sample(X, y).gates is None
    True
    """

    __slots__ = ()

    def __new__(cls, X: Any, y: Any, gates: Any = None) -> Self:
        n, labels = len(X), np.asarray(to_numpy(y))
        if labels.shape != (n,) or not np.isin(labels, (-1, 1)).all():
            raise ValueError(
                f"`y` must have shape ({n},) and values in {{-1, +1}}, got shape {labels.shape}: "
                "one label a row of X; map two classes with 2 * (y == a) - 1"
            )
        if gates is not None and len(gates) != n:
            raise ValueError(f"`gates` must have {n} rows, one a row of X, got {len(gates)}")
        return super().__new__(cls, X, y, gates)
