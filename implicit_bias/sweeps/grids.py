"""Grids: which choices the cells of a sweep make, as products, pairs, draws and functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._support.doors import door, result
from .._support.kinds import count
from ..options.values import Kind

# Reads the values of an option of that name.
Read = Callable[[str, Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Axis:
    """Options that vary together.

    Attributes
    ----------
    how : {"product", "zip", "draw"}
    values : mapping
        Of every option its values, or what they are drawn from; a function of the cell where it
        follows from the others.
    count, random_state : int
        Of draws.
    """

    how: Literal["product", "zip", "draw"]
    values: Mapping[str, Any]
    count: int = 0
    random_state: int = 0

    def choices(self, read: Read) -> Iterator[dict[str, Any]]:
        """Yield what the cells choose, functions as they are."""
        columns = {name: self._column(name, read) for name in self.values}
        if self.how == "product":
            rows: Iterable[tuple[Any, ...]] = itertools.product(*columns.values())
        else:
            lengths = {name: len(column) for name, column in columns.items()
                       if not _is_function(self.values[name])}  # fmt: skip
            count = self.count or _common_length(lengths)
            rows = zip(*(column if name in lengths else column * count
                         for name, column in columns.items()), strict=True)  # fmt: skip
        for row in rows:
            yield dict(zip(columns, row, strict=True))

    def _column(self, name: str, read: Read) -> tuple[Any, ...]:
        """Return the values of one option, drawn whatever others there are; a function alone."""
        source = self.values[name]
        if _is_function(source):
            return (source,)
        if self.how != "draw":
            return read(name, source)
        random = np.random.default_rng([self.random_state, *name.encode()])
        if hasattr(source, "rvs"):
            return tuple(np.asarray(source.rvs(size=self.count, random_state=random)).tolist())
        entries = read(name, source)
        return tuple(entries[place] for place in random.integers(len(entries), size=self.count))


@result()
@dataclass(frozen=True)
class Grid:
    """The choices of the cells of a sweep: every combination of those of its axes.

    Made by `product`, `zipped` and `drawn`; ``*`` combines two of them, and a mapping stands for
    its product.

    Attributes
    ----------
    axes : tuple of Axis

    Examples
    --------
    >>> grid = ib.sweeps.zipped({"n_train": [20, 40], "n_val": [10, 20]}) * {"seed": range(3)}
    >>> done = ib.sweep("linear", grid, out="runs", steps=0)
    >>> len(done.cells)
    6
    """

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [name for axis in self.axes for name in axis.values]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"`{twice[0]}` is in the grid twice: name it in one place")

    def __mul__(self, other: Grid | Mapping[str, Any]) -> Grid:
        return Grid((*self.axes, *as_grid(other).axes))

    def __rmul__(self, other: Mapping[str, Any]) -> Grid:
        return as_grid(other) * self

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all options that vary."""
        return tuple(name for axis in self.axes for name in axis.values)


@door()
def product(values: Mapping[str, Any]) -> Grid:
    """Combine every value of each option with every value of all others.

    Parameters
    ----------
    values : mapping
        Options by their names, with the values that each takes in turn: a list, a range, or one
        such as "0:10". A function is called with the choices of the cell, and those that all cells
        share, and returns the value.

    Returns
    -------
    Grid

    Examples
    --------
    >>> wide = {"n_train": [20, 40], "n_val": lambda cell: cell["n_train"] // 2}
    >>> done = ib.sweep("linear", ib.sweeps.product(wide), out="runs", steps=0)
    >>> done.frame()[["n_train", "n_val"]].values.tolist()
    [[20, 10], [40, 20]]
    """
    return Grid((Axis("product", dict(values)),))


@door()
def zipped(values: Mapping[str, Any]) -> Grid:
    """Take the first values of all options together, then the second ones, and so on.

    Parameters
    ----------
    values : mapping
        As of `product`; all options have as many values.

    Returns
    -------
    Grid

    Examples
    --------
    >>> grid = ib.sweeps.zipped({"n_train": [20, 40], "n_val": [10, 20]})
    >>> ib.sweep("linear", grid, out="runs", steps=0).frame()["n_val"].tolist()
    [10, 20]
    """
    return Grid((Axis("zip", dict(values)),))


@door(count=count(1))
def drawn(values: Mapping[str, Any], *, count: int, random_state: int = 0) -> Grid:
    """Draw the values of options at random, independently of each other.

    Parameters
    ----------
    values : mapping
        Of every option a distribution, a list or a range, of which every entry is as probable, or a
        function as of `product`. A distribution has ``rvs(size=, random_state=)``, like those of
        `scipy.stats`.
    count : int
        Cells.
    random_state : int
        Seed of the draws; that of an option depends on it and the option's name alone.

    Returns
    -------
    Grid

    Raises
    ------
    TypeError, ValueError
        If `count` is not a whole number from 1 on, or `random_state` from 0 on.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> grid = ib.sweeps.drawn({"init_scale": loguniform(0.01, 1.0)}, count=3) * {"seed": [0, 1]}
    >>> frame = ib.sweep("linear", grid, out="runs", n_train=20, steps=0).frame()
    >>> frame["init_scale"].nunique(), len(frame)
    (3, 6)
    """
    return Grid((Axis("draw", dict(values), int(count), int(random_state)),))


def as_grid(values: Grid | Mapping[str, Any]) -> Grid:
    """Return a grid, or the product of a mapping.

    Raises
    ------
    TypeError
        If it is neither.
    """
    return values if isinstance(values, Grid) else product(values)


def choices_of(
    grid: Grid, kinds: Mapping[str, Kind], fixed: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the choices of every cell; those of the last axis vary fastest.

    Raises
    ------
    TypeError, ValueError
        If an option has no values or a range is none, or options of one axis have not as many.
    """

    def read(name: str, values: Any) -> tuple[Any, ...]:
        """Return the values of an option."""
        try:
            return entries_of(kinds[name], values)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`{name}`: {error}") from error

    axes = [list(axis.choices(read)) for axis in grid.axes]
    for parts in itertools.product(*axes):
        yield _computed({name: value for part in parts for name, value in part.items()}, fixed)


def entries_of(kind: Kind, values: Any) -> tuple[Any, ...]:
    """List the values of one option: those of an iterable, of a range such as "0:10", or one alone.

    Raises
    ------
    ValueError
        If there are none, or a range is none.
    TypeError
        If there is a distribution in place of values.
    """
    entries: tuple[Any, ...]
    if hasattr(values, "rvs"):
        raise TypeError("a distribution has no values of its own: `drawn` says how many")
    if isinstance(values, str) and kind.base is int and ":" in values:
        entries = tuple(_range(values))
    elif isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        entries = (values,)
    else:
        entries = tuple(values)
    if not entries:
        raise ValueError("there is no value: give at least one")
    return entries


def _computed(choices: dict[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Return choices with functions of the cell called, each of all that are no functions."""
    known = {name: value for name, value in choices.items() if not _is_function(value)}
    if len(known) == len(choices):
        return choices
    cell = {**fixed, **known}
    return {name: value(cell) if _is_function(value) else value for name, value in choices.items()}


def _is_function(value: Any) -> bool:
    """Return True for a function of the cell; distributions may be called as well."""
    return callable(value) and not hasattr(value, "rvs")


def _common_length(lengths: Mapping[str, int]) -> int:
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"`{name}` {length}" for name, length in lengths.items())
        raise ValueError(f"options that are zipped must have as many values each, got {shown}")
    return next(iter(lengths.values()), 1)


def _range(text: str) -> range:
    try:
        parts = [int(part) for part in text.split(":")]
        return range(*parts)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{text!r} is no range: write FIRST:END or FIRST:END:STEP, END not among them"
        ) from error
