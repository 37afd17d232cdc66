"""Tables for notebooks: HTML that loads nothing and has every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any

# Notebooks align cells to the right, which suits figures and not words.
_CELL = 'style="text-align:left;vertical-align:top"'


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table as HTML that loads nothing, every text escaped.

    Parameters
    ----------
    title : str
        Its caption.
    columns : sequence of str
        Their titles; no line of titles where all are empty.
    rows : iterable of sequences of str
        The first cell of each is its label.

    Returns
    -------
    str
    """
    head = "".join(f"<th {_CELL}>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    return (
        f'<table><caption style="text-align:left;caption-side:top"><b>{escape(title)}</b></caption>'
        f"{f'<thead><tr>{head}</tr></thead>' if any(columns) else ''}<tbody>{body}</tbody></table>"
    )


def _cells(row: Sequence[str]) -> str:
    label, *values = row
    cells = "".join(f"<td {_CELL}>{escape(value)}</td>" for value in values)
    return f'<th scope="row" {_CELL}>{escape(label)}</th>{cells}'


class FloatRecord:
    """Base of dataclasses whose fields are floats: a dictionary of them, and a notebook's table."""

    def to_dict(self) -> dict[str, float]:
        """Map the names of the fields to their values."""
        shown: Any = self  # a dataclass, as every subclass is
        return {field.name: getattr(self, field.name) for field in fields(shown)}

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), f"{value:.10g}") for name, value in self.to_dict().items()]
        return html_table(type(self).__name__, (), rows)
