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
    """Inputs (n, D) or (n, ...), labels, gates (n, ...) of one part of the data.

    Labels are (n,) in {-1, +1}, or rows (n, K) of K classes with a one at each sample's own.

    A tuple of these three with equal numbers of rows, checked when it is made.

    Parameters
    ----------
    X, y : arrays or tensors
    gates : array or tensor, optional
        None for networks and limits without gates.

    Raises
    ------
    ValueError
        If `y` is not one label or class a row of `X`, or `gates` not one row a row of `X`.

    Examples
    --------
    >>> X, y, gates = ib.Sample([[1.0, 2.0], [3.0, 4.0]], [1, -1], gates=[[0], [1]])
    >>> ib.Sample(X, y).gates is None
    True
    """

    __slots__ = ()

    def __new__(cls, X: Any, y: Any, gates: Any = None) -> Self:
        n, labels = len(X), np.asarray(to_numpy(y))
        of_two = labels.shape == (n,) and np.isin(labels, (-1, 1)).all()
        if not (of_two or _are_rows(labels, n)):
            raise ValueError(
                f"`y` must have shape ({n},) and values in {{-1, +1}}, got shape {labels.shape}: "
                "one label a row of X; map two classes with 2 * (y == a) - 1, and give K classes "
                "as the rows np.eye(K)[labels]"
            )
        if gates is not None and len(gates) != n:
            raise ValueError(f"`gates` must have {n} rows, one a row of X, got {len(gates)}")
        return super().__new__(cls, X, y, gates)


def _are_rows(labels: Any, n: int) -> bool:
    """Return whether labels are rows (n, K) of K >= 2 classes, with a single one each."""
    shaped = labels.ndim == 2 and len(labels) == n and labels.shape[1] >= 2
    return bool(shaped and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all())
