"""Saved things, all in one format: a safetensors file, with JSON in its header.

Within one format number classes may gain fields that have a default and lose any: an older file
takes the default, and what it has too much is left out. Anything else counts `FORMAT` up.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import __version__
from .files import from_json, write_atomically
from .names import Unreadable, bare, name_of

# Of every file that the package saves and reads; counts up when an older one can no longer be
# read. Limits without a number and runs of number 2 came before it, gatings were zip archives;
# files of number 3 named classes by their modules.
FORMAT = 4

# Bytes of an array of texts, in which each takes as many as the longest.
WIDEST = 2**28
_KEY, _CHECKSUM = "implicit-bias", "checksum"
_ZIP = b"PK\x03\x04"
_OLDER_RUN = "implicit-bias run "

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of saved file.

    Attributes
    ----------
    name : str
        Stands in the file: the promised name of a class, or a word for what else it is.
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
        """Return the kind of a class with a method `save`, a user's own class by its name."""
        name = saved_class.__name__
        return cls(name_of(saved_class) or name, f"{name}.save", again)

    def refused(self, path: str | os.PathLike[str], why: str) -> ValueError:
        """Return the error for a file that is not what is written."""
        return ValueError(
            f"{os.fspath(path)!r} must be a file as {self.writer} writes it, but {why}: it has "
            f"been damaged or changed, {self.again}"
        )

    @contextmanager
    def complete(self, path: str | os.PathLike[str], what: str = "its record") -> Iterator[None]:
        """Refuse a whole file where the block finds it to be of another version than this."""
        try:
            yield
        except (Unreadable, KeyError, TypeError, AttributeError) as error:
            why = error if isinstance(error, Unreadable) else f"{what} lacks or misnames {error}"
            header = _header(path, self, _open(path, self, arrays=False)[0])
            version = header.get("version", "an unknown version")
            raise ValueError(
                f"{os.fspath(path)!r} was saved by implicit-bias {version}, and "
                f"implicit-bias {__version__} cannot read it: {why}; load it with the version that "
                f"wrote it, or {self.again}"
            ) from error


# An unfinished run, to go on from.
RUN = Kind("run", "training", "delete it and begin anew")


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
    text = json.dumps(header)
    metadata = {_KEY: text, _CHECKSUM: _checksum(contiguous, text)}
    write_atomically(path, save(contiguous, metadata=metadata))


def read_saved(
    path: str | os.PathLike[str], kind: Kind
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read the arrays and the record that `write_saved` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not one of this kind and format, whole and unchanged.
    """
    metadata, arrays = _open(path, kind)
    header = _header(path, kind, metadata)
    if header["kind"] != kind.name:
        raise ValueError(
            f"{os.fspath(path)!r} holds no saved {bare(kind.name)} but {bare(header['kind'])}"
        )
    if metadata.get(_CHECKSUM) != _checksum(arrays, metadata[_KEY]):
        raise kind.refused(path, "its checksum is that of other numbers")
    return arrays, header["record"]


def filled(saved_class: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields of a dataclass or named tuple, from those of them that a file has.

    Parameters
    ----------
    saved_class : type
    state : mapping of str to value
        A field that is not there takes its default; an entry that is no field is left out.

    Raises
    ------
    Unreadable
        If one that has no default is not there.
    """
    if not isinstance(state, Mapping):
        raise Unreadable(f"{type(state).__name__} stands where a {saved_class.__name__} should be")
    if issubclass(saved_class, tuple):
        given = saved_class._field_defaults
        defaults = {name: given.get(name, MISSING) for name in saved_class._fields}
    else:
        defaults = {
            field.name: field.default
            if field.default_factory is MISSING
            else field.default_factory()
            for field in sorted(fields(saved_class), key=attrgetter("kw_only"))
        }
    values = {name: state.get(name, default) for name, default in defaults.items()}
    lacking = [name for name, value in values.items() if value is MISSING]
    if lacking:
        raise Unreadable(f"it has no {', '.join(lacking)} of a {saved_class.__name__}")
    return values


def text_array(texts: Any) -> NDArray[np.str_]:
    """Return an array of texts, from lists of them as `tolist` gives them.

    Raises
    ------
    Unreadable
        If they are none, or one of them is so long that all take more than `WIDEST` bytes.
    """
    array = np.array(texts, dtype=object)
    if not all(isinstance(text, str) for text in array.ravel()):
        raise Unreadable("its texts are no texts, or in lists of different lengths")
    longest = max(map(len, array.ravel()), default=0)
    if 4 * longest * array.size > WIDEST:
        raise Unreadable(f"{array.size} texts of up to {longest} characters are too many")
    return array.astype(np.str_)


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the promised name of a file's contents, or the word for them, without its arrays.

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_saved`.
    """
    anything = Kind("result", "this package", "save it again")
    metadata, _ = _open(path, anything, arrays=False)
    return str(_header(path, anything, metadata)["kind"])


def check_format(path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """Refuse a header that names another format than this version reads.

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
) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Read the metadata of a file, and its arrays."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(
            f"there is no file {os.fspath(path)!r} to load a {bare(kind.name)} from"
        )
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
    except (TypeError, AttributeError) as error:
        raise ValueError(
            f"{os.fspath(path)!r} has arrays of a type that NumPy does not have ({error}): it is "
            "none that this package writes"
        ) from error
    return metadata, found


def _header(
    path: str | os.PathLike[str], kind: Kind, metadata: Mapping[str, str]
) -> dict[str, Any]:
    if metadata.get("format", "").startswith(_OLDER_RUN):
        check_format(path, {"format": metadata["format"].removeprefix(_OLDER_RUN)})
    try:
        header = from_json(metadata.get(_KEY, "{}"))
    except ValueError as error:
        raise kind.refused(path, f"its metadata cannot be read ({error})") from error
    if not isinstance(header, dict) or not header:
        raise ValueError(f"{os.fspath(path)!r} holds no saved {bare(kind.name)}")
    check_format(path, header)
    if not (isinstance(header.get("kind"), str) and isinstance(header.get("record"), dict)):
        raise kind.refused(path, "its metadata name no kind, or have no record")
    return header


def _checksum(arrays: Arrays, header: str) -> str:
    """Return the SHA-256, in hexadecimal, of the arrays and of the header."""
    sha = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        array = arrays[name]
        sha.update(f"{name} {array.dtype} {array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()
