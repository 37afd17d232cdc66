"""Short representations of results: one line in a session, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from .solve import html_table

# Longest sequence or mapping, and longest text, that are shown in full.
FEW, LETTERS = 4, 60


class ReadOnly:
    """A mixin for dataclasses, to whose arrays nobody can write, nor to those of copies."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        ReadOnly.__post_init__(self)


class Valued:
    """A mixin for dataclasses of arrays with ``eq=False``, which are equal by their values."""

    def __eq__(self, other: object) -> bool:
        return same(self, other) if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        values = (getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]
        return hash((type(self), *(one for one in values if isinstance(one, int | str | Enum))))


def same(one: Any, other: Any) -> bool:
    """Return whether two values are of a kind and hold the same, number by number; NaN is NaN."""
    if one is other:
        return True
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or (one != one and other != other)
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
    if hasattr(one, "untyped_storage"):  # a tensor
        return one.device == other.device and one.dtype == other.dtype and bool(one.equal(other))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, partial):
        return same((one.func, one.args, one.keywords), (other.func, other.args, other.keywords))
    if isinstance(one, MethodType):
        return one.__func__ is other.__func__ and same(one.__self__, other.__self__)
    if is_dataclass(one):
        held = [field.name for field in fields(one)]
    elif getattr(type(one), "__eq__", None) is not object.__eq__ or not hasattr(one, "__dict__"):
        return bool(one == other)
    else:
        held = [*vars(one)]
    return all(hasattr(other, key) and same(getattr(one, key), getattr(other, key)) for key in held)


class Shown(Valued):
    """A mixin for dataclasses, whose representation has arrays by their shapes.

    The dataclass must have ``repr=False``.
    """

    def __repr__(self) -> str:
        shown = (f"{f.name}={in_brief(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, (), self._shown_rows())

    def _shown_rows(self) -> Sequence[tuple[str, ...]]:
        """Label and value of every line of the table."""
        return [(f.name, in_brief(getattr(self, f.name))) for f in fields(self)]  # type: ignore[arg-type]


def in_brief(value: Any) -> str:
    """Return a short text of a value: six digits of a number, the shape of an array."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return repr(value if len(value) <= LETTERS else value[: LETTERS - 3] + "...")
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        sizes = " x ".join(str(size) for size in value.shape)
        return f"<{value.dtype} {sizes}>" if sizes else in_brief(value.item())
    if isinstance(value, Mapping):
        if len(value) > FEW:
            return f"<{len(value)} entries>"
        return "{" + ", ".join(f"{key!r}: {in_brief(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        if len(value) > FEW:
            return f"<{len(value)} entries>"
        return "(" + ", ".join(in_brief(entry) for entry in value) + ")"
    if value is None or isinstance(value, bool | int):
        return str(value)
    return f"<{type(value).__name__}>"
