"""Certified answers: status and certificate, as a record, a file, and a notebook's table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Self, cast, dataclass_transform, get_type_hints

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.saved import Kind, filled, read_saved, write_saved
from .._support.shown import ReadOnly
from .._support.solve import Answer, Certificate, DenseArray, Solution, Status, to_numpy
from ..quantities.definition import Quantity
from ..quantities.measured import plain
from ..quantities.said import Said, Writer
from ..quantities.table import TABLE, record_lines
from .stored import array_device, decoded, encoded, movable, placed

SEPARATION = ("separation_bound", "separation_rounding")


def proved(name: str, doc: str) -> float:
    """Return a property that reads a number of the certificate."""
    return cast("float", property(attrgetter(f"certificate.{name}"), doc=doc))


def size_of(name: str, doc: str) -> int:
    """Return a property that is the length of an array."""
    return cast("int", property(lambda self: len(getattr(self, name)), doc=doc))


def how_many(name: str, doc: str) -> int:
    """Return a property that counts what is true in an array."""
    return cast("int", property(lambda self: int(getattr(self, name).sum()), doc=doc))


@cache
def _names_of(kind: Any) -> list[str]:
    return [one.name for one in sorted(fields(kind), key=attrgetter("kw_only"))]


class _Attributes(dict[str, Any]):
    """The attributes of an object by their names, as `str.format_map` asks for them."""

    def __init__(self, of: object) -> None:
        self.of = of

    def __missing__(self, name: str) -> Any:
        return getattr(self.of, name)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
class Result(ReadOnly, Answer, Said):
    """Base of every certified answer of this package, all of which are frozen dataclasses.

    A subclass, which needs no decorator, declares its fields, `status` and `certificate` among
    them, and what stands below;
    it inherits the rest: `require`, `advice`, `to_dict`, `save` and `load`, its text and the table
    of a notebook. `_fault` names inconsistent arrays, which make `load` refuse a file. Say
    ``class C(Result, eq=True)`` where fields can be compared.

    Attributes
    ----------
    LINES : tuple of str and Quantity
        Of its table: columns of the row or paths that `quantities.TABLE` knows, or quantities of
        its own.
    RECORD : tuple of str
        What its record has beside status, certificate and single values: arrays, properties.
    BRIEF : str
        Its text, with its attributes by their names, as `str.format` fills them in; by default all
        fields.
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
    LINES: ClassVar[tuple[str | Quantity, ...]] = ("status",)
    RECORD: ClassVar[tuple[str, ...]] = ()
    BRIEF: ClassVar[str] = ""

    def __init_subclass__(cls, *, eq: bool = False) -> None:
        super().__init_subclass__()
        if "ADVICE" in vars(cls):
            cls.ADVICE = MappingProxyType({**cls.ADVICE})
        result()(dataclass(frozen=True, eq=eq, repr=False)(cls))

    @property
    def remark(self) -> str:
        """Reason why no more is said; empty where nothing is lacking."""
        return str(getattr(self, "reason", ""))

    @property
    def _because(self) -> str:
        return f": {self.remark}" if self.remark else ""

    def to_dict(self) -> dict[str, Any]:
        """Return all but the large arrays, ready for JSON (infinities and NaN stay floats)."""
        own = {name: getattr(self, name) for name in self._field_names()}
        return {
            "status": self.status.name,
            "advice": self.advice,
            **asdict(self.certificate),
            **{name: one for name, one in own.items() if isinstance(one, bool | int | float | str)},
            **{name: plain(getattr(self, name)) for name in self.RECORD},
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
            found = cls(**filled(cls, made))
        fault = found._fault()
        if fault:
            raise kind.refused(path, fault)
        return replace(found, **{name: placed(made[name], place) for name in moving})  # type: ignore[type-var]

    @classmethod
    def read(cls, *sources: object, **own: Any) -> Self:
        """Return an answer whose fields are those of others so called, but for those given."""
        for source in sources:
            known = (name for name in cls._field_names() if hasattr(source, name))
            own = {name: getattr(source, name) for name in known} | own
        return cls(**own)

    @classmethod
    def _field_names(cls) -> list[str]:
        """Return the names of the fields, in the order of the signature."""
        return _names_of(cls)  # type: ignore[arg-type]

    @classmethod
    def _stored(cls) -> list[str]:
        """Return the names of the fields that a file holds."""
        kept = {f.name for f in fields(cls) if f.metadata.get("stored", True)}  # type: ignore[arg-type]
        return [name for name in cls._field_names() if name in kept]

    def _fault(self) -> str:
        """Return the inconsistency of a loaded result's arrays; empty without one."""
        return ""

    @door()
    def statuses(self, name: str) -> dict[str, Status]:
        """Return its status."""
        return {name: self.status}

    @door()
    def proofs(self, name: str) -> dict[str, Mapping[str, Any]]:
        """Return its record, which holds the proof."""
        return {name: self.to_dict()}

    @door()
    def files(self, name: str) -> dict[str, Writer]:
        """Return the writer of its one file."""
        return {f"{name}.safetensors": self.save}

    def __repr__(self) -> str:
        if not self.BRIEF:
            return super().__repr__()
        return f"{type(self).__name__}({self.BRIEF.format_map(_Attributes(self))})"

    def __getstate__(self) -> dict[str, Any]:
        # By its name: formats without pickles (skops) make no members of an Enum.
        return self.__dict__ | {"status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"status": Status[state["status"]]})

    def rows(self) -> list[tuple[str, ...]]:
        """Return titles and texts of the quantities of `LINES`, those that it has."""
        places = {**self.ROW, "status": "status.name"}
        found: list[tuple[str, ...]] = []
        for one in self.LINES:
            quantity = TABLE[one] if isinstance(one, str) else one
            value = attrgetter(places.get(quantity.name, quantity.name))(self)
            found += [] if value is None else [(quantity.title, quantity.text(value))]
        return found

    def _places(self) -> Mapping[str, str]:
        return {**self.ROW, "status": "_trouble"}

    @property
    def _trouble(self) -> str | None:
        """The status where it is no good news."""
        return None if self.status is Status.SOLVED else self.status.name

    def _shown_rows(self) -> list[tuple[str, str]]:
        return record_lines(self.to_dict())


class Solved(Result):
    """Base of results of iterative solvers.

    Attributes
    ----------
    tol : float
        The gap asked for.
    solver : str
    iterations : int
    seconds : float
        Wall-clock time.
    """

    tol: float = field(kw_only=True)
    solver: str = field(kw_only=True)
    iterations: int = field(kw_only=True)
    seconds: float = field(kw_only=True)

    @property
    def _how(self) -> dict[str, Any]:
        """How the solve went, for what concludes from its points."""
        return {f.name: getattr(self, f.name) for f in fields(Solved)}  # type: ignore[arg-type]


class MaxMarginResult(Solved):
    """Base of results of max-margin programs: bounds of the optimum, solver and iterations.

    Attributes
    ----------
    zeta : array
        Coefficients, scaled to smallest margin 1.
    dual : (n,) array
    status : Status
    certificate : Certificate
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.
    """

    ADVICE = Solution.ADVICE
    RECORD: ClassVar[tuple[str, ...]] = ("n_samples",)

    zeta: DenseArray
    dual: DenseArray
    status: Status
    certificate: Certificate

    objective = proved(
        "objective", "Certified upper bound of the optimum: the norm at smallest margin 1."
    )
    dual_objective = proved("dual_objective", "Certified lower bound of the optimum.")
    gap = proved("gap", "`objective / dual_objective - 1`.")
    n_samples = size_of("dual", "Number of samples.")

    @property
    def _sizes(self) -> str:
        """Shape of the coefficients, in words."""
        return " x ".join(map(str, self.zeta.shape))


class SeparatingLimit(MaxMarginResult):
    """Base of limits whose coefficients separate samples, of two labels or of K classes.

    A subclass has `unit_norms` (H,) and `live` (H,) besides.

    Attributes
    ----------
    margins : (n,) array
    support : (n,) or (n, K) boolean array
    """

    ROW: ClassVar = {
        "objective": "objective", "lower_bound": "dual_objective", "gap": "gap",
        "n_support": "_n_supporting", "n_units": "n_units", "n_live": "n_live",
        "iterations": "iterations", "limit_seconds": "seconds",
    }  # fmt: skip
    SCREEN = ("status", "objective", "lower_bound", "gap", "limit_seconds", "n_live", "n_support")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = (
        "status", "objective", "lower_bound", "gap",
        *(replace(TABLE[name], name=f"certificate.{name}") for name in SEPARATION),
        Quantity("_multiplied", "samples with a multiplier"), "iterations", "limit_seconds",
    )  # fmt: skip

    margins: DenseArray
    support: DenseArray

    n_support = how_many("support", "Number of support vectors; pairs of sample and other class.")
    n_units = size_of("unit_norms", "Number of units.")
    n_live = how_many("live", "Number of live units.")

    @property
    def supported(self) -> NDArray[np.bool_]:
        """Samples (n,) that are support vectors, of K classes beside any other class."""
        return self._samples(self.support)

    def screen(self) -> dict[str, Any]:
        """Return what the first screen shows; of what nothing separates, the proof."""
        counts = {"n_support": f"{self.n_support} of {self.n_samples}"}
        if self.status is Status.NOT_SEPARABLE:
            bound = {"separation_bound": self.certificate.separation_bound}
            return {"status": self.status.name, **counts, **bound}
        found = super().screen() | counts | {"n_live": f"{self.n_live} of {self.n_units}"}
        return {name: one for name, one in found.items() if name != "n_live" or self.n_units > 1}

    @property
    def _n_supporting(self) -> int:
        return int(self.supported.sum())

    @property
    def _multiplied(self) -> str:
        return f"{int(self._samples(self.dual > 0).sum())} of {self.n_samples}"

    def _samples(self, holds: DenseArray) -> NDArray[np.bool_]:
        """Return of which samples it holds, of K classes beside any other class."""
        return np.asarray(to_numpy(holds).reshape(self.n_samples, -1).any(axis=1))
