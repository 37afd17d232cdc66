"""Readers of NumPy's files, .npz and a pair of .npy; nothing is ever unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import require_memory
from ..names import labels_beside
from ..table import FEWER, Table, listed, numbered


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
            X, y = (_member(path, archive, name) for name in ("X", label))
    except zipfile.BadZipFile as error:
        raise ValueError(f"{str(path)!r} is no .npz file, or is damaged: {error}") from error
    return _as_table(path, X, y, f"the labels {label!r} of {path.name}")


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as stream:
        _check_header(path, name, stream)
    with archive.open(f"{name}.npy") as stream:
        return _array(path, stream)


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
    X, y = (_file(one) for one in pair)
    return _as_table(path, X, y, f"the labels in {pair[1].name}")


def _file(path: Path) -> NDArray[Any]:
    with path.open("rb") as stream:
        _check_header(path, path.stem, stream)
        stream.seek(0)
        return _array(path, stream)


def _check_header(path: Path, name: str, stream: Any) -> None:
    """Check the type of an array, and that memory can hold it, before it is read."""
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
    require_memory(int(np.prod(shape, dtype=float)), f"{name} in {str(path)!r}", FEWER)


def _array(path: Path, stream: Any) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{str(path)!r} is damaged: {error}") from error
    return array


def _as_table(path: Path, X: NDArray[Any], y: NDArray[Any], where: str) -> Table:
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X in {str(path)!r} must hold real numbers, got dtype {X.dtype}")
    if X.ndim < 2 or 0 in X.shape:
        raise ValueError(
            f"X in {str(path)!r} must have shape (n, D), one row a sample, got {X.shape}"
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != X.shape[:1]:
        raise ValueError(f"{where} must have shape ({len(X)},), one a row of X, got {y.shape}")
    labels, names = numbered(where, y)
    flat = np.asarray(X, dtype=np.float64).reshape(len(X), -1, order="C")
    bad = int(np.count_nonzero(~np.isfinite(flat)))
    if bad:
        raise ValueError(
            f"X in {str(path)!r} has {bad} NaN or infinite numbers: drop or impute them"
        )
    source = path.name + (f", arrays {' x '.join(map(str, X.shape[1:]))}" if X.ndim > 2 else "")
    columns = tuple(map(str, range(flat.shape[1])))
    return Table(path.stem, flat, labels, names, columns, source)
