"""Files: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["check_writable", "write_atomically"]


def write_atomically(
    path: str | os.PathLike[str], content: bytes, *, beside: str | None = None
) -> None:
    """Write `content` to `path` in place of what is there; never half of it.

    Parameters
    ----------
    path : path
    content : bytes
    beside : str, optional
        The name of the file that is written first, in the same folder: one of its own for every
        writer, where several may write the same file.

    Raises
    ------
    OSError
        If it cannot be written, with the path; what was there before is there still.
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
    """See that a file or folder can be written, before any long work.

    Raises
    ------
    ValueError
        With what stands in the way.
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
