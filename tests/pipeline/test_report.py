"""Tables, the JSON object, saved files, and paths that are checked before any work."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from implicit_bias import Status
from implicit_bias.pipeline.report import Assumption, Report, Table, check_writable

ROWS = (("a", "1.5"), ("a long label", "2"), ("", "three"))


def report(**changes) -> Report:
    given = {
        "model": "toy",
        "theorem": "everything tends to 1",
        "setup": "ten points, seed 3",
        "assumptions": (Assumption("the data are there", True),),
        "tables": (Table("numbers", ("", "value"), ROWS),),
        "results": {"x": 1},
        "status": Status.SOLVED,
        "finished": True,
    }
    return Report(**given | changes)


def test_columns_of_a_table_begin_at_one_place_in_every_line() -> None:
    lines = str(Table("numbers", ("name", "value"), ROWS)).splitlines()
    title, rule, head, second_rule, *body, last_rule = lines
    assert title == "numbers"
    assert rule == second_rule == last_rule == "-" * max(len(line) for line in (head, *body))
    start = len("a long label") + 2
    assert head[start:] == "value"
    assert [line[start:] for line in body] == [value for _, value in ROWS]
    assert [line[:start].rstrip() for line in body] == [label for label, _ in ROWS]


def test_lines_of_a_table_have_no_blanks_at_their_ends() -> None:
    table = Table("t", ("name", "value"), (("x", ""), ("y", "a wide one")))
    assert all(line == line.rstrip() for line in str(table).splitlines())


def test_a_table_without_rows_is_a_title_and_a_head() -> None:
    assert str(Table("t", ("name", "value"), ())).splitlines()[2] == "name  value"


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
    tables = (Table("first", ("x",), ()), Table("second", ("x",), ()))
    text = str(report(tables=tables))
    parts = [
        "model toy: everything tends to 1",
        "ten points, seed 3",
        "  - the data are there: holds",
        "first",
        "second",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_json_is_one_line_in_which_nan_and_infinities_are_null() -> None:
    results = {
        "nan": math.nan,
        "inf": math.inf,
        "nested": {"list": [1.5, -math.inf], "tuple": (math.nan, "inf")},
        "kept": [True, None, 3, "text", 0.1],
    }
    text = report(results=results).to_json()
    assert "\n" not in text
    assert json.loads(text, parse_constant=pytest.fail) == {
        "nan": None,
        "inf": None,
        "nested": {"list": [1.5, None], "tuple": [None, "inf"]},
        "kept": [True, None, 3, "text", 0.1],
    }
    assert math.isnan(results["nan"])


def test_save_makes_the_folder_and_writes_results_and_every_artefact(tmp_path) -> None:
    artefacts = {
        "a.txt": lambda path: path.write_text("first"),
        "b.bin": lambda path: path.write_bytes(b"\0"),
    }
    folder = tmp_path / "deep" / "down"
    saved = report(results={"x": math.inf}, artefacts=artefacts)
    saved.save(folder)
    assert sorted(os.listdir(folder)) == ["a.txt", "b.bin", "results.json"]
    assert (folder / "a.txt").read_text() == "first"
    assert (folder / "results.json").read_text() == saved.to_json() + "\n"
    saved.save(str(folder))
    assert json.loads((folder / "results.json").read_text()) == {"x": None}


@pytest.mark.parametrize(
    ("path", "folder"),
    [("new.png", False), ("old.png", False), ("new", True), ("new/deep/down", True), ("", True)],
)
def test_paths_that_can_be_written_pass_and_nothing_is_made(tmp_path, path, folder) -> None:
    (tmp_path / "old.png").touch()
    check_writable(tmp_path / path, folder=folder)
    check_writable(str(tmp_path / path), folder=folder)
    assert os.listdir(tmp_path) == ["old.png"]


@pytest.mark.parametrize("folder", [False, True])
def test_relative_paths_are_checked_in_the_working_folder(tmp_path, monkeypatch, folder) -> None:
    monkeypatch.chdir(tmp_path)
    check_writable("new", folder=folder)


@pytest.mark.parametrize(
    ("path", "folder", "message"),
    [
        ("file", True, "cannot save into .*file'.* it is a file, name a folder"),
        ("file/below", True, "cannot write .*below'.*file' is a file, not a folder"),
        ("file/below/deep", True, "cannot write .*deep'.*file' is a file, not a folder"),
        ("file/x.png", False, "cannot write .*x.png'.*file' is a file, not a folder"),
        ("", False, "it is a folder, name a file"),
        ("missing/x.png", False, "there is no folder .*missing'"),
    ],
)
def test_what_stands_in_the_way_of_a_path_is_named(tmp_path, path, folder, message) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / path, folder=folder)


@pytest.mark.parametrize(("path", "folder"), [("x.png", False), ("new", True)])
def test_a_folder_without_permission_to_write_is_named(tmp_path, monkeypatch, path, folder) -> None:
    # Permission bits do not bind root, who may run these tests, so the answer is played.
    def access(asked: Path, mode: int) -> bool:
        assert mode == os.W_OK | os.X_OK
        return Path(asked) != tmp_path

    monkeypatch.setattr("implicit_bias.pipeline.report.os.access", access)
    with pytest.raises(ValueError, match=f"no permission to write in '{tmp_path}'"):
        check_writable(tmp_path / path, folder=folder)
