"""The folder of a run: one folder, one run, one writer."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._support.files import clear_unfinished, from_json, read_plain, write_atomically
from .reports.saved.files import INDEX, PAGE, RESULTS, SCREEN, is_beside

log = logging.getLogger(__name__)

LOCK = ".lock"
STATES = "*run*.safetensors"
OVERWRITE = "`--overwrite` (from Python `overwrite=True`)"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, if it has one.

    Attributes
    ----------
    path : Path or None
        The folder of an unfinished run and of the results.
    resume : bool
        True to go on with the run in it.
    overwrite : bool
        True to begin anew whatever is in it.
    """

    path: Path | None = None
    resume: bool = False
    overwrite: bool = False

    def state(self, name: str) -> Path | None:
        """Return the path of a file in the folder; None without a folder."""
        return None if self.path is None else self.path / name

    def resumes(self, name: str, *, first: bool = False) -> bool:
        """Return True for a part of the run that goes on, from its state file of that name.

        Of a run that is resumed the first part had begun, whether its file is there or not; others
        had where they left one.
        """
        state = self.state(name)
        return self.resume and (first or (state is not None and state.exists()))

    @contextlib.contextmanager
    def opened(self, model: str) -> Iterator[None]:
        """Hold the folder for a run of `model`, from before any work until its files are written.

        Raises
        ------
        ValueError
            If another process writes there, if it holds what the run would replace and `overwrite`
            was not asked for, or nothing to resume.
        """
        path = self.path
        if path is None:
            yield
            return
        if self.resume and not path.exists():
            raise ValueError(_nothing(path))
        path.mkdir(parents=True, exist_ok=True)
        with _held(path):
            clear_unfinished(path)
            self._check(path, model)
            yield

    def begin(self, model: str) -> None:
        """Note that a run begins, now that nothing can keep it from it.

        What an older run has written is removed: a folder never holds two runs. On a full disk
        the run begins all the same, with a warning.
        """
        if self.path is None or self.resume:  # one that goes on may still turn out to be another
            return
        older = _files(_index(self.path))
        for path in (*(self.path / name for name in older), *_states(self.path)):
            path.unlink(missing_ok=True)
        try:
            _note(self.path, {"model": model, "finished": False, "files": older})
        except OSError as error:
            log.warning("the run begins, but nothing may be kept of it: %s", error)

    def finish(self, model: str, files: list[str], *, finished: bool) -> None:
        """Note the files that the run has written; `finished` is False if it can go on."""
        if self.path is not None:
            _note(self.path, {"model": model, "finished": finished, "files": files})

    def _check(self, path: Path, model: str) -> None:
        """Refuse a folder with what the run would replace, or with nothing to go on from."""
        for one in path.iterdir():
            if (_written(one.name) or one.name == INDEX) and not _plain(one):
                raise ValueError(f"cannot write {str(one)!r}: it is no plain file, but a link or "
                                 "a folder: remove it, or name another folder")  # fmt: skip
        if self.resume:
            _check_resumed(path, model)
        elif not self.overwrite:
            _check_free(path, model)


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of the folder, against all other processes."""
    from filelock import FileLock, Timeout

    lock = FileLock(path / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise ValueError(
            f"another run is writing into {str(path)!r} now: name another folder, or "
            "wait for it to end"
        ) from error
    try:
        yield
    finally:
        # Away before it is released: whoever waits for it has given up at once.
        with contextlib.suppress(OSError):
            (path / LOCK).unlink()
        lock.release()


def _index(path: Path) -> Mapping[str, Any]:
    """Return what the folder says of its run; nothing where that is missing or damaged."""
    try:
        return _noted(path)
    except ValueError:
        return {}


def _noted(path: Path) -> Mapping[str, Any]:
    """Return what the folder says of its run; ValueError where it cannot be read."""
    try:
        index = from_json(read_plain(path / INDEX))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(error) from error
    if not isinstance(index, dict) or "model" not in index:
        raise ValueError("it names no model")
    return index


def _files(index: Mapping[str, Any]) -> list[str]:
    """Return the files that a run says it has written, those of names that it may give."""
    listed = index.get("files")
    return [name for name in listed if _written(name)] if isinstance(listed, list) else []


def _states(path: Path) -> list[Path]:
    """Return the files of unfinished runs, not those of a user that are named alike."""
    return [one for one in path.glob(STATES) if _is_state(one)]


def _check_resumed(path: Path, model: str) -> None:
    if not any(path.glob(STATES)):
        raise ValueError(_nothing(path))
    # Where its index is damaged, the file of the run itself says whether it is this one.
    before = _index(path).get("model", model)
    if before != model:
        raise ValueError(
            f"{str(path)!r} holds a run of the model {before}, not of {model}: resume "
            "that one, or name another folder"
        )


def _check_free(path: Path, model: str) -> None:
    where, left = repr(str(path)), _states(path)
    again = f"name another folder, or begin anew over it by {OVERWRITE}"
    go_on = f"go on with it by `--resume`, {again}" if left else again
    try:
        index = _noted(path)
    except ValueError as error:
        raise ValueError(f"{str(path / INDEX)!r} cannot be read ({error}): {go_on}") from (error)
    if left and not index.get("finished"):
        of = f"of the model {index['model']}" if index else f"without its {INDEX}"
        raise ValueError(f"{where} holds an unfinished run {of}: {go_on}")
    if index and index["model"] != model:
        raise ValueError(f"{where} holds a run of the model {index['model']}: {again}")
    known = {*_files(index), *(one.name for one in left)}
    others = {one.name for one in path.iterdir() if _written(one.name)} - known
    if others:
        raise ValueError(
            f"{where} holds files that no run has noted there and this one may replace "
            f"({', '.join(sorted(others))}): {again}"
        )


def _nothing(path: Path) -> str:
    return f"there is no run to resume in {str(path)!r}: leave `--resume` out to begin one"


def _note(path: Path, index: Mapping[str, Any]) -> None:
    write_atomically(path / INDEX, (json.dumps(index) + "\n").encode())


def _written(name: object) -> bool:
    """Return True for the name of a result."""
    return name in (RESULTS, SCREEN, PAGE) or is_beside(name)


def _plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _is_state(path: Path) -> bool:
    from .._support.saved import (  # with NumPy, which the command line does not load at once
        RUN,
        kind_of,
    )

    try:
        return kind_of(path) == RUN.name
    except ValueError:
        return False
