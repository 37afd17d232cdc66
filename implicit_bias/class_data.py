"""Labelled images of several classes: scikit-learn's bundled digits, and MNIST-like IDX files.

Inputs are scaled to [-1, 1] and end in a constant column of ones, which is the only bias that the
theory knows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .dataset import Dataset, check_same_inputs, digest, frozen
from .idx import find_idx, read_idx

__all__ = ["ClassDataset", "load_digit_classes", "load_idx_classes"]

_ARRAYS = ("X_train", "labels_train", "X_val", "labels_val")


@dataclass(frozen=True, eq=False)
class ClassDataset:
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

    Raises
    ------
    TypeError
        If inputs are not numeric or labels not integers.
    ValueError
        If shapes disagree or an input is not finite.
    """

    name: str
    X_train: NDArray[np.float64] = field(repr=False)
    labels_train: NDArray[np.int64] = field(repr=False)
    X_val: NDArray[np.float64] = field(repr=False)
    labels_val: NDArray[np.int64] = field(repr=False)
    source: str

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
        return self._described("classes " + ", ".join(map(str, self.classes)))

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
        return (
            f"{self.source}; {classes}; {len(self.X_train)} training and {len(self.X_val)} "
            "validation samples"
        )


def load_digit_classes(
    *,
    n_train: int = 1000,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> ClassDataset:
    """Scikit-learn's bundled 8x8 digits (1,797 images, no download) with their ten classes.

    The samples are those of `load_digits`, which says what the arguments mean and what is raised
    for numbers that are out of range.
    """
    from sklearn.datasets import (  # type: ignore[import-untyped,unused-ignore]
        load_digits as load_bundled,
    )

    bundled = load_bundled()
    train, val = _split(len(bundled.target), n_train, n_val, random_state)
    source = _source("scikit-learn's bundled 8x8 digits")
    return _dataset("digits", bundled.images, bundled.target, (train, val), 16, source)


def load_idx_classes(
    data_dir: str | os.PathLike[str],
    *,
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> ClassDataset:
    """MNIST or a set in the same files, with its classes.

    The samples are those of `load_idx`, which says which files are read, what the arguments mean
    and what is raised.
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
    rows = _split(len(labels), n_train, n_val, random_state)
    source = _source(f"IDX files ({pair} pair), {images.shape[1]}x{images.shape[2]} images")
    return _dataset(f"{folder.resolve().name}-{pair}", images, labels, rows, 255, source)


def _dataset(
    name: str,
    images: NDArray[Any],
    labels: NDArray[Any],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    brightest: int,
    source: str,
) -> ClassDataset:
    X_train, X_val = (_inputs(images[part], brightest) for part in rows)
    train, val = (labels[part] for part in rows)
    return ClassDataset(name, X_train, train, X_val, val, source)


def _inputs(images: NDArray[Any], brightest: int) -> NDArray[np.float64]:
    """Pixels from [0, brightest] to [-1, 1] with the constant last, read-only."""
    n_images, n_pixels = len(images), math.prod(images.shape[1:])
    X = np.ones((n_images, n_pixels + 1))
    X[:, :-1] = images.reshape(n_images, n_pixels, order="C") / (brightest / 2) - 1
    X.setflags(write=False)
    return X


def _source(images: str) -> str:
    return f"{images}, pixels scaled to [-1, 1], constant 1 in the last column"


def _integers(name: str, values: ArrayLike, n: int) -> NDArray[np.int64]:
    labels = np.array(values)
    if labels.size and not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(
            f"`{name}` must hold integers, got dtype {labels.dtype}: number the classes"
        )
    if labels.shape != (n,):
        raise ValueError(
            f"`{name}` must have shape ({n},), got {labels.shape}: one class per row of its inputs"
        )
    labels = labels.astype(np.int64)
    labels.setflags(write=False)
    return labels


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
