"""The cells of a sweep: its runs, each known by a digest of all that it follows from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from .._support.extras import naming_extras
from ..data.names import files_of, is_file
from ..limits.exact.linear import solve_linear_svm
from ..models import MODELS
from ..models.run_model import USER_DATA, parted, resolve, run_setup
from ..options.resolve import takers
from ..options.values import kinds, no_such_option, not_one_of
from ..runs.folder import RunFolder
from ..runs.setup import Setup
from ..runs.user_data import OF_DATA, OF_GATING, USERS_OWN
from .grids import Grid, as_grid, choices_of
from .stored_data import data_digest

# Of 256 bits: two of a million cells would share 80 with a probability of 4e-13.
LETTERS = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep.

    Attributes
    ----------
    digest : str
        Of model, options and data.
    choices : mapping
        The options in which the cells differ, as `run` takes them.
    """

    digest: str
    choices: Mapping[str, Any]


def plan(
    model: str,
    grid: Grid | Mapping[str, Any],
    fixed: Mapping[str, Any],
    done: Collection[str] = (),
) -> tuple[Cell, ...]:
    """List the cells of a grid beside the `fixed` options, checked.

    Every value of every option is tried as far as a run goes before its work, for one cell that
    has it and is not `done`: data are loaded, networks made, solvers asked.

    Returns
    -------
    tuple of Cell
        The last option of a product varies fastest. Choices that come to the same run are one.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError, MissingExtra
        As by `run`, for the first wrong name or value.
    """
    _digest_of_files.cache_clear()  # they may be others than a while ago
    grid = as_grid(grid)
    _check_names(model, grid, fixed)
    cells: dict[str, Cell] = {}
    seen: set[tuple[str, Any]] = set()
    known: _Known | None = None
    for choices in choices_of(grid, kinds(MODELS[model].options), parted(fixed)[1]):
        known = known or _Known(model, fixed, choices)
        options = known.options(choices)
        # A seed is any whole number: what is wrong with one is seen as it is read.
        values_of = {(name, value) for name, value in vars(options).items() if name != "seed"}
        cell = Cell(known.digest(options, choices), choices)
        if not values_of <= seen and cell.digest not in done:
            _rehearse(resolve(model, {**fixed, **choices}))
            seen |= values_of
        cells.setdefault(cell.digest, cell)
    return tuple(cells.values())


def _check_names(model: str, grid: Grid, fixed: Mapping[str, Any]) -> None:
    if model not in MODELS:
        raise ValueError(f"`model`: {not_one_of(model, MODELS)}")
    known = MODELS[model].option_names
    for name in grid.names:
        if name in fixed:
            raise ValueError(f"`{name}` is in the grid and fixed: leave one of them out")
        if name in USER_DATA:
            raise TypeError(f"`{name}` is not swept: give one, beside the grid, or sweep each")
        if name not in known:
            raise TypeError(f"`grid`: {no_such_option(name, name, model, takers(MODELS))}")


class _Ready(Exception):
    """Nothing is left that could refuse a run."""


class _Rehearsal(RunFolder):
    """A folder of a run that ends it as its work would begin."""

    def begin(self, model: str) -> None:
        """End the run."""
        raise _Ready


@naming_extras()
def _rehearse(setup: Setup) -> None:
    """Run up to the work: all that could refuse a run."""
    if hasattr(setup.options, "solver"):
        _ask_solver(setup.options.solver, setup.options.tol)
    try:
        run_setup(replace(setup, folder=_Rehearsal()))
    except _Ready:
        return
    raise AssertionError(f"a run of the model {setup.model.name} did not say that it begins")


@cache
def _ask_solver(solver: Any, tol: float) -> None:
    """Check that there is such a solver, by two points on a line."""
    solve_linear_svm([[1.0], [-1.0]], [1, -1], solver=solver, tol=tol)


class _Known:
    """All that the outcome of a run follows from, the machine aside.

    Data of the user's own enter as they were given, and once: `resolve` would cut them for every
    cell anew.

    Parameters
    ----------
    model : str
    fixed, choices : mapping
        Options that all cells share; those of the first cell.

    Raises
    ------
    TypeError, ValueError
        If data or gates of the user's own are no such things.
    """

    def __init__(self, model: str, fixed: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
        self._model, self._fixed = model, fixed
        own, self._plain = parted(fixed)
        self._gates: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._gated = "gating" in own
        if own:
            resolve(model, {**fixed, **choices})  # refused before it is read for its digest
        self._data = data_digest(own) if len(own) > self._gated else None

    def options(self, choices: Mapping[str, Any]) -> Any:
        """Return the options of a cell; data and gates are those that they name."""
        return resolve(self._model, {**self._plain, **choices}).options

    def digest(self, options: Any, choices: Mapping[str, Any]) -> str:
        """Return the digest of a cell."""
        known: dict[str, Any] = dict(_named(options))
        if self._gated:
            known |= {**dict.fromkeys(OF_GATING), **self._gates_of(options, choices)}
        record: dict[str, Any] = {"model": self._model, "options": known}
        if self._data is not None:
            given = {**self._plain, **choices}
            sizes = {name: given.get(name) for name in ("n_train", "n_val")}
            known |= {"data": USERS_OWN, **sizes}
            record["data"] = self._data
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:LETTERS]

    def _gates_of(self, options: Any, choices: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the record of the gating, which is fitted to the data that the options name."""
        names = ("seed", "classes", *OF_DATA)
        key = tuple(getattr(options, name, None) for name in names)
        if key not in self._gates:
            setup = resolve(self._model, {**self._fixed, **choices})
            self._gates[key] = setup.user_data.record
        return self._gates[key]


def _named(options: Any) -> Iterator[tuple[str, Any]]:
    """Return options as they enter a digest: files and folders of data by their contents."""
    known = kinds(type(options))
    for name, value in vars(options).items():
        of_files = known[name].about.files and value != USERS_OWN and is_file(value)
        if of_files or isinstance(value, Path):
            yield name, _digest_of_files(str(Path(value).resolve()))
        else:
            yield name, value


@cache
def _digest_of_files(data: str) -> str:
    sha = hashlib.sha256()
    for path in files_of(data):
        if path.is_file():  # a missing file is reported when it is read
            with path.open("rb") as content:
                held = hashlib.file_digest(content, "sha256").digest()
            sha.update((path.name if Path(data).is_dir() else path.suffix).encode() + held)
    return sha.hexdigest()
