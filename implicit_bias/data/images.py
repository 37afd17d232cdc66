"""Images: scikit-learn's bundled digits, and MNIST-like sets in IDX files.

Inputs are scaled to [-1, 1] and end in a constant column of ones, which is the only bias that the
theory knows. In data of two classes, 0-4 are +1 and 5-9 are -1.
"""

from __future__ import annotations

import gzip
import math
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door
from .arrays import Floats
from .dataset import Dataset
from .labelled import ClassDataset
from .splitting import split


@door()
def load_digits(
    *,
    n_train: int = 1000,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Load scikit-learn's bundled 8x8 digits (1,797 images, no download), 0-4 against 5-9.

    Parameters
    ----------
    n_train : int
        Number of training samples. One `random_state` gives nested training parts.
    n_val : int or None
        Number of validation samples, disjoint from the training part; None: all the rest.
        A given `n_val` selects the same samples for every `n_train`.
    random_state : int or numpy.random.Generator
        Source of the one shuffle that both parts are cut from.

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
    >>> ib.load_digits(n_train=200, n_val=100).X_train.shape
    (200, 65)
    """
    return halves(load_digit_classes(n_train=n_train, n_val=n_val, random_state=random_state))


@door()
def load_idx(
    data_dir: str | os.PathLike[str],
    *,
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Load MNIST or a set in the same files (Fashion-MNIST, KMNIST), classes 0-4 against 5-9.

    Both parts come from one pair of files: ``train-images-idx3-ubyte`` and
    ``train-labels-idx1-ubyte`` if the folder has either, else the ``t10k-`` pair. Each may be
    gzipped, with ``.gz`` at the end of its name; the description says which pair was read.

    Parameters
    ----------
    data_dir : path
        Folder with the files.
    n_train : int
        Number of training samples. One `random_state` gives nested training parts.
    n_val : int or None
        Number of validation samples, disjoint from the training part; None: all the rest.
    random_state : int or numpy.random.Generator
        Source of the one shuffle that both parts are cut from.

    Returns
    -------
    Dataset
        D = pixels + 1: pixels in [-1, 1] and the constant 1.

    Raises
    ------
    FileNotFoundError
        If the folder or a file is missing.
    TypeError
        If a sample number is not an integer.
    ValueError
        If a file is damaged, images and labels differ in number, a label is above 9, more samples
        are wanted than there are, or the training part lacks a class.

    Examples
    --------
    >>> import pathlib, struct, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> images = struct.pack(">4B3I", 0, 0, 8, 3, 4, 1, 2) + bytes(range(8))  # 4 of 1 x 2 pixels
    >>> labels = struct.pack(">4BI", 0, 0, 8, 1, 4) + bytes([0, 9, 1, 8])
    >>> _ = (folder / "train-images-idx3-ubyte").write_bytes(images)
    >>> _ = (folder / "train-labels-idx1-ubyte").write_bytes(labels)
    >>> ib.datasets.load_idx(folder, n_train=3).X_train.shape
    (3, 3)
    """
    return halves(
        load_idx_classes(data_dir, n_train=n_train, n_val=n_val, random_state=random_state)
    )


def halves(dataset: ClassDataset) -> Dataset:
    """Return data of ten classes with the label +1 for 0-4 and -1 for 5-9."""
    return dataset.two_classes(range(5), "classes 0-4 (+1) against 5-9 (-1)")


def load_digit_classes(
    *,
    n_train: int = 1000,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
    constant: bool = True,
) -> ClassDataset:
    """Load scikit-learn's bundled 8x8 digits with their ten classes.

    Parameters
    ----------
    n_train : int
    n_val : int or None
    random_state : int or numpy.random.Generator
        The samples are those that `load_digits` has for these arguments.
    constant : bool
        Whether a column of ones is appended.

    Raises
    ------
    TypeError, ValueError
        If a sample number is not an integer, or more samples are wanted than there are.
    """
    images, labels = _bundled()
    rows = split(len(labels), n_train, n_val, random_state)
    about = "digits", "scikit-learn's 8x8 digits"
    return _dataset(about, images, labels, rows, 16, constant)


@cache  # text, 70 ms
def _bundled() -> tuple[NDArray[Any], NDArray[Any]]:
    """Images (1797, 8, 8), from 0 to 16, and their classes (1797,).

    Importing `sklearn.datasets` takes ten times as long as reading its file, which is read as it
    is where it is where it has always been.
    """
    package = find_spec("sklearn")
    for folder in (package and package.submodule_search_locations) or ():
        file = Path(folder, *_FILE)
        if file.is_file():
            with gzip.open(file, "rt", encoding="ascii") as lines:
                table = np.loadtxt(lines, delimiter=",")
            return table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.int64)
    from sklearn.datasets import (  # type: ignore[import-untyped,unused-ignore]
        load_digits as load_bundled,
    )

    bundled = load_bundled()
    return bundled.images, bundled.target


# Of scikit-learn's folder.
_FILE = "datasets", "data", "digits.csv.gz"


def load_idx_classes(
    data_dir: str | os.PathLike[str],
    *,
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
    constant: bool = True,
) -> ClassDataset:
    """Load MNIST or a set in the same files, with its classes.

    Parameters
    ----------
    data_dir : path
        Folder with the files.
    n_train : int
    n_val : int or None
    random_state : int or numpy.random.Generator
        The samples are those that `load_idx` has for these arguments.
    constant : bool
        Whether a column of ones is appended.

    Raises
    ------
    FileNotFoundError
        If the folder or a file is missing.
    TypeError, ValueError
        If a file is damaged, images and labels differ in number, a label is above 9, a sample
        number is not an integer, or more samples are wanted than there are.
    """
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`data_dir` (or `data`) must be a folder with IDX files, got {str(folder)!r}, which "
            "is not a folder: give the one that holds train-images-idx3-ubyte.gz and its labels"
        )
    from .files.idx import find_idx, idx_pair, read_idx

    pair = idx_pair(folder)
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
    source += " in [-1, 1]"
    source += " with a constant 1" if constant else ""
    return ClassDataset(name, X_train, train, X_val, val, source)


def _inputs(images: NDArray[Any], brightest: int, constant: bool) -> Floats:
    """Pixels scaled from [0, brightest] to [-1, 1], with the constant last; read-only."""
    n_images, n_pixels = len(images), math.prod(images.shape[1:])
    X = np.ones((n_images, n_pixels + constant))
    X[:, :n_pixels] = images.reshape(n_images, n_pixels, order="C") / (brightest / 2) - 1
    X.setflags(write=False)
    return X
