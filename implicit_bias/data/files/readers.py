"""Readers of a user's own files, by their endings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from ..._support.extras import require
from ..names import ENDINGS
from ..table import Table
from .array_files import read_npy, read_npz
from .frame_files import read_csv, read_parquet

READERS: Mapping[str, Callable[[Path, str | None], Table]] = MappingProxyType(
    dict(zip(ENDINGS, (read_npz, read_npy, read_csv, read_parquet), strict=True))
)
# Packages that tables need.
NEEDS = MappingProxyType({".csv": ("pandas",), ".parquet": ("pandas", "pyarrow")})


def read_table(path: Path, label: str | None = None) -> Table:
    """Read a file by its ending.

    Parameters
    ----------
    path : Path
        An .npz file with the arrays X and y; the X of a pair of .npy files; a .csv file whose first
        line names its columns; or a .parquet file.
    label : str, optional
        The column of the labels, or the array of an .npz file. Otherwise the array y, and the one
        column that is called label, target, class or y.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If it is no such file, or holds what is no number where numbers are wanted.
    MissingExtra
        If tables need pandas or pyarrow, which are not installed.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"`data` must name a file that ends in {', '.join(ENDINGS)}, or a folder of IDX files, "
            f"got {str(path)!r}"
        )
    require(*NEEDS.get(path.suffix.lower(), ()))
    if not path.is_file():
        raise FileNotFoundError(f"`data`: there is no file {str(path)!r}")
    return reader(path, label)
