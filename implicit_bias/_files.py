"""Files: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path` in place of what is there; never half of it.

    Raises
    ------
    OSError
        If it cannot be written, with the path; what was there before is there still.
    """
    path = Path(path)
    beside = path.with_name(path.name + ".new")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except OSError as error:
        if beside.is_file():
            beside.unlink()
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
