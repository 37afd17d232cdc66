"""A report as text for a terminal, as wide as that is."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING

from .finding import Table

if TYPE_CHECKING:
    from .report import Report

__all__ = ["render_text"]

WIDTH = 100


def render_text(report: Report, width: int = WIDTH) -> str:
    """Theorem, data, assumptions and tables, in lines of at most `width` characters.

    What does not fit is wrapped, in paragraphs and in the cells of tables.
    """
    heading = report.heading
    head = [
        *_wrapped(f"model {heading.model}: {heading.theorem}", width),
        *_wrapped(f"data: {heading.setup}", width),
        *(line for one in report.assumptions for line in _wrapped(f"  - {one}", width, "    ")),
    ]
    return "\n\n".join(["\n".join(head), *(_table(table, width) for table in report.tables)])


def _wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _table(table: Table, width: int) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="")
    for name in table.columns:
        grid.add_column(Text(name), overflow="fold")
    for row in table.rows:
        # Leading blanks of a label indent it, which rich keeps in text that it does not read.
        grid.add_row(*(Text(cell) for cell in row))
    page = io.StringIO()
    Console(file=page, width=width, color_system=None, legacy_windows=False).print(grid)
    lines = [line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join([table.title, *lines])
