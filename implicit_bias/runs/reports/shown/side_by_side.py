"""Findings about networks that one trainer each has trained, as one finding about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....quantities.assumptions import Assumption
from ....quantities.said import Side, Table
from ..finding import Finding
from ..views import Views

NONE = "-"
# What a run was asked for is in its heading; each part says what of it went to its own trainer.
ASKED = "options"


def side_by_side(parts: Mapping[str, Finding]) -> Finding:
    """Join the findings of several trainers in one; of one trainer, return its own.

    Its entries of the record, its objects and its row are those of the last trainer; the record has
    all of them under `networks`. Tables about a network get a column a trainer.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    each = {trainer: one.views for trainer, one in parts.items()}
    whole, last = sum(each.values(), start=Views()), list(parts.values())[-1]
    return replace(
        last.but(
            record={
                **{name: entry for name, entry in last.views.record.items() if name != ASKED},
                "networks": {trainer: dict(one.record) for trainer, one in each.items()},
            },
            tables=_tables({trainer: one.tables for trainer, one in each.items()}),
            files=whole.files,
            panels=whole.panels,
            assumptions=_assumptions({trainer: one.assumptions for trainer, one in each.items()}),
            finished=whole.finished,
            shortfall=next(
                (f"{name}: {one.shortfall}" for name, one in each.items() if one.shortfall), ""
            ),
            verdicts=whole.verdicts,
            sides=_sides(each),
        ),
        key=next(iter(parts.values())).key,
        parts=dict(parts),
    )


def _sides(parts: Mapping[str, Views]) -> tuple[Side, ...]:
    """Return the prediction's column once, and that of each trainer's network by its name."""
    first = next(iter(parts.values()))
    return (
        *(side for side in first.sides if side.predicted),
        *(
            replace(side, name=trainer)
            for trainer, one in parts.items()
            for side in one.sides
            if not side.predicted
        ),
    )


def _tables(parts: Mapping[str, tuple[Table, ...]]) -> tuple[Table, ...]:
    """Return the tables of a network with the columns of all; the others one after the other."""
    titles: dict[str, dict[str, Table]] = {}
    for trainer, tables in parts.items():
        for table in tables:
            titles.setdefault(table.title, {})[trainer] = table
    found: list[Table] = []
    for of_title in titles.values():
        if all(table.of_network for table in of_title.values()):
            found.append(_one_table(of_title))
        else:
            found += [
                replace(table, title=f"{table.title}: {trainer}")
                for trainer, table in of_title.items()
            ]
    return tuple(found)


def _one_table(parts: Mapping[str, Table]) -> Table:
    """Return one table: the columns that all share, and the last column of each."""
    first = next(iter(parts.values()))
    last = {trainer: {row[0]: row[-1] for row in table.rows} for trainer, table in parts.items()}
    shared = {row[0]: row[:-1] for table in reversed(list(parts.values())) for row in table.rows}
    rows = tuple(
        (*shared[label], *(cells.get(label, NONE) for cells in last.values()))
        for label in in_order([list(cells) for cells in last.values()])
    )
    return Table(first.title, (*first.columns[:-1], *parts), rows, of_network=True)


def in_order(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return every label once; a label new to a list follows the label before it in that list."""
    found: list[str] = []
    for labels in lists:
        place = 0
        for label in labels:
            if label in found:
                place = found.index(label) + 1
            else:
                found.insert(place, label)
                place += 1
    return found


def _assumptions(parts: Mapping[str, tuple[Assumption, ...]]) -> tuple[Assumption, ...]:
    """Return those that all share once; the others by trainer."""
    found: list[Assumption] = []
    for one in zip(*parts.values(), strict=True):
        if len(set(one)) == 1:
            found.append(one[0])
            continue
        alike = len({(assumption.holds, assumption.how) for assumption in one}) == 1
        found += [
            replace(
                assumption,
                text=f"{trainer}: {assumption.text}",
                how=assumption.how if alike else f"{trainer}, {assumption.how}".rstrip(", "),
            )
            for trainer, assumption in zip(parts, one, strict=True)
        ]
    return tuple(found)
