"""Data set of several classes in a training and a validation part, checked and read-only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.doors import door, parameters
from .._support.kinds import sequence, series, signed
from .._support.shown import Shown
from .._support.solve import require_real, require_shape
from .arrays import Floats
from .dataset import Dataset, check_same_inputs, digest, frozen
from .splitting import parts_text

_ARRAYS = ("X_train", "labels_train", "X_val", "labels_val")


@parameters(X_train=series, X_val=series)
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
        Class of every sample, any integers; stored as int64.
    source : str
        Description of the samples and their scaling.
    names : mapping of int to str
        Names of classes, where these are not their numbers.

    Raises
    ------
    TypeError
        If inputs are not numeric or labels not integers.
    ValueError
        If shapes disagree or an input is not finite.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0]]
    >>> data = ib.datasets.ClassDataset("toy", X, [0, 1, 2], [[3.0]], [2], "points")
    >>> data.classes, data.two_classes({2}, "2 against the rest").y_train.tolist()
    ((0, 1, 2), [-1.0, -1.0, 1.0])
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
        """One line: source, scaling, classes, sizes."""
        named = [f"{k} ({self.names[k]})" if k in self.names else str(k) for k in self.classes]
        first, last = self.classes[0], self.classes[-1]
        if not self.names and 2 < len(named) == last - first + 1:
            named = [f"{first}-{last}"]
        return self._described("classes " + ", ".join(named))

    def rows(self, part: Literal["train", "val"]) -> Floats:
        """Return the labels of a part as rows (n, K) with a one at each sample's class, else zeros.

        They are what a network with a score a class is trained on.

        Raises
        ------
        ValueError
            If there is no such part.

        Examples
        --------
        >>> data = ib.datasets.ClassDataset("toy", np.eye(2), [5, 7], np.eye(2), [7, 7], "points")
        >>> data.rows("val").tolist()
        [[0.0, 1.0], [0.0, 1.0]]
        """
        if part not in ("train", "val"):
            raise ValueError(f"`part` must be 'train' or 'val', got {part!r}")
        labels = self.labels_train if part == "train" else self.labels_val
        rows: Floats = (labels[:, None] == np.array(self.classes)).astype(np.float64)
        return rows

    @door(label=signed)
    def name_of(self, label: int) -> str:
        """Return the name of a class, its number where it has none."""
        return self.names.get(label, str(label))

    def digest(self) -> str:
        """Return SHA-256, in hexadecimal, of inputs and class labels, equal on every machine."""
        return digest(*(getattr(self, key) for key in _ARRAYS))

    @door(positive=sequence(signed))
    def two_classes(self, positive: Collection[int], text: str) -> Dataset:
        """Return the same inputs with the label +1 for some classes and -1 for all others.

        Parameters
        ----------
        positive : collection of int
            Classes that are +1.
        text : str
            The two sets of classes, for the description.

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
