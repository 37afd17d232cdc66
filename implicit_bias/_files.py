"""Files: written whole or not at all, and read without trust in their content."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

__all__ = ["check_writable", "from_json", "write_atomically"]

# Levels of JSON that are read: reports have about 30.
DEEPEST = 90
# Control characters, which may command a terminal; tabs and line ends are not among them.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, beside: str | None = None
) -> None:
    """Write `content` to `path` in place of an earlier file; never half of it.

    Parameters
    ----------
    path : path
    content : bytes
    beside : str, optional
        Name of the file that is written first, in the same folder: each of several writers of the
        same file needs its own.

    Raises
    ------
    OSError
        If it cannot be written, with the path; an earlier file stays as it was.
    """
    path = Path(path)
    new = path.with_name(beside or path.name + ".new")
    try:
        new.write_bytes(content)
        os.replace(new, path)
    except OSError as error:
        if new.is_file():
            new.unlink()
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def check_writable(path: str | os.PathLike[str], *, folder: bool) -> None:
    """Check that a file or folder can be written, before any long work.

    Raises
    ------
    ValueError
        With the reason why it cannot.
    """
    path = Path(path)
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"cannot save into {str(path)!r}: it is a file, name a folder")
    if not folder and path.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: it is a folder, name a file")
    target = path if folder else path.parent
    # The nearest place that exists decides whether those below it can be made.
    existing = next(place for place in (target, *target.parents) if place.exists())
    if not existing.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: {str(existing)!r} is a file, not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ValueError(f"cannot write {str(path)!r}: no permission to write in {str(existing)!r}")
    if not folder and existing != target:
        raise ValueError(f"cannot write {str(path)!r}: there is no folder {str(target)!r}")


def from_json(text: str | bytes) -> Any:
    """Read JSON of unknown origin, without control characters in its texts.

    Raises
    ------
    ValueError
        If it is no JSON, or nested deeper than any result is.
    """
    try:
        return _harmless(json.loads(text), DEEPEST)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None


def _harmless(tree: Any, levels: int) -> Any:
    """The tree without control characters in its texts; RecursionError where it has more levels."""
    if levels < 0:
        raise RecursionError
    if isinstance(tree, str):
        return _COMMANDS.sub("", tree)
    if isinstance(tree, list):
        return [_harmless(entry, levels - 1) for entry in tree]
    if isinstance(tree, dict):
        return {_harmless(key, 0): _harmless(value, levels - 1) for key, value in tree.items()}
    return tree
