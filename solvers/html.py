"""Tables that notebooks show: HTML that loads nothing and has every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

# Notebooks align cells to the right, which suits figures and not words.
_CELL = 'style="text-align:left;vertical-align:top"'


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as HTML.

    Parameters
    ----------
    title : str
        Its caption.
    columns : sequence of str
        Their titles; no line of titles where all are empty.
    rows : iterable of sequences of str
        The first cell of each is its label.
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
