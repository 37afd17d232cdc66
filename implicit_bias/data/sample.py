"""One part of the data with its gates, for limits and networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door
from .._support.shown import in_brief, same
from .._support.solve import ArrayLike, array_namespace, is_torch_array, to_numpy

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeVar as DefaultedTypeVar

    # NumPy's arrays, of which samples in runs are, or tensors.
    KindT = DefaultedTypeVar("KindT", covariant=True, default=NDArray[Any])
else:  # Python 3.13 is the first whose type variables have defaults
    KindT = TypeVar("KindT", covariant=True)


class _Parts(NamedTuple, Generic[KindT]):
    X: KindT
    y: KindT
    gates: KindT | None


class Sample(_Parts[KindT]):
    """Inputs (n, D) or (n, ...), labels, gates (n, ...) of one part of the data.

    Labels are (n,) in {-1, +1}, or rows (n, K) of K classes with a one at each sample's own.

    A tuple of these three with equal numbers of rows, checked when it is made: all of NumPy, or
    all tensors where `X` is one, on its device.

    Parameters
    ----------
    X, y : arrays, tensors or nested lists
    gates : array, tensor or nested list, optional
        None for networks and limits without gates.

    Raises
    ------
    TypeError, ValueError
        If one is no array of finite real numbers, `y` is not one label or class a row of `X`, or
        `gates` not one row a row of `X`.

    Examples
    --------
    >>> X, y, gates = ib.Sample([[1.0, 2.0], [3.0, 4.0]], [1, -1], gates=[[0], [1]])
    >>> ib.Sample(X, y).gates is None
    True
    """

    __slots__ = ()

    # Mypy takes no overloads of `__new__` for the kinds of a generic tuple; it reads them right.
    @overload
    def __new__(  # type: ignore[misc]
        cls, X: torch.Tensor, y: ArrayLike, gates: ArrayLike | None = None
    ) -> Sample[torch.Tensor]: ...
    @overload
    def __new__(  # type: ignore[misc]
        cls, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None
    ) -> Sample[NDArray[Any]]: ...
    @door()
    def __new__(cls, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None) -> Sample[Any]:
        """Make the parts of one kind."""
        inputs, own = _as(X, X), None if gates is None else _as(X, gates)
        if inputs.ndim == 0:
            raise ValueError("`X` must have a row a sample, got a single number")
        n, labels = len(inputs), to_numpy(y)
        of_two = labels.shape == (n,) and np.isin(labels, (-1, 1)).all()
        if not (of_two or _are_rows(labels, n)):
            raise ValueError(
                f"`y` must have shape ({n},) and values in {{-1, +1}}, got shape {labels.shape}: "
                "one label a row of X; map two classes with 2 * (y == a) - 1, and give K classes "
                "as the rows np.eye(K)[labels]"
            )
        if own is not None and (own.ndim == 0 or len(own) != n):
            got = f"shape {tuple(own.shape)}"
            raise ValueError(f"`gates` must have {n} rows, one a row of X, got {got}")
        return tuple.__new__(cls, (inputs, _as(X, y), own))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sample) and same(tuple(self), tuple(other))

    def __ne__(self, other: object) -> bool:  # tuples have one of their own
        return not self == other

    def __hash__(self) -> int:
        return hash((Sample, len(self.X)))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = (f"{name}={in_brief(one)}" for name, one in self._asdict().items())
        return f"Sample({', '.join(parts)})"

    @property
    def required_gates(self) -> KindT:
        """The gates.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.gates is None:
            raise ValueError("`gates` are None, and needed here: give them with the sample")
        return self.gates


def _as(X: Any, values: Any) -> Any:
    """Return values as an array of the kind of X; themselves where they are one."""
    if not is_torch_array(X):
        return to_numpy(values)
    return array_namespace(X).asarray(values, device=X.device)


def _are_rows(labels: Any, n: int) -> bool:
    """Return whether labels are rows (n, K) of K >= 2 classes, with a single one each."""
    shaped = labels.ndim == 2 and len(labels) == n and labels.shape[1] >= 2
    return bool(shaped and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all())
