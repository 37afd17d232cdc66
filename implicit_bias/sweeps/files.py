"""A sweep as a file: TOML with the model, its grid, what is fixed, and the engine."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..options.values import nearest

__all__ = ["SweepFile", "read_sweep_file"]

ENGINE = ("name", "scheduler", "threads", "options")


@dataclass(frozen=True)
class SweepFile:
    """A sweep as a file describes it.

    Attributes
    ----------
    model : str
    grid, options : mapping
        As `sweep` takes them.
    engine : mapping
        Arguments of an `Engine`.
    """

    model: str
    grid: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)


def read_sweep_file(path: Path) -> SweepFile:
    """Read a file such as

        model = "gln"
        options = { n_train = 200 }
        grid = { hidden_units = [1, 2, 5], seed = "0:10" }

    Raises
    ------
    ValueError
        If it is no such file; the message says where.
    FileNotFoundError
        If it is not there.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {str(path)!r}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(path)!r} is no TOML file: {error}") from error
    _check(path, content, ("model", "grid", "options", "engine"), "")
    for name in ("grid", "options", "engine"):
        if not isinstance(content.get(name, {}), dict):
            raise ValueError(f"{str(path)!r}: `{name}` must be a table, [{name}]")
    if not isinstance(content.get("model"), str):
        raise ValueError(f'{str(path)!r} names no model: begin with model = "gln"')
    _check(path, content.get("engine", {}), ENGINE, "engine.")
    return SweepFile(
        content["model"],
        content.get("grid", {}),
        content.get("options", {}),
        content.get("engine", {}),
    )


def _check(path: Path, content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in content:
        if name not in known:
            raise ValueError(
                f"{str(path)!r}: there is no `{where}{name}`{nearest(name, known)}; options of "
                "the model stand in [grid] or [options]"
            )
