"""Certified answers: status and certificate, as a record, a file, and a notebook's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

from .._doors import door
from .._saved import Kind, filled, read_saved, write_saved
from .._solve import Answer, Certificate, DenseArray, Solution, Status
from ..quantities.said import Said, Writer
from ..quantities.table import lines, record_lines
from .stored import array_device, decoded, encoded, movable, placed

__all__ = ["MaxMarginResult", "ReadOnlyResult", "Result"]


class Result(Answer, Said):
    """Base of every certified answer of this package, all of which are frozen dataclasses.

    A subclass declares its fields, `status` and `certificate` among them, and inherits the rest:
    `require`, `advice`, `to_dict`, `save` and `load`, and the table of a notebook. Quantities
    beyond its fields it adds to the record by `_summary`; `_fault` names inconsistent
    arrays, which make `load` refuse a file.

    Attributes
    ----------
    LINES : tuple of str
        Quantities of its table, named as those of `SCREEN`.
    status : Status
        What the certificate proves; `advice` says it in a sentence, with the way out.
    certificate : dataclass of floats
        The proof, recomputed from the arrays.

    Examples
    --------
    >>> limit = ib.solve_linear_svm([[2.0], [-1.0]], [1, -1])
    >>> isinstance(limit, ib.Result), limit.status is ib.Status.SOLVED, limit.require() is limit
    (True, True, True)
    """

    PREDICTED: ClassVar = True
    LINES: ClassVar[tuple[str, ...]] = ("status",)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the large arrays, ready for JSON (infinities and NaN stay floats)."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {
            "status": self.status.name,
            "advice": self.advice,
            **asdict(self.certificate),
            **{name: one for name, one in own.items() if isinstance(one, bool | int | float | str)},
            **self._summary(),
        }

    @door()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write arrays and results to one safetensors file; `load` reads it back.

        Raises
        ------
        OSError
            If the file cannot be written, with its path; what was there before is there still.
        """
        arrays: dict[str, Any] = {}
        record: dict[str, Any] = {}
        for name in self._stored():
            one = encoded(getattr(self, name), name, arrays)
            if name not in arrays:
                record[name] = one
        first = next((name for name in arrays if name in movable(type(self))), None)
        record["place"] = None if first is None else array_device(getattr(self, first))
        write_saved(path, Kind.of(type(self)), arrays, record)

    @classmethod
    @door()
    def load(cls, path: str | os.PathLike[str], *, device: str | None = None) -> Self:
        """Read what `save` wrote.

        A checksum detects damage to the file, and the stored arrays must be consistent with the
        certificate. Neither proves it, since whoever writes a file can write both: that takes the
        data (see `Limit.certify`).

        Parameters
        ----------
        path : path
        device : str, optional
            None: NumPy arrays. "saved": the kind and device at saving. Any other name: torch
            tensors on that device. Fields that are always NumPy arrays stay so.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is not a saved result of this class, whole, unchanged and consistent, or
            there is no such device.
        """
        kind = Kind.of(cls)
        arrays, record = read_saved(path, kind)
        hints, moving = get_type_hints(cls), movable(cls) & set(arrays)
        with kind.complete(path):
            made = {
                name: decoded(hints[name], record.get(name), name, arrays)
                for name in cls._stored()
                if name in arrays or name in record
            }
            place = record["place"] if device == "saved" else device
            result = cls(**filled(cls, made))
        fault = result._fault()
        if fault:
            raise kind.refused(path, fault)
        return replace(result, **{name: placed(made[name], place) for name in moving})  # type: ignore[type-var]

    @classmethod
    def _stored(cls) -> list[str]:
        """Return the names of the fields that a file holds."""
        return [f.name for f in fields(cls) if f.metadata.get("stored", True)]  # type: ignore[arg-type]

    def _summary(self) -> dict[str, Any]:
        """Return the entries of the record that are not fields."""
        return {}

    def _fault(self) -> str:
        """Return the inconsistency of a loaded result's arrays; empty without one."""
        return ""

    def statuses(self, name: str) -> dict[str, Status]:
        """Return its status."""
        return {name: self.status}

    def proofs(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return its record, which holds the proof."""
        return {name: self.to_dict()}

    def files(self, name: str) -> dict[str, Writer]:
        """Return the writer of its one file."""
        return {f"{name}.safetensors": self.save}

    def __getstate__(self) -> dict[str, Any]:
        # By its name: formats without pickles (skops) make no members of an Enum.
        return self.__dict__ | {"status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"status": Status[state["status"]]})

    def rows(self) -> list[tuple[str, ...]]:
        """Return titles and texts of the quantities of `LINES`, those that it has."""
        places = self._places()
        known = {name: attrgetter(places.get(name, name))(self) for name in self.LINES}
        return lines(known | {"status": self.status.name}, *self.LINES)

    def _shown_rows(self) -> list[tuple[str, str]]:
        return record_lines(self.to_dict())


class ReadOnlyResult(Result):
    """Base of results whose arrays are all NumPy's: nobody can write to them."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


class MaxMarginResult(Result):
    """Base of results of max-margin programs: bounds of the optimum, solver and iterations.

    Attributes
    ----------
    dual : (n,) array
    certificate : Certificate
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.
    """

    ADVICE: ClassVar = Solution.ADVICE

    dual: DenseArray
    certificate: Certificate
    tol: float
    solver: str
    iterations: int
    seconds: float

    @property
    def objective(self) -> float:
        """Certified upper bound of the optimum: the norm at smallest margin 1."""
        return self.certificate.objective

    @property
    def dual_objective(self) -> float:
        """Certified lower bound of the optimum."""
        return self.certificate.dual_objective

    @property
    def gap(self) -> float:
        """`objective / dual_objective - 1`."""
        return self.certificate.gap

    def _summary(self) -> dict[str, Any]:
        return {"n_samples": len(self.dual)}
