"""Readers of NumPy's files, .npz and a pair of .npy; nothing is ever unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import require_memory
from ..names import labels_beside
from ..table import FEWER, Table, check_words, listed, numbered


class _Stored(NamedTuple):
    """An array in a file, of which the header is read before it."""

    name: str
    open: Callable[[], Any]


def read_npz(path: Path, label: str | None) -> Table:
    """Read an .npz file with the arrays X (n, D) or (n, ...) and y (n,), or `label` in place of y.

    Raises
    ------
    ValueError, TypeError
        If it is no such file, lacks an array, or an array is not one of numbers or classes.
    """
    label = label or "y"
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            for name in ("X", label):
                if name not in names:
                    raise ValueError(
                        f"{str(path)!r} must hold the arrays X and {label}, got "
                        f"{listed(names)}: save it with np.savez(path, X=X, {label}=y)"
                    )
            for own in ("X_val", "y_val"):
                if own in names:
                    raise ValueError(
                        f"{str(path)!r} holds {own}, and held-out samples are drawn from X here: "
                        "leave it out, or give arrays from Python, run(X=, y=, X_val=, y_val=)"
                    )
            X, y = (_Stored(one, partial(archive.open, f"{one}.npy")) for one in ("X", label))
            return _as_table(path, X, y, f"the labels {label!r} of {path.name}")
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(path)!r} is no .npz file, or is damaged: {error}") from error


def read_npy(path: Path, label: str | None) -> Table:
    """Read X from an .npy file and y from the one beside it; `label` must be None.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If one of the files is missing or no such file, or is not one of numbers or classes.
    """
    if label is not None:
        raise ValueError(
            f"`label` is of tables: the labels of {path.name} are {labels_beside(path).name}"
        )
    pair = path, labels_beside(path)
    if not pair[1].is_file():
        raise FileNotFoundError(
            f"`data`: the labels of {str(path)!r} must be beside it as {pair[1].name}, and there "
            "is no such file"
        )
    X, y = (_Stored(one.stem, partial(one.open, "rb")) for one in pair)
    return _as_table(path, X, y, f"the labels in {pair[1].name}")


def _header(path: Path, stored: _Stored) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the type of an array, which memory can hold, before it is read."""
    try:
        with stored.open() as stream:
            return _shape_and_type(path, stored.name, stream)
    except OSError as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from error


def _shape_and_type(
    path: Path, name: str, stream: IO[bytes]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        one = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if one else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from error
    if dtype.hasobject:
        raise TypeError(
            f"{name} in {str(path)!r} holds Python objects, which are not read, since reading them "
            "could run anything: save it as numbers or strings, X.astype(float), y.astype(str)"
        )
    n_bytes = dtype.itemsize + (0 if dtype == np.float64 else 8)  # as stored, and as float64
    require_memory(math.prod(shape) * n_bytes // 8, f"{name} in {str(path)!r}", FEWER)
    return shape, dtype


def _array(path: Path, stored: _Stored) -> NDArray[Any]:
    try:
        with stored.open() as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from error
    return array


def _as_table(path: Path, inputs: _Stored, stored_labels: _Stored, where: str) -> Table:
    (shape, kind), (shape_y, kind_y) = (_header(path, one) for one in (inputs, stored_labels))
    if kind.kind not in "biuf":
        raise TypeError(f"X in {str(path)!r} must hold real numbers, got dtype {kind}")
    if len(shape) < 2 or 0 in shape:
        raise ValueError(
            f"X in {str(path)!r} must have shape (n, D), one row a sample, got {shape}"
        )
    if shape_y not in (shape[:1], (shape[0], 1)):
        raise ValueError(f"{where} must have shape ({shape[0]},), one a row of X, got {shape_y}")
    if kind_y.kind in "US":
        check_words(where, kind_y.itemsize // (4 if kind_y.kind == "U" else 1))
    labels, names = numbered(where, _array(path, stored_labels).reshape(shape[0]))
    X = _array(path, inputs)
    flat = np.asarray(X, dtype=np.float64).reshape(len(X), -1, order="C")
    bad = int(np.count_nonzero(~np.isfinite(flat)))
    if bad:
        raise ValueError(
            f"X in {str(path)!r} has {bad} NaN or infinite numbers: drop or impute them"
        )
    source = path.name + (f", arrays {' x '.join(map(str, X.shape[1:]))}" if X.ndim > 2 else "")
    columns = tuple(map(str, range(flat.shape[1])))
    return Table(path.stem, flat, labels, names, columns, source)


def read_arrays(
    path: Path, needed: tuple[str, ...], known: tuple[str, ...]
) -> dict[str, NDArray[Any]]:
    """Read arrays by their names from an .npz file: those needed, and known ones that are there.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there is no such file, it is damaged or lacks one that is needed, or one holds objects.
    """
    if not path.is_file():
        raise FileNotFoundError(f"`data`: there is no file {str(path)!r}")
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            for name in needed:
                if name not in names:
                    raise ValueError(
                        f"{str(path)!r} must hold the array {name}, got {listed(names)}"
                    )
            wanted = [name for name in (*needed, *known) if name in names]
            stored = [_Stored(name, partial(archive.open, f"{name}.npy")) for name in wanted]
            for one in stored:
                _header(path, one)
            return {one.name: _array(path, one) for one in stored}
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(path)!r} is no .npz file, or is damaged: {error}") from error
