"""Two-class data sets: scikit-learn's bundled digits, and MNIST-like sets in IDX files.

Classes 0-4 become +1 and classes 5-9 become -1. Inputs are scaled to [-1, 1] and end in a
constant column of ones, which is the only bias that the theory knows.
"""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .idx import find_idx, read_idx

_ARRAYS = ("X_train", "y_train", "X_val", "y_val")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs and labels of two classes, split into a training and a validation part.

    The arrays are copied, converted to float64 and made read-only. Two data sets are the same
    data exactly when their digests agree; ``==`` compares identity.

    Parameters
    ----------
    name : str
        Short name for tables.
    X_train, X_val : array of float64, shapes (n, D) and (m, D)
        Inputs, one row a sample; m may be 0. A bias is a constant column.
    y_train, y_val : array of float64, shapes (n,) and (m,)
        Labels in {-1, +1}; both occur in `y_train`.
    description : str
        One line for people: which images, classes, scaling.

    Raises
    ------
    TypeError
        If an array is not numeric.
    ValueError
        If shapes disagree, a number is not finite, a label is neither -1 nor +1, or the
        training part lacks a class.
    """

    name: str
    X_train: NDArray[np.float64] = field(repr=False)
    y_train: NDArray[np.float64] = field(repr=False)
    X_val: NDArray[np.float64] = field(repr=False)
    y_val: NDArray[np.float64] = field(repr=False)
    description: str

    def __post_init__(self) -> None:
        for key in _ARRAYS:
            n_axes = 2 if key.startswith("X") else 1
            object.__setattr__(self, key, _frozen(key, getattr(self, key), n_axes))
        _check_labels("train", self.X_train, self.y_train)
        _check_labels("val", self.X_val, self.y_val)
        if self.X_train.shape[1] != self.X_val.shape[1]:
            raise ValueError(
                f"`X_val` must have {self.X_train.shape[1]} columns like `X_train`, "
                f"got {self.X_val.shape[1]}: give both parts the same inputs"
            )
        if np.unique(self.y_train).size < 2:
            raise ValueError(
                "`y_train` must hold both classes, -1 and +1, got "
                f"{np.unique(self.y_train).tolist()} only: take more training samples, or "
                "another random_state"
            )

    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the shapes and the bytes of the four arrays.

        Numbers enter as little-endian float64 in row order, so the digest names the same data
        on every machine. Name and description do not enter.
        """
        sha = hashlib.sha256()
        for key in _ARRAYS:
            array = getattr(self, key)
            sha.update(repr(array.shape).encode())
            sha.update(array.astype("<f8", copy=False).tobytes())
        return sha.hexdigest()


def load_digits(
    *,
    n_train: int = 1000,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Scikit-learn's bundled 8x8 digits (1,797 images, no download), 0-4 against 5-9.

    Parameters
    ----------
    n_train : int
        Number of training samples. One `random_state` gives nested training parts.
    n_val : int or None
        Number of validation samples, disjoint from the training part; None: all the rest.
        A given `n_val` selects the same samples for every `n_train`.
    random_state : int or numpy.random.Generator
        Seeds the one shuffle that both parts are cut from.

    Returns
    -------
    Dataset
        D = 65: 64 pixels in [-1, 1] and the constant 1.

    Raises
    ------
    TypeError
        If a sample number is not an integer.
    ValueError
        If more samples are wanted than there are, or the training part lacks a class.

    Examples
    --------
    >>> load_digits(n_train=200, n_val=100).X_train.shape
    (200, 65)
    """
    from sklearn.datasets import (  # type: ignore[import-untyped,unused-ignore]
        load_digits as load_bundled,
    )

    bundled = load_bundled()
    train, val = _split(len(bundled.target), n_train, n_val, random_state)
    X, y = _two_class(bundled.images, bundled.target, brightest=16)
    description = _describe("scikit-learn's bundled 8x8 digits", train, val)
    return Dataset("digits", X[train], y[train], X[val], y[val], description)


def load_idx(
    data_dir: str | os.PathLike[str],
    *,
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """MNIST or a set in the same files (Fashion-MNIST, KMNIST), classes 0-4 against 5-9.

    Both parts come from one pair of files: ``train-images-idx3-ubyte`` and
    ``train-labels-idx1-ubyte`` if the folder has either, else the ``t10k-`` pair. Each may be
    gzipped, with ``.gz`` at the end of its name; the description says which pair was read.

    Parameters
    ----------
    data_dir : path
        Folder with the files.
    n_train, n_val, random_state
        As in `load_digits`.

    Returns
    -------
    Dataset
        D = pixels + 1: pixels in [-1, 1] and the constant 1.

    Raises
    ------
    FileNotFoundError
        If the folder or a file is missing.
    ValueError
        If a file is damaged, images and labels differ in number or a label is above 9.
    TypeError, ValueError
        Further as in `load_digits`.
    """
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`data_dir` must be a folder with IDX files, got {str(folder)!r}, which is not a "
            "folder: give the one that holds train-images-idx3-ubyte.gz and its labels"
        )
    pair = "train" if any(folder.glob("train-*-idx[13]-ubyte*")) else "t10k"
    images = read_idx(find_idx(folder, f"{pair}-images-idx3-ubyte"), n_axes=3)
    labels = read_idx(find_idx(folder, f"{pair}-labels-idx1-ubyte"), n_axes=1)
    if len(images) != len(labels):
        raise ValueError(
            f"the {pair} pair in {str(folder)!r} must have one label per image, got "
            f"{len(images)} images and {len(labels)} labels: fetch both files from one source"
        )
    if labels.max(initial=0) > 9:
        raise ValueError(
            f"the {pair} labels in {str(folder)!r} must be classes 0 to 9, got "
            f"{labels.max()}: choose a set with ten classes"
        )
    train, val = _split(len(labels), n_train, n_val, random_state)
    X_train, y_train = _two_class(images[train], labels[train], brightest=255)
    X_val, y_val = _two_class(images[val], labels[val], brightest=255)
    origin = f"IDX files ({pair} pair), {images.shape[1]}x{images.shape[2]} images"
    name = f"{folder.resolve().name}-{pair}"
    return Dataset(name, X_train, y_train, X_val, y_val, _describe(origin, train, val))


def _frozen(name: str, value: object, n_axes: int) -> NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`{name}` must be an array of numbers, got {type(value).__name__} ({error}): "
            "encode the samples as float64"
        ) from error
    if array.ndim != n_axes:
        wanted = "(n, D): one row per sample" if n_axes == 2 else "(n,): one label per row of X"
        raise ValueError(f"`{name}` must have shape {wanted}; got shape {array.shape}: reshape it")
    if not np.isfinite(array).all():
        bad = int(np.count_nonzero(~np.isfinite(array)))
        raise ValueError(
            f"`{name}` must be finite, got {bad} NaN or infinite numbers: drop or impute them"
        )
    array.setflags(write=False)
    return array


def _check_labels(part: str, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    if len(X) != len(y):
        raise ValueError(
            f"`y_{part}` must have shape ({len(X)},), got {y.shape}: one label per row of "
            f"`X_{part}`"
        )
    strange = y[np.abs(y) != 1]
    if strange.size:
        raise ValueError(
            f"`y_{part}` must hold -1 and +1 only, got {strange[0]:g}: map the two classes to "
            "-1 and +1"
        )


def _split(
    n_total: int, n_train: int, n_val: int | None, random_state: int | np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows for training (a prefix of the shuffle) and for validation (a suffix of it)."""
    n_held_out = 0 if n_val is None else n_val
    for name, number, least in (("n_train", n_train, 1), ("n_val", n_held_out, 0)):
        if not isinstance(number, Integral):
            raise TypeError(f"`{name}` must be an integer, got {number!r}: give a whole number")
        if number < least:
            raise ValueError(f"`{name}` must be at least {least}, got {number}: ask for more")
    if n_train + n_held_out > n_total:
        raise ValueError(
            f"`n_train` + `n_val` must be at most {n_total}, the number of images, got "
            f"{n_train} + {n_held_out}: ask for fewer"
        )
    order = np.random.default_rng(random_state).permutation(n_total)
    first_val = n_train if n_val is None else n_total - n_val
    return order[:n_train], order[first_val:]


def _two_class(
    images: NDArray[Any], labels: NDArray[Any], *, brightest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixels from [0, brightest] to [-1, 1] with the constant last; classes to labels."""
    n_images, n_pixels = len(images), math.prod(images.shape[1:])
    X = np.ones((n_images, n_pixels + 1))
    X[:, :-1] = images.reshape(n_images, n_pixels, order="C") / (brightest / 2) - 1
    return X, np.where(labels <= 4, 1.0, -1.0)


def _describe(origin: str, train: NDArray[np.int64], val: NDArray[np.int64]) -> str:
    return (
        f"{origin}, classes 0-4 (+1) against 5-9 (-1), pixels scaled to [-1, 1], constant 1 in "
        f"the last column; {len(train)} training and {len(val)} validation samples"
    )
