"""Fitted gatings in npz archives without pickles, all of them alike."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._files import write_atomically

__all__ = ["read_gating", "write_gating"]


def write_gating(path: str | os.PathLike[str], gating_class: type, **arrays: Any) -> None:
    """Write arrays, numbers and strings as a gating of this class.

    Raises
    ------
    OSError
        If the file cannot be written, with its path.
    """
    content = io.BytesIO()
    np.savez(content, gating=np.array(gating_class.__name__), **arrays)
    write_atomically(path, content.getvalue())


def read_gating(
    path: str | os.PathLike[str], gating_class: type, names: Collection[str]
) -> dict[str, NDArray[Any]]:
    """The arrays called `names` that `write_gating` wrote; the archive has a checksum of each.

    Raises
    ------
    ValueError
        If the file is damaged, holds another gating or numbers that are not finite.
    """
    wanted = f"{os.fspath(path)!r} must be a file that {gating_class.__name__}.save wrote"
    try:
        # Given a name, np.load would leave the file of a damaged archive open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            kind = str(archive["gating"])
            saved = {name: archive[name] for name in names} if kind == gating_class.__name__ else {}
    except (
        KeyError,
        EOFError,
        IndexError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(f"{wanted}, got {error}: save the gates again") from error
    if not saved:
        raise ValueError(f"{wanted}, but it holds {kind}: load it with {kind}.load")
    for name, array in saved.items():
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise ValueError(f"{wanted}, got numbers in {name!r} that are not finite")
    return saved
