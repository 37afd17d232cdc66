"""Images: scikit-learn's bundled digits, and MNIST-like sets in IDX files.

Inputs are scaled to [-1, 1] and end in a constant column of ones, which is the only bias that the
theory knows. Of two classes, digits 0-4 become +1 and 5-9 become -1.
"""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats
from .dataset import Dataset
from .idx import find_idx, read_idx
from .labelled import ClassDataset
from .splitting import split

__all__ = ["in_halves", "load_digit_classes", "load_digits", "load_idx", "load_idx_classes"]


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
    return in_halves(load_digit_classes(n_train=n_train, n_val=n_val, random_state=random_state))


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
    return in_halves(
        load_idx_classes(data_dir, n_train=n_train, n_val=n_val, random_state=random_state)
    )


def in_halves(dataset: ClassDataset) -> Dataset:
    """Ten digits in two: 0-4 are +1."""
    return dataset.two_classes(range(5), "classes 0-4 (+1) against 5-9 (-1)")


def load_digit_classes(
    *,
    n_train: int = 1000,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
    constant: bool = True,
) -> ClassDataset:
    """Scikit-learn's bundled 8x8 digits (1,797 images, no download) with their ten classes.

    The samples are those of `load_digits`, which says what the arguments mean and what is raised
    for numbers that are out of range. Without `constant` there is no column of ones.
    """
    images, labels = _bundled()
    rows = split(len(labels), n_train, n_val, random_state)
    about = "digits", "scikit-learn's bundled 8x8 digits"
    return _dataset(about, images, labels, rows, 16, constant)


@cache  # they are read from text, in 70 ms
def _bundled() -> tuple[NDArray[Any], NDArray[Any]]:
    from sklearn.datasets import (  # type: ignore[import-untyped,unused-ignore]
        load_digits as load_bundled,
    )

    bundled = load_bundled()
    return bundled.images, bundled.target


def load_idx_classes(
    data_dir: str | os.PathLike[str],
    *,
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
    constant: bool = True,
) -> ClassDataset:
    """MNIST or a set in the same files, with its classes.

    The samples are those of `load_idx`, which says which files are read, what the arguments mean
    and what is raised. Without `constant` there is no column of ones.
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
    rows = split(len(labels), n_train, n_val, random_state)
    source = f"IDX files ({pair} pair), {images.shape[1]}x{images.shape[2]} images"
    about = f"{folder.resolve().name}-{pair}", source
    return _dataset(about, images, labels, rows, 255, constant)


def _dataset(
    about: tuple[str, str],
    images: NDArray[Any],
    labels: NDArray[Any],
    rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    brightest: int,
    constant: bool,
) -> ClassDataset:
    name, source = about
    X_train, X_val = (_inputs(images[part], brightest, constant) for part in rows)
    train, val = (labels[part] for part in rows)
    source += ", pixels scaled to [-1, 1]"
    source += ", constant 1 in the last column" if constant else ""
    return ClassDataset(name, X_train, train, X_val, val, source)


def _inputs(images: NDArray[Any], brightest: int, constant: bool) -> Floats:
    """Pixels from [0, brightest] to [-1, 1] with the constant last, if it is wanted; read-only."""
    n_images, n_pixels = len(images), math.prod(images.shape[1:])
    X = np.ones((n_images, n_pixels + constant))
    X[:, :n_pixels] = images.reshape(n_images, n_pixels, order="C") / (brightest / 2) - 1
    X.setflags(write=False)
    return X
