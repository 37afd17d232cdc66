"""Split of samples into a training and a validation part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._support.solve import require_count


def split(
    n_total: int, n_train: int, n_val: int | None, random_state: int | np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows for training, the first of a shuffle, and for validation, the last of it.

    Parameters
    ----------
    n_total, n_train : int
    n_val : int or None
        None: all that are not trained on.
    random_state : int or numpy.random.Generator
        Source of the shuffle.

    Raises
    ------
    TypeError
        If a number is not whole.
    ValueError
        If more samples are wanted than there are.
    """
    n_held_out = 0 if n_val is None else n_val
    for name, number, least in (("n_train", n_train, 1), ("n_val", n_held_out, 0)):
        require_count(name, number, least=least)
    if n_train + n_held_out > n_total:
        raise ValueError(
            f"`n_train` + `n_val` must be at most {n_total}, the number of samples, got "
            f"{n_train} + {n_held_out}: ask for fewer"
        )
    order = np.random.default_rng(random_state).permutation(n_total)
    first_val = n_train if n_val is None else n_total - n_val
    return order[:n_train], order[first_val:]


def parts_text(n_train: int, n_val: int) -> str:
    """Return the text of both sizes, with which descriptions of data end."""
    return f"{n_train} training and {n_val} held-out samples"
