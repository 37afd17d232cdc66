"""Files: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_atomically"]


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
