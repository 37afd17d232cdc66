"""Findings gathered: as text, as the JSON object, as files."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator

import pytest

from implicit_bias import Status
from implicit_bias.runs import gather
from implicit_bias.runs.reports import (
    Assumption,
    Finding,
    Heading,
    Report,
    Table,
    render_text,
)

ROWS = (("a", "1.5"), ("a long label", "2"), ("", "three"))
HEADING = Heading("toy", "everything tends to 1", "min x", "ten points, seed 3", "a toy", {"x": 1})
SOLVED = {"SVM": Status.SOLVED}


def report(*findings: Finding, **changes) -> Report:
    first = Finding.said("limit", tables=(Table("numbers", ("", "value"), ROWS),), statuses=SOLVED)
    return Report(HEADING, findings or (first,), **changes)


def table(*rows: tuple[str, ...], columns: tuple[str, ...] = ("", "value")) -> Finding:
    return Finding.said("t", tables=(Table("numbers", columns, rows),), statuses=SOLVED)


def test_columns_of_a_table_begin_at_one_place_in_every_line() -> None:
    text = render_text(report(table(*ROWS, columns=("name", "value"))))
    title, head, rule, *body = text[text.index("numbers") :].splitlines()
    assert title == "numbers" and set(rule) == {"─"}
    start = len("a long label") + 2
    assert head[start:] == "value"
    assert [line[start:] for line in body] == [value for _, value in ROWS]
    assert [line[:start].rstrip() for line in body] == [label for label, _ in ROWS]


@pytest.mark.parametrize("width", [40, 60, 100, 300])
def test_text_is_as_wide_as_the_terminal_and_breaks_no_word(width) -> None:
    columns = ("class", *(f"measure number {k}" for k in range(9)))
    rows = [(str(k), *(f"{k}.{j}234567" for j in range(9))) for k in range(3)]
    wide = table(*rows, columns=columns)
    sentence = Assumption("a sentence that is longer than most terminals are wide " * 3, None)
    text = render_text(report(wide, Finding.said("a", assumptions=(sentence,))), width)
    assert max(map(len, text.splitlines())) <= width
    for cell in {cell for row in (columns, *rows) for cell in row}:
        assert all(word in text.split() for word in cell.split())


@pytest.mark.parametrize("row", [("a",), ("a", "b", "c")])
def test_rows_of_another_length_are_refused(row) -> None:
    with pytest.raises(ValueError, match="of table 'numbers' has not 2"):
        Table("numbers", ("", "value"), (*ROWS, row))


@pytest.mark.parametrize(
    ("holds", "word"), [(True, "holds"), (False, "DOES NOT HOLD"), (None, "not checked")]
)
def test_an_assumption_says_whether_it_holds(holds, word) -> None:
    assert str(Assumption("loss tends to 0", holds)) == f"loss tends to 0: {word}"


def test_the_text_of_a_report_goes_from_the_theorem_to_the_tables() -> None:
    holds = Finding.said(
        "one",
        assumptions=(Assumption("the data are there", True),),
        tables=(Table("first", ("x",), ()),),
    )
    text = report(holds, Finding.said("two", tables=(Table("second", ("x",), ()),))).details()
    parts = ["model toy: everything tends to 1", "ten points, seed 3",
             "  - the data are there: holds", "first", "second"]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_json_is_one_line_in_which_nan_and_infinities_are_null() -> None:
    record = {
        "nan": math.nan,
        "inf": math.inf,
        "nested": {"list": [1.5, -math.inf], "tuple": (math.nan, "inf")},
        "kept": [True, None, 3, "text", 0.1],
    }
    given = report(Finding.said("a", record=record, statuses=SOLVED))
    text = given.to_json()
    assert "\n" not in text
    found = json.loads(text, parse_constant=pytest.fail)
    assert {key: found[key] for key in record} == {
        "nan": None,
        "inf": None,
        "nested": {"list": [1.5, None], "tuple": [None, "inf"]},
        "kept": [True, None, 3, "text", 0.1],
    }
    assert found["x"] == 1 and math.isnan(record["nan"])


def test_entries_of_two_findings_about_one_thing_are_joined() -> None:
    one, two = (
        Finding.said("a", record={"network": {"loss": 1}}),
        Finding.said("b", record={"network": {"norm": 2}}),
    )
    assert report(one, two).results["network"] == {"loss": 1, "norm": 2}


def test_save_makes_the_folder_and_writes_results_and_every_file(tmp_path) -> None:
    files = {
        "a.txt": lambda path: path.write_text("first"),
        "b.bin": lambda path: path.write_bytes(b"\0"),
    }
    folder = tmp_path / "deep" / "down"
    saved = report(Finding.said("a", record={"x": math.inf}, files=files))
    assert saved.save(folder) == ["results.json", "a.txt", "b.bin", "report.safetensors"]
    assert sorted(os.listdir(folder)) == ["a.txt", "b.bin", "report.safetensors", "results.json"]
    assert (folder / "a.txt").read_text() == "first"
    assert (folder / "results.json").read_text() == saved.to_json() + "\n"


@pytest.mark.parametrize(
    ("names", "worst", "concerns"),
    [
        (("SOLVED",), "SOLVED", ""),
        (("INACCURATE",), "INACCURATE", ""),
        (("SOLVED", "UNDECIDED", "INACCURATE"), "UNDECIDED", "limit 1"),
        (("NOT_SEPARABLE", "FAILED", "NOT_SEPARABLE"), "NOT_SEPARABLE", "limit 0, limit 2"),
    ],
)
def test_the_status_is_the_worst_and_names_its_limits(names, worst, concerns) -> None:
    findings = [
        Finding.said(str(k), statuses={f"limit {k}": Status[name]}) for k, name in enumerate(names)
    ]
    assert report(*findings).status is Status[worst]
    assert report(*findings).concerns == concerns


@pytest.mark.parametrize(
    ("ends", "interrupted", "failure"),
    [
        (None, False, None),
        (KeyboardInterrupt(), True, None),
        (FloatingPointError("it diverged"), False, "it diverged"),
        (OSError("the disk is full"), False, "the disk is full"),
    ],
)
def test_what_was_found_before_the_end_is_kept_the_last_word_on_each_thing(
    ends, interrupted, failure
) -> None:
    def find(*keys: str) -> Iterator[Finding]:
        for number, key in enumerate(keys):
            yield Finding.said(key, record={"number": number})
        if ends is not None:
            raise ends

    found = gather(HEADING, find("limit", "network", "limit"))
    numbers = [(one.key, one.views.record.get("number")) for one in found.findings]
    assert numbers[:2] == [("limit", 2), ("network", 1)]
    assert (found.interrupted, found.failure) == (interrupted, failure)
    assert found.finished != interrupted
    if ends is not None:
        with pytest.raises(type(ends)):
            gather(HEADING, find())
