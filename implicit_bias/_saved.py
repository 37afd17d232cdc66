"""Saved things, all in one format: a safetensors file, with JSON in its header."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._files import write_atomically
from ._version import __version__

__all__ = ["FORMAT", "Kind", "check_format", "kind_of", "read_saved", "write_saved"]

# Of every file that the package saves and reads; counts up when an older one can no longer be
# read. Limits without a number and runs of number 2 came before it, gatings were zip archives.
FORMAT = 3

_KEY = "implicit-bias"
_ZIP = b"PK\x03\x04"
_OLDER_RUN = "implicit-bias run "

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Kind:
    """What a file holds.

    Attributes
    ----------
    name : str
        Of a class, or of what else it is; stands in the file.
    writer : str
        What writes such files, for messages.
    again : str
        What to do with a file that cannot be used.
    """

    name: str
    writer: str
    again: str

    @classmethod
    def of(cls, saved_class: type, again: str = "save the result again") -> Kind:
        """The kind of a class with a method `save`."""
        return cls(saved_class.__name__, f"{saved_class.__name__}.save", again)

    def refused(self, path: str | os.PathLike[str], why: str) -> ValueError:
        """The error of a file that is not what is written."""
        return ValueError(
            f"{os.fspath(path)!r} must be a file as {self.writer} writes it, but {why}: it has "
            f"been damaged or changed, {self.again}"
        )

    @contextmanager
    def complete(self, path: str | os.PathLike[str], what: str = "its record") -> Iterator[None]:
        """Refuse the file where the block misses an entry of it, or is given one too many."""
        try:
            yield
        except (KeyError, TypeError) as error:
            raise self.refused(path, f"{what} lacks or misnames {error}") from error


def write_saved(
    path: str | os.PathLike[str], kind: Kind, arrays: Arrays, record: Mapping[str, Any]
) -> None:
    """Write arrays, and a record that JSON can hold, in place of what is there.

    Raises
    ------
    OSError
        If the file cannot be written, with its path; what was there before is there still.
    """
    from safetensors.numpy import save

    contiguous = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    header = {
        "format": FORMAT,
        "kind": kind.name,
        "version": __version__,
        "record": dict(record),
    }
    header["checksum"] = _checksum(contiguous, header)
    write_atomically(path, save(contiguous, metadata={_KEY: json.dumps(header)}))


def read_saved(
    path: str | os.PathLike[str], kind: Kind, names: Collection[str] | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays, called `names` unless that is None, and the record that `write_saved` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not one of this kind and format, whole and unchanged.
    """
    header, arrays = _open(path, kind)
    if header["kind"] != kind.name:
        raise ValueError(f"{os.fspath(path)!r} holds no saved {kind.name} but {header['kind']}")
    if header.pop("checksum", None) != _checksum(arrays, header):
        raise kind.refused(path, "its checksum is that of other numbers")
    if names is not None and set(arrays) != set(names):
        raise kind.refused(path, f"it has the arrays {sorted(arrays)}")
    return arrays, header["record"]


def kind_of(path: str | os.PathLike[str]) -> str:
    """The name of what a file holds, not looking at its arrays.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_saved`.
    """
    anything = Kind("result", "this package", "save it again")
    header, _ = _open(path, anything, arrays=False)
    return str(header["kind"])


def check_format(path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """See that a header names the format that this version reads.

    Raises
    ------
    ValueError
        With the version that wrote another one.
    """
    number, version = header.get("format"), header.get("version", "an unknown version")
    if number == FORMAT:
        return
    newer = isinstance(number, int) and number > FORMAT
    way = "update it" if newer else "load it with the version that wrote it, or make it again"
    raise ValueError(
        f"{os.fspath(path)!r} was saved by implicit-bias {version} in format "
        f"{'1' if number is None else number}, and implicit-bias {__version__} reads format "
        f"{FORMAT} alone: {way}"
    )


def _open(
    path: str | os.PathLike[str], kind: Kind, *, arrays: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header of a file in today's format, and its arrays."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)!r} to load a {kind.name} from")
    with open(path, "rb") as raw:
        if raw.read(len(_ZIP)) == _ZIP:
            check_format(path, {"version": "0.1.0 or older, or by another program,"})
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            found = {name: file.get_tensor(name) for name in file.keys()} if arrays else {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} is not a safetensors file: {error}; {kind.again}"
        ) from error
    return _header(path, kind, metadata), found


def _header(
    path: str | os.PathLike[str], kind: Kind, metadata: Mapping[str, str]
) -> dict[str, Any]:
    if metadata.get("format", "").startswith(_OLDER_RUN):
        check_format(path, {"format": metadata["format"].removeprefix(_OLDER_RUN)})
    try:
        header = json.loads(metadata.get(_KEY, "{}"))
    except json.JSONDecodeError as error:
        raise kind.refused(path, f"its metadata is no JSON ({error})") from error
    if not isinstance(header, dict) or not header:
        raise ValueError(f"{os.fspath(path)!r} holds no saved {kind.name}")
    check_format(path, header)
    if not {"kind", "record"} <= set(header):
        raise kind.refused(path, f"its metadata has {sorted(header)} alone")
    return header


def _checksum(arrays: Arrays, header: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of names, types, shapes and bytes of arrays, and of the header."""
    sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        sha.update(f"{name} {array.dtype} {array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()
