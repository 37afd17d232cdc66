"""One shuffle, cut into a training and a validation part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._solve import require_count

__all__ = ["parts_text", "split"]


def split(
    n_total: int, n_train: int, n_val: int | None, random_state: int | np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows for training (a prefix of the shuffle) and for validation (a suffix of it)."""
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
    """The sizes of both parts, as a description of data ends."""
    return f"{n_train} training and {n_val} validation samples"
