"""Data set of two classes in a training and a validation part, checked and read-only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import parameters
from .._support.kinds import series
from .._support.shown import Shown
from .._support.solve import require_real, require_scale, require_shape
from .arrays import Floats
from .splitting import parts_text

_ARRAYS = ("X_train", "y_train", "X_val", "y_val")


@parameters(X_train=series, X_val=series)
@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Shown):
    """Inputs and labels of two classes, split into a training and a validation part.

    The arrays are float64 and read-only, copied unless they are so already. Two data sets are the
    same data exactly when their digests agree; ``==`` compares identity.

    Parameters
    ----------
    name : str
        Short name for tables.
    X_train, X_val : array of float64, shapes (n, D) and (m, D)
        Inputs, one row a sample; m may be 0. A bias is a constant column.
    y_train, y_val : array of float64, shapes (n,) and (m,)
        Labels in {-1, +1}; both occur in `y_train`.
    description : str
        One line: source, classes, scaling, sizes.

    Raises
    ------
    TypeError
        If an array is not numeric.
    ValueError
        If shapes disagree, a number is not finite, a label is neither -1 nor +1, or the
        training part lacks a class.

    Examples
    --------
    >>> data = ib.Dataset("toy", [[1.0, 0.0], [0.0, 1.0]], [1, -1], [[2.0, 1.0]], [1], "3 points")
    >>> data.X_train.shape, data.y_val.tolist(), data.digest()[:8]
    ((2, 2), [1.0], '53f65f6e')
    """

    name: str
    X_train: Floats = field(repr=False)
    y_train: Floats = field(repr=False)
    X_val: Floats = field(repr=False)
    y_val: Floats = field(repr=False)
    description: str

    def __post_init__(self) -> None:
        for key in _ARRAYS:
            n_axes = 2 if key.startswith("X") else 1
            object.__setattr__(self, key, frozen(key, getattr(self, key), n_axes))
        _check_labels("train", self.X_train, self.y_train)
        _check_labels("val", self.X_val, self.y_val)
        check_same_inputs(self.X_train, self.X_val)
        if np.unique(self.y_train).size < 2:
            raise ValueError(
                "`y_train` must hold both classes, -1 and +1, got "
                f"{np.unique(self.y_train).tolist()} only: take more training samples, or draw "
                "others"
            )

    def digest(self) -> str:
        """Return SHA-256, in hexadecimal, of the shapes and the bytes of the four arrays.

        Numbers enter as little-endian float64 in row order, so that equal data have equal digests
        on every machine. Name and description do not enter.
        """
        return digest(*(getattr(self, key) for key in _ARRAYS))


def drawn_dataset(name: str, X: Floats, y: Floats, n_train: int, text: str) -> Dataset:
    """Return drawn samples X (n, D), y (n,) as a data set, the first `n_train` for training.

    Raises
    ------
    ValueError
        If the training part lacks a class.
    """
    about = f"synthetic, {text}; {parts_text(n_train, len(y) - n_train)}"
    return Dataset(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:], about)


def digest(*arrays: NDArray[Any]) -> str:
    """Return SHA-256, in hexadecimal, of the shapes and the bytes of arrays in row order.

    Floats enter as little-endian float64, integers as little-endian int64.
    """
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(repr(array.shape).encode())
        kind = "<f8" if np.issubdtype(array.dtype, np.floating) else "<i8"
        sha.update(array.astype(kind, copy=False).tobytes())
    return sha.hexdigest()


def frozen(name: str, value: object, n_axes: int) -> Floats:
    """Return `value` as a finite, read-only float64 array with `n_axes` axes, 1 or 2.

    Inputs, of two axes, have a largest entry between 1e-152 and 1e152, or are all zero.

    Raises
    ------
    TypeError, ValueError
        If it is no such array; messages call it `name`.
    """
    require_real(name, value)
    # A read-only array is shared, which saves a copy of large data; so is a file that is mapped.
    shared = (
        isinstance(value, np.ndarray)
        and (value.base is None or isinstance(value, np.memmap))
        and not value.flags.writeable
    )
    array = np.array(value, dtype=np.float64, order="C", copy=None if shared else True)
    if array.ndim != n_axes:
        wanted = "(n, D): one row per sample" if n_axes == 2 else "(n,): one label per row of X"
        raise ValueError(f"`{name}` must have shape {wanted}; got shape {array.shape}: reshape it")
    if not np.isfinite(array).all():
        bad = int(np.count_nonzero(~np.isfinite(array)))
        raise ValueError(
            f"`{name}` must be finite, got {bad} NaN or infinite numbers: drop or impute them"
        )
    if n_axes == 2:
        require_scale(name, array)
    array.setflags(write=False)
    return array


def check_same_inputs(X_train: Floats, X_val: Floats) -> None:
    """Check that both parts have as many columns; raises ValueError if they do not."""
    if X_train.shape[1] != X_val.shape[1]:
        raise ValueError(
            f"`X_val` must have {X_train.shape[1]} columns like `X_train`, "
            f"got {X_val.shape[1]}: give both parts the same inputs"
        )


def _check_labels(part: str, X: Floats, y: Floats) -> None:
    require_shape(f"y_{part}", y, (len(X),), f"one label per row of `X_{part}`")
    strange = y[np.abs(y) != 1]
    if strange.size:
        raise ValueError(
            f"`y_{part}` must hold -1 and +1 only, got {strange[0]:g}: map the two classes to "
            "-1 and +1"
        )
