"""The folder of a run: one folder, one run, one writer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import from_json, write_atomically
from ..reports.files import INDEX

__all__ = ["RunFolder"]

LOCK = ".lock"
STATES = "*run*.safetensors"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, if it has one.

    Attributes
    ----------
    path : Path or None
        The folder of an unfinished run and of the results.
    resume : bool
        True to go on with the run in it.
    """

    path: Path | None = None
    resume: bool = False

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
            If another process writes there, if there is an unfinished run and `resume` was not
            asked for, or nothing to resume.
        """
        if self.path is None:
            yield
            return
        from filelock import FileLock, Timeout

        lock = FileLock(self.path / LOCK)
        self._check(self._index(), model)
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ValueError(
                f"another run is writing into {str(self.path)!r} now: name another folder, or "
                "wait for it to end"
            ) from error
        try:
            yield
        finally:
            # Away before it is released: whoever waits for it has given up at once.
            with contextlib.suppress(OSError):
                (self.path / LOCK).unlink()
            lock.release()

    def begin(self, model: str) -> None:
        """Note that a run begins, now that nothing can keep it from it.

        What an older, finished run has written is removed: a folder never holds two runs.
        """
        if self.path is None:
            return
        older = self._index().get("files", [])
        if not self.resume:
            named = [self.path / name for name in older if Path(name).name == name]
            for path in (*named, *self.path.glob(STATES)):
                path.unlink(missing_ok=True)
        self._note({"model": model, "finished": False, "files": older})

    def finish(self, model: str, files: list[str], *, finished: bool) -> None:
        """Note the files that the run has written; `finished` is False if it can go on."""
        if self.path is not None:
            self._note({"model": model, "finished": finished, "files": files})

    def _index(self) -> Mapping[str, Any]:
        assert self.path is not None
        try:
            index = from_json((self.path / INDEX).read_bytes())
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{str(self.path / INDEX)!r} cannot be read ({error}): name another folder"
            ) from error
        return index if isinstance(index, dict) else {}

    def _check(self, before: Mapping[str, Any], model: str) -> None:
        where = repr(str(self.path))
        assert self.path is not None
        left = any(self.path.glob(STATES))
        if self.resume and not left:
            raise ValueError(
                f"there is no run to resume in {where}: leave `--resume` out to begin one"
            )
        if self.resume and before.get("model") != model:
            raise ValueError(
                f"{where} holds a run of the model {before.get('model')}, not of {model}: resume "
                "that one, or name another folder"
            )
        if left and not self.resume and not before.get("finished"):
            raise ValueError(
                f"{where} holds an unfinished run of the model {before.get('model')}: go on "
                "with it by `--resume`, name another folder, or delete this one"
            )

    def _note(self, index: Mapping[str, Any]) -> None:
        assert self.path is not None
        write_atomically(self.path / INDEX, (json.dumps(index) + "\n").encode())
