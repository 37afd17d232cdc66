"""Where a run keeps itself: one folder, one run, one writer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import from_json, write_atomically

__all__ = ["Keeping"]

# What the folder holds: which run, whether it is finished, and the files that it has written.
INDEX = "run.json"
LOCK = ".lock"
STATES = "*run*.safetensors"


@dataclass(frozen=True)
class Keeping:
    """The folder of a run, if it has one.

    Attributes
    ----------
    folder : Path or None
        Where an unfinished run and its results are kept.
    resume : bool
        Whether to go on from there.
    """

    folder: Path | None = None
    resume: bool = False

    def state(self, name: str) -> Path | None:
        """The file of that name in the folder, if there is one to keep runs in."""
        return None if self.folder is None else self.folder / name

    @contextlib.contextmanager
    def opened(self, model: str) -> Iterator[None]:
        """Hold the folder for a run of `model`, from before any work until its files are written.

        Raises
        ------
        ValueError
            If another process writes there, if there is an unfinished run and `resume` was not
            asked for, or nothing to resume.
        """
        if self.folder is None:
            yield
            return
        from filelock import FileLock, Timeout

        lock = FileLock(self.folder / LOCK)
        self._check(self._index(), model)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise ValueError(
                f"another run is writing into {str(self.folder)!r} now: name another folder, or "
                "wait for it to end"
            ) from error
        try:
            yield
        finally:
            # Away before it is released: whoever waits for it has given up at once.
            with contextlib.suppress(OSError):
                (self.folder / LOCK).unlink()
            lock.release()

    def begin(self, model: str) -> None:
        """Note that a run begins, now that nothing can keep it from it.

        What an older, finished run has written is removed: a folder never holds two runs.
        """
        if self.folder is None:
            return
        older = self._index().get("files", [])
        if not self.resume:
            named = [self.folder / name for name in older if Path(name).name == name]
            for path in (*named, *self.folder.glob(STATES)):
                path.unlink(missing_ok=True)
        self._note({"model": model, "finished": False, "files": older})

    def finish(self, model: str, files: list[str], *, finished: bool) -> None:
        """Note what the run has written, and whether there is more of it to do."""
        if self.folder is not None:
            self._note({"model": model, "finished": finished, "files": files})

    def _index(self) -> Mapping[str, Any]:
        assert self.folder is not None
        try:
            index = from_json((self.folder / INDEX).read_bytes())
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            raise ValueError(
                f"{str(self.folder / INDEX)!r} cannot be read ({error}): name another folder"
            ) from error
        return index if isinstance(index, dict) else {}

    def _check(self, before: Mapping[str, Any], model: str) -> None:
        where = repr(str(self.folder))
        assert self.folder is not None
        kept = any(self.folder.glob(STATES))
        if self.resume and not kept:
            raise ValueError(
                f"there is no run to resume in {where}: leave `--resume` out to begin one"
            )
        if self.resume and before.get("model") != model:
            raise ValueError(
                f"{where} holds a run of the model {before.get('model')}, not of {model}: resume "
                "that one, or name another folder"
            )
        if kept and not self.resume and not before.get("finished"):
            raise ValueError(
                f"{where} holds an unfinished run of the model {before.get('model')}: go on "
                "with it by `--resume`, name another folder, or delete this one"
            )

    def _note(self, index: Mapping[str, Any]) -> None:
        assert self.folder is not None
        write_atomically(self.folder / INDEX, (json.dumps(index) + "\n").encode())
