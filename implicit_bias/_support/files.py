"""Files: written whole or not at all, and read without trust in their content."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO

# Levels of JSON that are read: reports have about 30.
DEEPEST = 90
# Control characters, which may command a terminal, but for tabs and line ends; and marks of the
# direction of writing, which show a text in another order than it has.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Files that are being written, or that a killed writer has left, and when they must be the latter.
UNFINISHED, UNFINISHED_SECONDS = ".*.new", 60.0
NOT_PLAIN = "it is no plain file, but a pipe or a device"
# A new file of this process alone: none that is there, nor what a link points to.
_NEW = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
# Neither a link's target is opened, nor is there a wait for the writer of a pipe.
_OLD = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


def read_plain(path: str | os.PathLike[str]) -> bytes:
    """Read a file of a folder that may be a stranger's: no link, no pipe, no device.

    Raises
    ------
    OSError
        If it is none, or cannot be read, with its path.
    """
    path = Path(path)
    try:
        with open_plain(path) as file:
            return file.read()
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def open_plain(path: Path) -> BinaryIO:
    """Open a file of a folder that may be a stranger's: no link, no pipe, no device.

    Raises
    ------
    OSError
        If it is none, without its path, or cannot be opened.
    """
    check_plain(path)
    file = open(os.open(path, _OLD), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it has just become another
        file.close()
        raise OSError(errno.EINVAL, NOT_PLAIN)
    return file


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write `content` to `path` in place of an earlier file; never half of it.

    It is on the disk when this returns: the content is written to a new file in the same folder,
    which then takes the name. Writers of one file do not disturb each other, the last one wins.

    Parameters
    ----------
    path : path
        No link: neither it nor what it points to is replaced.
    content : bytes

    Raises
    ------
    OSError
        If it cannot be written, with the path; an earlier file stays as it was.
    """
    path = Path(path)
    new = path.with_name(f".{secrets.token_hex(8)}.new")
    made = False  # the new file is there
    try:
        check_plain(path)
        with open(os.open(new, _NEW, 0o666), "wb") as file:
            made = True
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
        made = False
        _sync_folder(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if made:
            new.unlink(missing_ok=True)


def check_plain(path: Path) -> None:
    """Refuse a link, a device, or anything else that is there and no file of its own.

    Raises
    ------
    OSError
        Without the path.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link: name the file itself")
    if path.exists() and not path.is_file():
        kind = errno.EISDIR if path.is_dir() else errno.EINVAL
        raise OSError(kind, "it is a folder, name a file" if path.is_dir() else NOT_PLAIN)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where its file system can say so."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be written, but not listed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def clear_unfinished(folder: Path) -> None:
    """Delete what killed writers have left in a folder, and nothing that may still be written."""
    for path in folder.glob(UNFINISHED):
        with contextlib.suppress(FileNotFoundError):  # another process cleared it, or finished it
            if time.time() - path.lstat().st_mtime > UNFINISHED_SECONDS:
                path.unlink()


def check_writable(path: str | os.PathLike[str], *, folder: bool) -> None:
    """Check that a file or folder can be written, before any long work.

    Raises
    ------
    ValueError
        With the reason why it cannot.
    """
    path = Path(path)
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"{str(path)!r} is a file: name a folder")
    if not folder:
        try:
            check_plain(path)
        except OSError as error:
            raise ValueError(f"cannot write {str(path)!r}: {error.strerror}") from None
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
        return _cleaned(json.loads(text), DEEPEST)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None


def harmless(text: str) -> str:
    """Return a text without what may command a terminal, or turn the order of its letters."""
    return _COMMANDS.sub("", text)


def _cleaned(tree: Any, levels: int) -> Any:
    """The tree without control characters in its texts; RecursionError where it has more levels."""
    if levels < 0:
        raise RecursionError
    if isinstance(tree, str):
        return harmless(tree)
    if isinstance(tree, list):
        return [_cleaned(entry, levels - 1) for entry in tree]
    if isinstance(tree, dict):
        return {_cleaned(key, 0): _cleaned(value, levels - 1) for key, value in tree.items()}
    return tree
