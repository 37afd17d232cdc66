"""Two-class data sets: scikit-learn's bundled digits, and MNIST-like sets in IDX files.

Classes 0-4 become +1 and classes 5-9 become -1.
"""

from __future__ import annotations

import os

import numpy as np

from .class_data import ClassDataset, load_digit_classes, load_idx_classes
from .dataset import Dataset

__all__ = ["Dataset", "load_digits", "load_idx"]


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
    return _halves(load_digit_classes(n_train=n_train, n_val=n_val, random_state=random_state))


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
    return _halves(
        load_idx_classes(data_dir, n_train=n_train, n_val=n_val, random_state=random_state)
    )


def _halves(dataset: ClassDataset) -> Dataset:
    return dataset.two_classes(range(5), "classes 0-4 (+1) against 5-9 (-1)")
