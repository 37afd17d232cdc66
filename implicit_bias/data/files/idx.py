"""Readers of the IDX files of MNIST-like data sets, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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

    content = path.read_bytes()
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise damaged(f"it cannot be unzipped ({error})") from error
    wanted = bytes((0, 0, _UNSIGNED_BYTE, n_axes))
    if content[:4] != wanted:
        raise damaged(f"it must begin with the bytes {wanted.hex(' ')}, got {content[:4].hex(' ')}")
    header = 4 + 4 * n_axes
    if len(content) < header:
        raise damaged(f"its header must have {header} bytes, got {len(content)}")
    shape = struct.unpack(f">{n_axes}I", content[4:header])
    if len(content) != header + math.prod(shape):
        raise damaged(f"shape {shape} needs {header + math.prod(shape)} bytes, got {len(content)}")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape, order="C")
