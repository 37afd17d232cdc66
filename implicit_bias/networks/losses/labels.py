"""Labels of any kind as targets of a network's outputs: signs of one, a row of zeros and a one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._support.solve import intake
from ..placed_data import GatedData, Inputs, place_data
from ..protocols import check_scores

# Classes that a message lists.
_SHOWN = 6


@dataclass(frozen=True)
class Classes:
    """The classes that labels name, in the order of a network's outputs.

    Attributes
    ----------
    names : tuple
        Ascending; of one output the class of negative scores and that of positive ones.
    n_outputs : int
    """

    names: tuple[Any, ...] = (-1, 1)
    n_outputs: int = 1

    def targets(self, name: str, labels: Any, n: int) -> Tensor:
        """Return labels as targets: (n,) in {-1, +1}, or (n, K) with a one at a sample's class.

        Parameters
        ----------
        name : str
            The argument that holds the labels, for messages.
        labels : (n,) or (n, 1) array, or (n, K) rows with a single one
        n : int
            Number of samples.

        Raises
        ------
        TypeError
            If labels are of a kind that names no classes.
        ValueError
            If there is not one a sample, or one that is not among the classes.
        """
        found = _read(name, labels, n, self.n_outputs)
        strange = [one for one in np.unique(found).tolist() if one not in self.names]
        if strange:
            raise ValueError(
                f"`{name}` has labels that are not among the classes "
                f"{_listed(self.names)}: {_listed(strange)}"
            )
        return self._of(found)

    def _of(self, labels: NDArray[Any]) -> Tensor:
        columns = torch.from_numpy(np.argmax(labels[:, None] == np.array(self.names), axis=1))
        if self.n_outputs == 1:
            return 2.0 * columns.double() - 1
        return torch.nn.functional.one_hot(columns, self.n_outputs).double()

    def __str__(self) -> str:
        if self.n_outputs == 1:
            return f"negative scores for {self.names[0]!r}, positive ones for {self.names[1]!r}"
        return f"outputs 0 to {self.n_outputs - 1} for {_listed(self.names)}"


SIGNS = Classes()
"""The classes -1 and +1 of one output."""


def read_labels(y: Any, n: int, n_outputs: int) -> tuple[Classes, Tensor]:
    """Return which class each output of a network stands for, and the labels as targets.

    Rows with a single one, and whole numbers from 0 to K - 1, name the K outputs. Other labels,
    strings and booleans too, stand for them in ascending order. Of one output there are two
    classes, the lesser one for negative scores; numbers that are all 1 are its positive class.

    Parameters
    ----------
    y : array
        Labels as in `Classes.targets`.
    n, n_outputs : int
        Numbers of samples and of outputs.

    Raises
    ------
    TypeError, ValueError
        If labels are none, or of another number of classes than there are outputs.
    """
    labels = _read("y", y, n, n_outputs)
    classes = _found(labels, n_outputs)
    return classes, classes._of(labels)


def place_labelled(network: torch.nn.Module, X: Inputs, y: Any, gates: Inputs | None) -> GatedData:
    """Place data as `place_data` does, with labels of any kind as targets of the outputs."""
    data = place_data(network, X, None, gates)
    with torch.no_grad():
        scores: Tensor = network(data.X, data.gates)
    check_scores(scores, (len(data.X), *scores.shape[1:2]), network)
    targets = read_labels(y, len(data.X), *scores.shape[1:] or [1])[1]
    return data._replace(y=targets.to(data.y))


def _found(labels: NDArray[Any], n_outputs: int) -> Classes:
    found = tuple(np.unique(labels).tolist())
    numbers = labels.dtype.kind != "U"
    for usual in ((-1, 1), (0, 1)) if n_outputs == 1 else (tuple(range(n_outputs)),):
        if numbers and set(found) <= set(usual):
            return Classes(usual, n_outputs)
    if len(found) == max(2, n_outputs):
        return Classes(found, n_outputs)
    if len(found) == 1:
        raise ValueError(f"`y` has one class only, {found[0]!r}: give samples of all classes")
    way = "give two of them, one against the rest for instance" if n_outputs == 1 else (
        f"give the numbers of the outputs, 0 to {n_outputs - 1}, or rows np.eye({n_outputs})[...]"
    )  # fmt: skip
    outputs = "one score" if n_outputs == 1 else f"{n_outputs} scores"
    raise ValueError(
        f"`y` has {len(found)} classes, {_listed(found)}, and `network` gives {outputs} a sample: "
        f"{way}"
    )


def _read(name: str, given: Any, n: int, n_outputs: int) -> NDArray[Any]:
    """Return labels (n,), whole numbers or strings; of rows with a single one its place."""
    array = _array(name, given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    rows = array.ndim == 2 and array.shape[1] == n_outputs
    if len(array.shape) == 0 or len(array) != n or not (array.ndim == 1 or rows):
        or_rows = f", or ({n}, {n_outputs}) with a one in every row" if n_outputs > 1 else ""
        raise ValueError(
            f"`{name}` must have shape ({n},){or_rows}, one label a row of X, got shape "
            f"{array.shape}"
        )
    if rows:
        if array.dtype.kind == "U" or not (
            np.isin(array, (0, 1)).all() and np.all(array.sum(1) == 1)
        ):
            raise ValueError(
                f"`{name}` must have zeros and a single one in every row, at the sample's class: "
                "soft labels have no margins, and those of a linear network have the limit of "
                "limits.solve_next_token"
            )
        return np.asarray(np.argmax(array, axis=1))
    if array.dtype.kind == "f":
        odd = array[~(array == np.round(array)) | np.isinf(array)]
        if odd.size:
            raise ValueError(
                f"`{name}` must hold classes, whole numbers or strings, got {odd[0]:g}"
            )
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def _array(name: str, given: Any) -> NDArray[Any]:
    """Return labels as real numbers or as strings; raises TypeError for any others."""
    try:
        array = np.asarray(given if not isinstance(given, Tensor) else ())
    except ValueError:  # ragged, for which there is a message
        array = np.empty(0)
    strings = array.dtype.kind == "U" or (
        array.dtype == object and array.size > 0 and all(isinstance(v, str) for v in array.flat)
    )
    if strings:
        return array.astype(str)
    numbers = intake.real_array(name, given, "labels of classes")
    return np.asarray(numbers.cpu() if isinstance(numbers, Tensor) else numbers)


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(repr(one) for one in names[:_SHOWN])
    return f"{shown}, ..." if len(names) > _SHOWN else shown
