"""The table of quantities that runs of all theories share: `quantities.toml`, read and checked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from .definition import Quantity, Rule, Type, by_name
from .formatting import degrees

# Formats that are functions, by their names in the file.
FORMATS = {"degrees": degrees}
# What each entry of a quantity may be.
RIGHT: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("label", "doc", "head", "phrase"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("ideal", "at_most"), lambda value: isinstance(value, float)),
    "format": lambda value: value in FORMATS or bool(re.fullmatch(r"d|\.\d[efg%]", str(value))),
    "type": get_args(Type).__contains__,
    "over_classes": get_args(Rule).__contains__,
}


def read_quantities(text: str) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """Return the quantities with a column in a run's row, and those without one.

    Raises
    ------
    ValueError
        If an entry is not known or not of its kind, a label or a sentence is left out, or what a
        quantity is like is not there; with the name of the quantity.
    """
    tables = tomllib.loads(text)
    every = tables["shared"] | tables["row"]
    row = {name: {"type": "float64"} | _whole(name, every) for name in tables["row"]}
    shared = {name: _whole(name, every) for name in tables["shared"]}
    return tuple(_quantities(row)), tuple(_quantities(shared))


def _whole(name: str, every: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries of a quantity, those of the one that it is like among them."""
    own = dict(every[name])
    if "like" not in own:
        return own
    like = own.pop("like")
    if like not in every:
        raise ValueError(f"`{name}` is like `{like}`, which is not in the table")
    return {key: value for key, value in every[like].items() if key != "over_classes"} | own


def _quantities(tables: Mapping[str, dict[str, Any]]) -> Iterator[Quantity]:
    for name, entries in tables.items():
        for key, value in entries.items():
            if key not in RIGHT or not RIGHT[key](value):
                raise ValueError(f"`{name}`: `{key} = {value!r}` is no entry of a quantity")
        if not {"label", "doc"} <= set(entries):
            raise ValueError(f"`{name}` needs a `label` and a sentence as `doc`")
        form = entries.get("format", Quantity.format)
        yield Quantity(name, **entries | {"format": FORMATS.get(form, form)})


MEASURED, SHARED = read_quantities(
    Path(__file__).with_name("quantities.toml").read_text(encoding="utf-8")
)
"""Quantities with a column in a run's row, in its order, and others of several classes."""

TABLE: Mapping[str, Quantity] = MappingProxyType(by_name((*MEASURED, *SHARED)))

RECORDED = {"dual_objective": "lower_bound", "loss": "optimal_loss", "seconds": "limit_seconds"}
"""Quantities by the names that they have in the record of a result, where these differ."""


def title_of(entry: str) -> str:
    """Return the title of an entry of a result's record; its name as words where none is declared.

    Examples
    --------
    >>> title_of("dual_objective"), title_of("rounding_error")
    ('certified lower bound', 'rounding error')
    """
    name = RECORDED.get(entry, entry)
    return TABLE[name].title.strip() if name in TABLE else entry.replace("_", " ")


def record_lines(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the titles and texts of the single values of a result's record, to ten digits."""
    return [
        (title_of(name), f"{value:.10g}" if isinstance(value, float) else str(value))
        for name, value in record.items()
        if value is None or isinstance(value, str | bool | int | float)
    ]


def lines(values: Mapping[str, Any], *names: str) -> list[tuple[str, ...]]:
    """Return titles and texts of values under names of `TABLE`, as in the cells of a run's row.

    Parameters
    ----------
    values : mapping of name to value
        Numbers, or texts that stand for themselves.
    names : str
        Which of them, in the order of a reader; those that are None or not there have no line.

    Examples
    --------
    >>> lines({"gap": 1e-9, "margin_ratio": None}, "gap", "margin_ratio")
    [('  duality gap (ideal 0)', '1.00e-09')]
    """
    return columns([values], *names)


def columns(several: Sequence[Mapping[str, Any]], *names: str) -> list[tuple[str, ...]]:
    """Return `lines` with one column for each mapping, a dash where it has no value.

    Examples
    --------
    >>> columns([{"smallest_margin": 1.0}, {"gap": 1e-9}], "smallest_margin", "gap")
    [('smallest margin', '1', '-'), ('  duality gap (ideal 0)', '-', '1.00e-09')]
    """
    found = []
    for name in names:
        cells = [values.get(name) for values in several]
        if any(cell is not None for cell in cells):
            found.append((TABLE[name].title, *map(TABLE[name].text, cells)))
    return found


def stacked(
    several: Mapping[str, Mapping[str, Any]], *names: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and lines of a table: a line for each mapping, a column for each name.

    Examples
    --------
    >>> stacked({"a": {"gap": 1e-9}, "b": {}}, "gap")
    (('', 'gap (ideal 0)'), [('a', '1.00e-09'), ('b', '-')])
    """
    heads = ("", *(TABLE[name].column_title for name in names))
    rows = [
        (label, *(TABLE[name].text(values.get(name)) for name in names))
        for label, values in several.items()
    ]
    return heads, rows
