"""Data of the user's own that the cells of a sweep share: stored once, mapped by all."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .._support.files import check_plain, write_atomically
from .._support.solve import to_numpy
from ..data.dataset import Dataset, digest
from ..data.labelled import ClassDataset

ARRAYS = ("X", "y", "X_val", "y_val", "queries")
# Data sets of this process, by their classes and the values of their fields.
_OPEN: dict[tuple[type, str], Dataset | ClassDataset] = {}


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, in place of the array."""

    path: Path

    def open(self) -> Any:
        """Return the array, mapped: processes of one machine share its memory."""
        return _mapped(self.path)


@dataclass(frozen=True)
class StoredDataset:
    """A data set whose arrays are in files, with its class and the values of its fields."""

    kind: type[Dataset | ClassDataset]
    values: tuple[Any, ...]

    def open(self) -> Dataset | ClassDataset:
        """Return the data set, its arrays mapped; the same one each time in a process."""
        key = (self.kind, repr(self.values))
        if key not in _OPEN:
            values = (one.open() if isinstance(one, StoredArray) else one for one in self.values)
            _OPEN[key] = self.kind(*values)
        return _OPEN[key]


def stored(fixed: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options with arrays and data sets of the user's own stored in a folder.

    Raises
    ------
    OSError
        If an array cannot be written.
    """
    return {name: _stored(name, value, folder) for name, value in fixed.items()}


def opened(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with all that is stored opened.

    Raises
    ------
    OSError
        If an array cannot be read.
    """
    return {
        name: value.open() if isinstance(value, StoredArray | StoredDataset) else value
        for name, value in fixed.items()
    }


def data_digest(fixed: Mapping[str, Any]) -> str:
    """Return SHA-256, in hexadecimal, of the arrays and data sets of the user's own as given."""
    found = {name: fixed[name] for name in (*ARRAYS, "data") if fixed.get(name) is not None}
    return digest(*(
        np.frombuffer(f"{name} {_digest_of(value)}".encode(), dtype=np.uint8)
        for name, value in found.items()
        if name != "data" or isinstance(value, Dataset | ClassDataset)
    ))  # fmt: skip


def _digest_of(value: Any) -> str:
    if isinstance(value, Dataset | ClassDataset):
        return value.digest()
    array = np.asarray(to_numpy(value))
    if array.dtype.kind in "biuf":
        return digest(array)
    return digest(np.frombuffer(repr(array.tolist()).encode(), dtype=np.uint8))


def _stored(name: str, value: Any, folder: Path) -> Any:
    if isinstance(value, Dataset | ClassDataset):
        values = (getattr(value, one.name) for one in fields(value))
        files = tuple(_file(v, folder) if isinstance(v, np.ndarray) else v for v in values)
        return StoredDataset(type(value), files)
    if name not in ARRAYS or value is None:
        return value
    array = np.asarray(to_numpy(value))
    # Objects, such as labels out of a table, would have to be pickled: they are sent.
    return value if array.dtype.hasobject else _file(array, folder)


def _file(array: Any, folder: Path) -> StoredArray:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    name = digest(np.frombuffer(content.getbuffer(), dtype=np.uint8))
    path = folder / f"{name[:20]}.npy"
    check_plain(path)
    if not (path.is_file() and path.stat().st_size == len(content.getbuffer())):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    return StoredArray(path)


@cache
def _mapped(path: Path) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)
