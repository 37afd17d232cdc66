"""A report as text for a terminal, as wide as that is."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable

from ...._support.files import harmless
from ....quantities.said import Table
from ..contents import Contents

WIDTH = 100
# Cells up to so many characters are not wrapped: numbers with their units, names, shares.
SHORT = 16


def render_text(report: Contents, width: int = WIDTH) -> str:
    """Render everything that a report says, in lines of at most `width` characters.

    Long text is wrapped, in paragraphs and in the cells of tables.
    """
    heading = report.heading
    verdicts = [line for one in report.verdicts for line in wrapped(str(one), width)]
    head = [
        *wrapped(f"model {heading.model}: {heading.theorem}", width),
        *wrapped(f"data: {heading.setup}", width),
        *(line for one in report.assumptions for line in wrapped(f"  - {one}", width, "    ")),
    ]
    return harmless(
        "\n\n".join(
            [
                "\n".join(verdicts),
                "\n".join(head),
                *(render_table(table, width) for table in report.tables),
            ]
        )
    )


def wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    """Return the lines of a paragraph, no word broken, all but the first indented."""
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def render_table(table: Table, width: int) -> str:
    """Render a table, its columns in as many blocks below each other as break no word."""
    columns = [[name, *(row[k] for row in table.rows)] for k, name in enumerate(table.columns)]
    blocks: list[list[list[str]]] = [[columns[0]]]
    for column in columns[1:]:
        if len(blocks[-1]) > 1 and _total(map(_narrowest, [*blocks[-1], column])) > width:
            blocks.append([columns[0]])
        blocks[-1].append(column)
    return "\n".join([table.title, *(line for block in blocks for line in _block(block, width))])


def _narrowest(cells: list[str]) -> int:
    """Return the width of a column in which no word is broken and no short cell is wrapped."""
    head, *rest = cells
    words = [*head.split(), *(word for cell in rest for word in cell.split())]
    return max(map(len, [*words, *(cell for cell in rest if len(cell) <= SHORT)]), default=0)


def _total(widths: Iterable[int]) -> int:
    """Return the width of columns side by side, two blanks between them."""
    return sum(width + 2 for width in widths) - 1


def _widths(columns: list[list[str]], width: int) -> list[int]:
    """Widen columns to their longest cells, as far as there is room, first columns first."""
    widths = [_narrowest(cells) for cells in columns]
    for k, cells in enumerate(columns):
        room = max(width - _total(widths), 0)
        widths[k] += min(room, max(map(len, cells)) - widths[k])
    return widths


def _block(columns: list[list[str]], width: int) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(
        box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="", padding=(0, 1, 0, 0)
    )
    for cells, wide in zip(columns, _widths(columns, width), strict=True):
        grid.add_column(Text(cells[0]), overflow="fold", width=wide)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        grid.add_row(*map(Text, row))
    page = io.StringIO()
    # Written to the page in notebooks too, which would show it.
    console = Console(
        file=page, width=width, color_system=None, legacy_windows=False, force_jupyter=False
    )
    console.print(grid)
    return [line.rstrip() for line in page.getvalue().splitlines()]
