"""Results in one safetensors file: arrays, and a record of all else as its metadata."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import write_atomically
from .._version import __version__

__all__ = ["read_saved", "refused", "write_saved"]

_KEY = "implicit-bias"


def write_saved(
    path: str | os.PathLike[str],
    saved_class: type,
    arrays: Mapping[str, NDArray[Any]],
    record: Mapping[str, Any],
) -> None:
    """Write arrays and a record that JSON can hold, as a result of `saved_class`.

    Raises
    ------
    OSError
        If the file cannot be written, with its path.
    """
    from safetensors.numpy import save

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    whole = {"class": saved_class.__name__, "version": __version__, **record}
    whole["checksum"] = _checksum(contiguous, whole)
    write_atomically(path, save(contiguous, metadata={_KEY: json.dumps(whole)}))


def read_saved(
    path: str | os.PathLike[str], saved_class: type, names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays, called `names`, and the record that `write_saved` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a saved result of this class, whole and unchanged.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} to load a limit from")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_KEY, "{}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)!r} is not a safetensors file: {error}") from error
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise refused(path, saved_class, f"its metadata is no JSON ({error})") from error
    if not isinstance(record, dict) or record.get("class") != saved_class.__name__:
        raise ValueError(f"{os.fspath(path)!r} holds no saved {saved_class.__name__}")
    if set(arrays) != set(names):
        raise refused(path, saved_class, f"it has the arrays {sorted(arrays)}")
    if record.pop("checksum", None) != _checksum(arrays, record):
        raise refused(path, saved_class, "its checksum is that of other numbers")
    return arrays, record


def refused(path: str | os.PathLike[str], saved_class: type, why: str) -> ValueError:
    """The error of a file that is not what `saved_class` saves."""
    return ValueError(
        f"{os.fspath(path)!r} must be a file as {saved_class.__name__}.save writes it, but {why}: "
        "it has been damaged or changed, save the result again"
    )


def _checksum(arrays: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of names, types, shapes and bytes of arrays, and of the record."""
    sha = hashlib.sha256(json.dumps(record, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        sha.update(f"{name} {array.dtype} {array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()
