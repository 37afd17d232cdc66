"""The first screen of a run: the verdict, what it rests on, and the theory, in 24 lines of 80."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...._support.files import harmless
from ....quantities.assumptions import Assumption
from ....quantities.definition import Quantity
from ....quantities.formatting import DASH, aligned
from ....quantities.said import Side
from ....quantities.table import TABLE
from ..contents import Contents
from ..verdict import Verdict
from .side_by_side import in_order

LINES, WIDTH = 24, 80
# Rows of the table at most; those of a proof stand whether columns differ or not.
ROWS = 10
PROOFS = (
    "objective", "lower_bound", "gap", "certificate", "local_residual", "stationarity", "value",
    "status",
)  # fmt: skip
# Those that decide a verdict stand, too, and what the networks are good for, and cost.
DECIDE = ("margin_ratio", "limit_error", "local_ratio", "lazy_law_error")
WORTH = ("agreement", "val_accuracy", "limit_seconds")
STAND = PROOFS + DECIDE + WORTH
# Lines of all verdicts together; a sentence gives up its last parts first.
OF_VERDICTS = 9
OF_DATA, OF_THEORY = 3, 3
# From the first column of a verdict to its sentence.
INDENT = 16
CUT = " ..."
FOOT = "More: --explain  --details  --program  --plot FILE  --report FILE  --save DIR"
GROUPS: Mapping[bool | None, str] = {False: "Does not hold", None: "Open", True: "Holds"}
# Where a network is at its limit although not all that the theorem assumes holds of it.
ALL_THE_SAME = "At its limit though these do not hold"
# How assumptions of each group are told, from most to least, until all are: `--details` has them.
WAYS = (
    ("how", "how", "how"), ("how", "how", "name"), ("how", "name", "name"),
    ("how", "name", "number"), ("name", "name", "number"), ("name", "number", "number"),
)  # fmt: skip


def render_screen(report: Contents, width: int = WIDTH, *, explain: bool = False) -> str:
    """Render the first screen of a report.

    Parameters
    ----------
    report : Contents
    width : int
        Columns of the terminal; at most 80 of them are used.
    explain : bool
        True to say below what each row of the table is.

    Returns
    -------
    str
        At most 24 lines, where they have 80 columns, and the explanations.
    """
    width = min(width, WIDTH)
    heading = report.heading
    blocks = [
        [
            *_wrapped(f"{heading.model}: {heading.title}", width, 2),
            *_wrapped(heading.setup, width, OF_DATA),
        ],
        _verdict_lines(report.verdicts, width),
        [],
        [*_theory(report, width, OF_THEORY), *_wrapped(heading.more or FOOT, width, 2)],
    ]
    used = sum(len(block) + 1 for block in blocks)
    blocks[2] = _table_lines(report, width, LINES - used)
    # What the table leaves over is for the assumptions.
    room = LINES - used - len(blocks[2]) + OF_THEORY
    blocks[3] = [*_theory(report, width, room), *_wrapped(heading.more or FOOT, width, 2)]
    if explain:
        texts = (f"{label}: {sentence}" for label, sentence in explanations(report))
        blocks.append([line for text in texts for line in _wrapped(text, width)])
    return harmless("\n\n".join("\n".join(block) for block in blocks if block))


def screen_table(
    report: Contents, *, short: bool = False, most: int = ROWS
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heads and the rows of the first screen's table.

    Columns are the prediction, then networks, the nearest to the limit first; rows are those that
    prove or decide something, held-out labels and seconds, and others in which columns differ.

    Parameters
    ----------
    report : Contents
    short : bool
        True for short labels of rows, where columns need the room.
    most : int
        Rows at most; others are left out first.
    """
    sides = _in_order(report)
    names = _shown(sides, most)
    rows = [_row(TABLE[name], sides, short=short) for name in names]
    # A first row is no part of one above it.
    rows[:1] = [(row[0].lstrip(), *row[1:]) for row in rows[:1]]
    return ("", *(side.name for side in sides)), rows


def explanations(report: Contents) -> list[tuple[str, str]]:
    """Return what each row of the first screen's table is: its label, and a sentence."""
    quantities = [TABLE[name] for name in _shown(_in_order(report), ROWS)]
    return [(one.label.strip(), one.sentence) for one in quantities]


def _shown(sides: Sequence[Side], most: int) -> list[str]:
    """Return the names of the rows in their order, at most so many."""
    known = in_order([list(side.values) for side in sorted(sides, key=_length)])
    names = []
    for name in known:
        cells = {_cell(TABLE[name], side) for side in sides}
        # That a limit is solved is what its gap says.
        told = not cells <= {DASH, "SOLVED"}
        if told and (name in STAND or len(sides) == 1 or len(cells) > 1):
            names.append(name)
    first = sorted(names, key=lambda name: name not in STAND)[:most]
    return [name for name in names if name in first]


def _in_order(report: Contents) -> list[Side]:
    """Return the columns: the prediction, then networks in the order of their verdicts."""
    places = {name: place for place, one in enumerate(report.verdicts)
              for name in (one.trainer, one.network) if name}  # fmt: skip
    sides: dict[str, Side] = {}
    for side in (side for one in report.views for side in one.sides):
        known = sides.get(side.name)
        sides[side.name] = side if known is None else replace(
            side, values={**known.values, **side.values}
        )  # fmt: skip
    return sorted(sides.values(), key=lambda side: (not side.predicted, places.get(side.name, 0)))


def _length(side: Side) -> tuple[bool, int]:
    """Sort networks by their values, most first; what only a prediction has goes in between."""
    return side.predicted, -len(side.values)


def _row(quantity: Quantity, sides: Sequence[Side], *, short: bool) -> tuple[str, ...]:
    label = quantity.head if short and quantity.head else quantity.label
    return label, *(_cell(quantity, side) for side in sides)


def _cell(quantity: Quantity, side: Side) -> str:
    """Return the text of a value; of a prediction the ideal value where it has no other."""
    if quantity.name in side.values or quantity.ideal is None or not side.predicted:
        return quantity.text(side.values.get(quantity.name))
    return quantity.ideal_text


def _table_lines(report: Contents, width: int, room: int) -> list[str]:
    """Return the lines of the table, as many rows and columns as there is room for."""
    most = max(min(ROWS, room - 1), 1)
    heads, rows = screen_table(report, most=most)
    if not rows:
        return []
    if _width(heads, rows, len(heads)) > width:
        heads, rows = screen_table(report, short=True, most=most)
    count = len(heads)
    while count > 2 and _width(heads, rows, count) > width:
        count -= 1
    left = len(heads) - count
    if left:
        rows = rows[: max(room - 2, 1)]
    table = aligned([row[:count] for row in (heads, *rows)]).splitlines()
    more = [f"{left} more in --details: {', '.join(heads[count:])}"] if left else []
    return [line[:width] for line in (*table, *more)]


def _width(heads: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> int:
    columns = list(zip(*(row[:count] for row in (heads, *rows)), strict=True))
    return sum(max(map(len, column)) + 2 for column in columns) - 2


def _verdict_lines(verdicts: Sequence[Verdict], width: int) -> list[str]:
    """Return the lines of all verdicts, each with its word in front."""
    indent = max(INDENT, *(len(one.word) + 2 for one in verdicts))
    each = max(OF_VERDICTS // len(verdicts), 1)
    found = []
    for one in verdicts:
        lines = _sentence(one, width - indent, each)
        found += [f"{one.word:<{indent}}{lines[0]}", *(" " * indent + line for line in lines[1:])]
    return found


def _sentence(verdict: Verdict, width: int, most: int) -> list[str]:
    """Return a verdict's sentence in so many lines, its last parts left out where it is longer."""
    parts = verdict.text.split("; ")
    for count in range(len(parts), 0, -1):
        lines = textwrap.wrap("; ".join(parts[:count]), width, break_on_hyphens=False)
        if len(lines) <= most:
            return lines
    return _wrapped(parts[0], width, most)


def _theory(report: Contents, width: int, most: int) -> list[str]:
    """Return the theorem's source, and which of its assumptions hold, in so many lines."""
    source = f"Theory: {report.heading.source}." if report.heading.source else ""
    for ways in WAYS:
        groups = (_group(report, holds, way) for holds, way in zip(GROUPS, ways, strict=True))
        lines = _wrapped(" ".join(filter(None, (source, *groups))), width, most)
        if not lines or not lines[-1].endswith(CUT):
            break
    return lines


def _group(report: Contents, holds: bool | None, way: str) -> str:
    """Return which assumptions hold, do not, or are open: how known, by name, or how many."""
    assumptions = report.assumptions
    known = [one for one in assumptions if one.holds is holds and one.name]
    # Where it is not so of every network, how it is known says of which.
    elsewhere = {one.name for one in assumptions if one.holds is not holds}
    names = dict.fromkeys(
        one.name + f" ({one.how})" * bool(one.how and (way == "how" or one.name in elsewhere))
        for one in known
    )
    if not names:
        return ""
    if way == "number":
        return f"{GROUPS[holds]}: {len(names)} others."
    head = ALL_THE_SAME if holds is False and _at_limit(report, known) else GROUPS[holds]
    return f"{head}: {', '.join(names)}."


def _at_limit(report: Contents, failing: Sequence[Assumption]) -> bool:
    """Return True if a network is at its limit of which one of these assumptions does not hold."""
    there = {one.trainer for one in report.verdicts if one.word == "AT ITS LIMIT"}
    others = {one.trainer for one in report.verdicts} - there
    # That of one trainer alone says so first, see `side_by_side`.
    return bool(there) and any(one.how.split(", ")[0] not in others for one in failing)


def _wrapped(text: str, width: int, most: int | None = None) -> list[str]:
    """Return a paragraph of at most so many lines, three dots where it goes on."""
    return textwrap.wrap(text, width, max_lines=most, placeholder=CUT, break_on_hyphens=False)
