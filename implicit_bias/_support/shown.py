"""Short representations of results: one line in a session, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np

from .solve import html_table

# Longest sequence or mapping, and longest text, that are shown in full.
FEW, LETTERS = 4, 60


class ReadOnly:
    """A mixin for dataclasses, to whose arrays nobody can write."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


class Shown:
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
