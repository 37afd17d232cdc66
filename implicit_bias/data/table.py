"""Tables: all samples of a source with their classes, before they are split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats

SHOWN = 10
LONGEST = 1000  # characters of the name of a class
FEWER = "take fewer samples or columns"


@dataclass(frozen=True, eq=False)
class Table:
    """All samples of a source, not split yet.

    Attributes
    ----------
    name : str
        Short name of the source.
    X : (n, D) float64 array
    labels : (n,) int64 array
        Classes; words are numbered in their order.
    names : mapping of int to str
        The words; empty where classes are whole numbers.
    columns : tuple of str
        Names of the columns of X.
    source : str
        Description of the source.
    """

    name: str
    X: Floats = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    names: Mapping[int, str]
    columns: tuple[str, ...] = field(repr=False)
    source: str


def numbered(where: str, values: Any) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Return labels as whole numbers (n,), and the words that these stand for, if any.

    Parameters
    ----------
    where : str
        Where the labels come from, for messages.
    values : (n,) array
        Words, whole numbers or booleans.

    Raises
    ------
    ValueError, TypeError
        If labels are missing, of one class only, or are neither words nor whole numbers.
    """
    codes, words = _numbered(where, np.asarray(values))
    if codes.min() == codes.max():
        only = words.get(int(codes.flat[0]), str(codes.flat[0]))
        raise ValueError(f"the labels have one class only, {only!r}: give samples of two classes")
    return codes, words


def _numbered(where: str, values: NDArray[Any]) -> tuple[NDArray[np.int64], dict[int, str]]:
    if values.dtype.kind == "O":
        values = _plain(where, values)
    if values.dtype.kind == "b":
        return values.astype(np.int64), {0: "False", 1: "True"}
    if values.dtype.kind in "US":
        words, codes = np.unique(values.astype(str), return_inverse=True)
        return codes.reshape(values.shape).astype(np.int64), dict(enumerate(words.tolist()))
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{where} must be words or whole numbers, got dtype {values.dtype}")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values.ravel()))[0])
        raise ValueError(f"{where} lack the label of sample {row} (NaN): drop it or fill it in")
    whole = values.astype(np.int64)
    if (whole != values).any():
        got = values[whole != values].ravel()[0]
        raise ValueError(
            f"{where} must be classes, words or whole numbers, got {got:g}: name another column, "
            "or cut the numbers into classes"
        )
    return whole, {}


def _plain(where: str, values: NDArray[Any]) -> NDArray[Any]:
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(
            f"{where} lack the label of sample {row} ({int(missing.sum())} are missing): drop such "
            "samples or fill them in"
        )
    check_words(where, max((len(value) for value in values if isinstance(value, str)), default=0))
    if len({type(value) for value in values}) > 1:
        kinds = sorted({type(value).__name__ for value in values})
        raise TypeError(f"{where} must be of one kind, got {' and '.join(kinds)}: make them words")
    return np.array(values.tolist())


def check_words(where: str, longest: int) -> None:
    """Refuse names of classes that are no names; raises ValueError with the length."""
    if longest > LONGEST:
        raise ValueError(
            f"{where} must be words of at most {LONGEST} characters, got {longest}: name the "
            "classes by shorter ones"
        )


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others, as one text."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return (", ".join(map(repr, names[:SHOWN])) or "none") + more
