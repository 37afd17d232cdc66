"""A data set of several classes in its training and its validation part, checked, read-only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._shown import Shown
from .._solve import require_shape
from .arrays import Floats, require_real
from .dataset import Dataset, check_same_inputs, digest, frozen
from .splitting import parts_text

__all__ = ["ClassDataset"]

_ARRAYS = ("X_train", "labels_train", "X_val", "labels_val")


@dataclass(frozen=True, eq=False, repr=False)
class ClassDataset(Shown):
    """Inputs and class labels, split into a training and a validation part.

    Arrays are read-only, copied unless they are so already.

    Parameters
    ----------
    name : str
        Short name for tables.
    X_train, X_val : array of float64, shapes (n, D) and (m, D)
        Inputs, one row a sample; m may be 0. A bias is a constant column.
    labels_train, labels_val : integer arrays, shapes (n,) and (m,)
        Class of every sample, any integers; kept as int64.
    source : str
        For people: which images, at which scaling.
    names : mapping of int to str
        What classes are called, where that is not their number.

    Raises
    ------
    TypeError
        If inputs are not numeric or labels not integers.
    ValueError
        If shapes disagree or an input is not finite.
    """

    name: str
    X_train: Floats = field(repr=False)
    labels_train: NDArray[np.int64] = field(repr=False)
    X_val: Floats = field(repr=False)
    labels_val: NDArray[np.int64] = field(repr=False)
    source: str
    names: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("train", "val"):
            X = frozen(f"X_{part}", getattr(self, f"X_{part}"), 2)
            labels = _integers(f"labels_{part}", getattr(self, f"labels_{part}"), len(X))
            object.__setattr__(self, f"X_{part}", X)
            object.__setattr__(self, f"labels_{part}", labels)
        check_same_inputs(self.X_train, self.X_val)

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes of both parts together, ascending."""
        both = np.union1d(self.labels_train, self.labels_val)
        return tuple(int(k) for k in both)

    @property
    def description(self) -> str:
        """One line for people: images, scaling, classes, sizes."""
        named = {k: f"{k} ({self.names[k]})" if k in self.names else str(k) for k in self.classes}
        return self._described("classes " + ", ".join(named.values()))

    def name_of(self, label: int) -> str:
        """What a class is called, as a user names it."""
        return self.names.get(label, str(label))

    def digest(self) -> str:
        """SHA-256 of inputs and class labels, which names the same data on every machine."""
        return digest(*(getattr(self, key) for key in _ARRAYS))

    def two_classes(self, positive: Collection[int], text: str) -> Dataset:
        """The same inputs with the label +1 for the classes in `positive`, -1 for all others.

        Parameters
        ----------
        positive : collection of int
        text : str
            Which classes these are, for the description.

        Raises
        ------
        ValueError
            If the training part then lacks a label.
        """
        y_train, y_val = (
            np.where(np.isin(labels, list(positive)), 1.0, -1.0)
            for labels in (self.labels_train, self.labels_val)
        )
        return Dataset(self.name, self.X_train, y_train, self.X_val, y_val, self._described(text))

    def _described(self, classes: str) -> str:
        return f"{self.source}; {classes}; {parts_text(len(self.X_train), len(self.X_val))}"


def _integers(name: str, values: ArrayLike, n: int) -> NDArray[np.int64]:
    require_real(name, values, "integers")
    labels = np.array(values)
    if labels.size and not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(
            f"`{name}` must hold integers, got dtype {labels.dtype}: number the classes"
        )
    require_shape(name, labels, (n,), "one class per row of its inputs")
    labels = labels.astype(np.int64)
    labels.setflags(write=False)
    return labels
