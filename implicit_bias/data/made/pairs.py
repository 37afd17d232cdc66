"""Images of two of the ten classes: the bundled digits, or a set in IDX files."""

from __future__ import annotations

import os

import numpy as np

from ..dataset import Dataset
from ..images import load_digit_classes, load_idx_classes
from ..splitting import parts_text


def load_pair(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    classes: tuple[int, int] = (0, 1),
    n_train: int,
    n_val: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> Dataset:
    """Load the images of two classes, -1 and +1 in this order.

    Parameters
    ----------
    data_dir : path, optional
        Folder of IDX files, as `load_idx` reads them; scikit-learn's bundled digits without it.
    classes : pair of int
        The classes that are -1 and +1.
    n_train : int
        Number of training images. One `random_state` gives nested training parts.
    n_val : int, optional
        Number of held-out images, the last of the shuffle; all the rest by default.
    random_state : int or numpy.random.Generator
        Source of the shuffle.

    Returns
    -------
    Dataset
        Pixels in [-1, 1] and the constant 1.

    Raises
    ------
    FileNotFoundError
        If the folder or a file is missing.
    TypeError, ValueError
        If a file is damaged, or the two classes have not so many images.
    """
    if data_dir is None:
        whole = load_digit_classes(n_train=1, random_state=random_state)
    else:
        whole = load_idx_classes(data_dir, n_train=1, random_state=random_state)
    X = np.concatenate([whole.X_train, whole.X_val])
    labels = np.concatenate([whole.labels_train, whole.labels_val])
    first, second = classes
    chosen = np.isin(labels, classes)
    X, y = X[chosen], np.where(labels[chosen] == second, 1.0, -1.0)
    held_out = len(X) - n_train if n_val is None else n_val
    if n_train < 2 or held_out < 0 or n_train + held_out > len(X):
        raise ValueError(
            f"`n_train` must be at least 2, and `n_train` + `n_val` at most {len(X)}, the number "
            f"of images of {first} and {second}, got {n_train} + {held_out}: ask for fewer"
        )
    rest = len(X) - held_out
    about = f"{whole.source}; {first} (-1) against {second} (+1); {parts_text(n_train, held_out)}"
    name = f"{whole.name}-{first}-{second}"
    return Dataset(name, X[:n_train], y[:n_train], X[rest:], y[rest:], about)
