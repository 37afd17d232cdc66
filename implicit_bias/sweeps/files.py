"""A sweep as a file: TOML with the model, its grid, what is fixed, and the engine."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._support.words import nearest
from .grids import Grid, drawn, product, zipped

TABLES = ("grid", "zip", "draw", "options", "engine")
ENGINE = ("name", "scheduler", "threads", "options")


@dataclass(frozen=True)
class SweepFile:
    """A sweep as a file describes it.

    Attributes
    ----------
    model : str
    grid : Grid or mapping
    options : mapping
        As `sweep` takes them.
    engine : mapping
        Arguments of an `Engine`.
    """

    model: str
    grid: Grid | Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)


def read_sweep_file(path: Path) -> SweepFile:
    """Read a file such as

        model = "gln"
        options = { n_train = 200 }
        grid = { hidden_units = [1, 2, 5], seed = "0:10" }

    Beside the product `grid` there may be tables `zip`, of lists that are taken together, and
    `draw`, of what `scipy.stats` draws from: ``init_scale = { loguniform = [0.01, 1] }``.

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
    _check(path, content, ("model", *TABLES), "")
    tables = {name: content.get(name, {}) for name in TABLES}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ValueError(f"{str(path)!r}: `{name}` must be a table, [{name}]")
    if not isinstance(content.get("model"), str):
        raise ValueError(f'{str(path)!r} names no model: begin with model = "gln"')
    _check(path, tables["engine"], ENGINE, "engine.")
    try:
        grid = _grid(tables)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{str(path)!r}: {error}") from error
    return SweepFile(content["model"], grid, tables["options"], tables["engine"])


def _grid(tables: Mapping[str, Any]) -> Grid:
    """Return the product of the tables of a file that say what varies."""
    grid = product({})
    if tables["draw"]:
        draws = dict(tables["draw"])
        if "count" not in draws:
            raise ValueError("`draw` needs `count`, the number of draws")
        how = {name: draws.pop(name) for name in ("count", "random_state") if name in draws}
        grid = grid * drawn({name: _source(name, value) for name, value in draws.items()}, **how)
    if tables["zip"]:
        grid = grid * zipped(tables["zip"])
    return grid * product(tables["grid"])


def _source(name: str, value: Any) -> Any:
    """Return what is drawn from: values, or the distribution of a name with its parameters."""
    if not isinstance(value, dict):
        return value
    from scipy import stats

    kind, parameters = next(iter(value.items()), ("", []))
    family: Any = getattr(stats, kind, None)
    if len(value) != 1 or not hasattr(family, "rvs"):
        known = [one for one in dir(stats) if hasattr(getattr(stats, one), "rvs")]
        raise ValueError(
            f"`draw.{name}` must be values or one distribution of scipy.stats, such as "
            f"{{ loguniform = [0.01, 1] }}, got {kind!r}{nearest(kind, known)}"
        )
    try:
        return family(**parameters) if isinstance(parameters, dict) else family(*parameters)
    except TypeError as error:
        raise ValueError(f"`draw.{name}`: scipy.stats.{kind}: {error}") from error


def _check(path: Path, content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in content:
        if name not in known:
            raise ValueError(
                f"{str(path)!r}: there is no `{where}{name}`{nearest(name, known)}; options of "
                "the model stand in [grid], [zip], [draw] or [options]"
            )
