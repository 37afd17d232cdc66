"""Readers of the IDX files of MNIST-like data sets, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import require_memory

_GZIP_MAGIC = b"\x1f\x8b"
_UNSIGNED_BYTE = 8  # the third byte of an IDX file: its element type


def idx_pair(folder: Path) -> Literal["train", "t10k"]:
    """Return the pair of files that is read of a folder: that for training where it is there."""
    return "train" if any(folder.glob("train-*-idx[13]-ubyte*")) else "t10k"


def find_idx(folder: Path, stem: str) -> Path:
    """Return the path of an IDX file; raises FileNotFoundError where there is none."""
    for path in (folder / stem, folder / f"{stem}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"the folder of `data_dir`, or `data`, must hold {stem} or {stem}.gz, got "
        f"{str(folder)!r} without either: fetch the file, or name another folder"
    )


def read_idx(path: Path, *, n_axes: int) -> NDArray[np.uint8]:
    """Read the array of bytes in one IDX file: magic number, axis lengths (big-endian), data.

    Raises
    ------
    ValueError
        If the file is damaged, or its array has another number of axes.
    """

    def damaged(problem: str) -> ValueError:
        """Return the error of a file with this problem."""
        return ValueError(f"the IDX file {str(path)!r} is damaged: {problem}; fetch it again")

    wanted, header = bytes((0, 0, _UNSIGNED_BYTE, n_axes)), 4 + 4 * n_axes
    try:
        with _opened(path) as stream:
            head = stream.read(header)
            if head[:4] != wanted:
                raise damaged(
                    f"it must begin with the bytes {wanted.hex(' ')}, got {head[:4].hex(' ')}"
                )
            if len(head) < header:
                raise damaged(f"its header must have {header} bytes, got {len(head)}")
            shape = struct.unpack(f">{n_axes}I", head[4:])
            n = math.prod(shape)
            require_memory(n // 8, f"the IDX file {str(path)!r}", "fetch it again")
            content = stream.read(n + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(f"it cannot be unzipped ({error})") from error
    if len(content) != n:
        more = " or more" if len(content) > n else ""
        got = f"{header + len(content)}{more}"
        raise damaged(f"shape {shape} needs {header + n} bytes, got {got}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape, order="C")


def _opened(path: Path) -> gzip.GzipFile | BufferedReader:
    with path.open("rb") as stream:
        zipped = stream.read(2) == _GZIP_MAGIC
    return gzip.open(path) if zipped else path.open("rb")
