"""Results in one safetensors file: arrays, and a record of all else as its metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__

__all__ = ["read_saved", "write_saved"]


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
        If the file cannot be written.
    """
    from safetensors.numpy import save

    whole = {"class": saved_class.__name__, "version": __version__, **record}
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    Path(path).write_bytes(save(contiguous, metadata={"implicit-bias": json.dumps(whole)}))


def read_saved(
    path: str | os.PathLike[str], saved_class: type, names: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays, called `names`, and the record that `write_saved` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a saved result of this class.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} to load a limit from")
    try:
        with safe_open(path, framework="numpy") as file:
            record = json.loads((file.metadata() or {}).get("implicit-bias", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{os.fspath(path)!r} is not a safetensors file: {error}") from error
    if record.get("class") != saved_class.__name__ or set(arrays) != set(names):
        raise ValueError(f"{os.fspath(path)!r} holds no saved {saved_class.__name__}")
    return arrays, record
