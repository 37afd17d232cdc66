"""Names of data: the sets that there are, and files. Loads nothing, not even NumPy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

TableName = Literal["iris", "wine", "breast-cancer"]
DataName = Literal[
    "digits",
    "mnist",
    "orthants",
    "near-orthogonal",
    "quadrants",
    "circle",
    "iris",
    "wine",
    "breast-cancer",
]
NAMES: tuple[str, ...] = get_args(DataName)
ENDINGS = (".npz", ".npy", ".csv", ".parquet")


def is_file(data: str) -> bool:
    """Return whether `data` names a file or a folder and none of the sets in `NAMES`."""
    looks = data.lower().endswith(ENDINGS) or any(mark in data for mark in "./\\")
    return bool(data) and data not in NAMES and (looks or Path(data).exists())


def has_own_size(data: str) -> bool:
    """Return whether the data are a table of a fixed size, for which image sizes do not fit."""
    return data in get_args(TableName) or is_file(data)


def files_of(data: str) -> tuple[Path, ...]:
    """Return the files that data are read from, there or not; for a folder its IDX files."""
    path = Path(data)
    if path.is_dir():
        return tuple(sorted(path.glob("*-idx[13]-ubyte*")))
    return (path, labels_beside(path)) if path.suffix.lower() == ".npy" else (path,)


def labels_beside(path: Path) -> Path:
    """Return the path of the labels of an .npy file: train_X.npy has its labels in train_y.npy.

    Raises
    ------
    ValueError
        If no word of the name is X.
    """
    words = path.stem.replace("-", "_").split("_")
    places = [place for place, word in enumerate(words) if word in ("X", "x")]
    if not places:
        raise ValueError(
            f"`data` must name the inputs of a pair of .npy files, with X as a word of the name "
            f"and the labels beside it: X.npy and y.npy, or X_train.npy and y_train.npy; got "
            f"{os.fspath(path)!r}"
        )
    start = sum(len(word) + 1 for word in words[: places[-1]])
    stem = path.stem
    return path.with_name(f"{stem[:start]}y{stem[start + 1 :]}{path.suffix}")
