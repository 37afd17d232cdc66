"""Files of strangers, whole and with a checksum that fits: refused in words, or harmless."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.torch import save_file

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.runs import Progress
from implicit_bias.runs.reports import (
    FORMAT,
    KIND,
    Decoder,
    Kind,
    Unreadable,
    from_json,
    read_saved,
    write_saved,
)
from tests.commands import home
from tests.reports.kept import CORNERS, NOW

REPORT = "report.safetensors"
GONE = object()


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(NOW / "gln", tmp_path / "x")


def forge(folder, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the record of a report, its checksum with it."""
    arrays, record = read_saved(folder / REPORT, KIND)
    change(record)
    write_saved(folder / REPORT, KIND, arrays, record)


def first(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: record["findings"][0].update(changes)


def refusal(folder) -> str:
    with pytest.raises(ValueError, match="was saved by implicit-bias") as caught:
        ib.load(folder)
    assert "damaged" not in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["../escaped", "../limit.safetensors", "/tmp/limit.safetensors", "..", "", ".profile",
     ".limit.safetensors", "a/limit.safetensors", "C:limit.safetensors", "a\\limit.safetensors",
     "run.json", "results.json", 5, None],
)  # fmt: skip
def test_a_report_names_no_file_but_those_beside_it(name, folder, tmp_path) -> None:
    forge(folder, first(files=["limit.safetensors", name]))
    before = sorted(tmp_path.iterdir())
    assert f"{name!r} is no plain name of a file" in refusal(folder)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("finding", {"files": 5}, "'files' is int where list should be"),
        ("finding", {"panels": {}}, "'panels' is dict where list should be"),
        ("finding", {"objects": [["limit"]]}, "is not built as a report is"),
        ("finding", {"key": 5}, "'key' of a finding is int"),
        ("finding", {"tables": []}, "'tables' of a finding is list"),
        ("finding", {"record": None}, "'record' of a finding is NoneType"),
        ("finding", {"key": GONE}, "it has no key of a Finding"),
        ("report", {"findings": 5}, "'findings' is int where list should be"),
        ("report", {"findings": [5]}, "int stands where 'objects' of something should be"),
        ("report", {"findings": []}, "no heading or no findings"),
        ("report", {"findings": GONE}, "'findings' is missing where list should be"),
        ("report", {"heading": {"a": 1}}, "no heading or no findings"),
        ("report", {"interrupted": "no"}, "'interrupted' is str where bool should be"),
        ("report", {"call": None}, "'call' is NoneType where str should be"),
        ("heading", {"theorem": GONE}, "it has no theorem of a Heading"),
    ],
)
def test_a_report_of_another_shape_is_refused_with_what_is_wrong(
    part, changes, message, folder
) -> None:
    def change(record: dict[str, Any]) -> None:
        parts = {"report": record, "heading": record["heading"]["state"],
                 "finding": record["findings"][0]}  # fmt: skip
        parts[part].update(changes)
        for name in [name for name, value in changes.items() if value is GONE]:
            del parts[part][name]

    forge(folder, change)
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"#": "class:Popen", "state": {}}, "'class:Popen' is no class of results"),
        ({"#": "subprocess:Popen", "state": {}}, "'subprocess:Popen' is no part of results"),
        ({"#": "function:write_atomically"}, "is no panel or function"),
        ({"#": "panel:os.system"}, "is no panel or function"),
        ({"#": "class:GLNLimit", "state": {}}, "has no zeta, dual"),
        ({"#": "class:GLNLimit", "state": 5}, "'state' is int where dict should be"),
        ({"#": "class:GLNLimit", "state": {"#": "mapping", "of": [[1, 2]], "fixed": False}},
         "has no names"),
        ({"#": "class:GLNLimit"}, "'state' is missing"),
        ({"#": "enum:Status", "member": "BETTER"}, "'BETTER' is none of Status"),
        ({"#": "gating:HyperplaneContexts", "state": {}}, "has no normals, cutoffs"),
        ({"#": "network:GLN", "state": 5}, "'state' is int"),
        ({"#": "array", "name": "a", "fixed": True, "scalar": False, "id": "0"}, "no array 'a'"),
        ({"#": "array", "name": ["a"]}, "'name' is list where str should be"),
        ({"#": "known", "id": "7"}, "'7' before it has one"),
        ({"#": "lambda"}, "'lambda' is no part of results"),
        ({"#": None}, "None is no part of results"),
        ({"#": ["array"]}, r"['array'] is no part of results"),
        ({"#": "tuple", "of": 5}, "'of' is int where list should be"),
        ({"#": "texts", "of": [["a"], ["b", "c"]]}, "no texts, or in lists of different lengths"),
        ({"#": "texts", "of": [1, 2]}, "no texts"),
        ({"#": "texts", "of": ["x" * 30_000_000, *[""] * 100]}, "101 texts of up to 30000000"),
    ],
)  # fmt: skip
def test_a_tree_that_says_what_no_result_says_is_refused(tree, message) -> None:
    with pytest.raises(Unreadable, match=re.escape(message)):
        Decoder({}).decode(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {"#": "set", "of": [[1]]},
        {"#": "mapping", "of": [[[1], 2]], "fixed": False},
        {"#": "mapping", "of": [[1]], "fixed": False},
        {"#": "mapping", "of": [1], "fixed": False},
        {"#": "partial", "of": {"#": "enum:Status", "member": "SOLVED"}, "arguments": [],
         "keywords": {}},
    ],
)  # fmt: skip
def test_a_tree_that_python_cannot_build_is_refused_in_one_message(tree, folder) -> None:
    forge(folder, first(objects=[["x", tree]]))
    assert re.search(r"is not built as a report is|lacks or misnames", refusal(folder))


def test_a_panel_calls_nothing_but_what_draws(folder) -> None:
    tree = {"#": "partial", "of": {"#": "function:builtins.exec"}, "arguments": [], "keywords": {}}
    forge(folder, first(panels=[tree]))
    assert "'function:builtins.exec' is no panel or function" in refusal(folder)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [100, 2_000, 100_000])
def test_json_that_is_nested_too_deep_is_refused(opening, depth, folder) -> None:
    text = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    with pytest.raises(ValueError, match="nested deeper than 90 levels"):
        from_json(text)
    if depth <= 2_000:
        header = {"format": FORMAT, "kind": "Report", "version": "1"}
        whole = json.dumps(header)[:-1] + f', "record": {{"findings": {text}}}}}'
        save_file({"a": torch.zeros(1)}, folder / REPORT, metadata={"implicit-bias": whole})
        with pytest.raises(ValueError, match=r"cannot be read .*nested deeper than 90 levels"):
            ib.load(folder)
    (folder / REPORT).unlink()
    (folder / "results.json").write_text(text)
    with pytest.raises(ValueError, match="nested deeper"):
        ib.load(folder)


def test_a_deeply_nested_index_is_refused_where_a_run_would_go_on(tmp_path) -> None:
    (tmp_path / "run.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match=r"run\.json' cannot be read .*nested deeper"):
        ib.run("linear", n_train=30, steps=2, save=tmp_path)


def test_texts_that_would_take_all_memory_are_refused_before_they_do(tmp_path) -> None:
    path, gating = tmp_path / "gating", ib.HyperplaneContexts(1).fit(CORNERS)
    gating.save(path)
    kind = Kind.of(ib.HyperplaneContexts, "save the gates again")
    arrays, texts = read_saved(path, kind)
    # As one array 4 bytes a character of the longest, for each: 800 GB.
    write_saved(path, kind, arrays, texts | {"feature_names": ["x" * 10**6, *[""] * 200_000]})
    start = time.perf_counter()
    with pytest.raises(ValueError, match="200001 texts of up to 1000000 characters are too many"):
        ib.load(path)
    assert time.perf_counter() - start < 10


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08"


def test_no_text_of_a_file_commands_a_terminal(folder) -> None:
    def spoil(record: dict[str, Any]) -> None:
        record["heading"]["state"]["setup"] += ESCAPES + "data\tof ä"
        table = record["findings"][0]["tables"]["of"][0]["state"]
        table["title"] += ESCAPES
        record["findings"][0]["record"] |= {ESCAPES: ESCAPES}

    forge(folder, spoil)
    report = ib.load(folder)
    commands = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
    shown = CliRunner().invoke(cli.main, ["show", str(folder)])
    assert shown.exit_code == 0, shown.stderr
    for text in (shown.stdout, shown.stderr, str(report), repr(report), repr(report.heading),
                 *report.results):  # fmt: skip
        assert not commands.search(text)
    assert "[2J31mdata\tof ä" in report.heading.setup


@pytest.mark.parametrize("entry", ["kind", "version", "format"])
def test_no_message_about_a_file_commands_a_terminal(entry, folder) -> None:
    with safe_open(folder / REPORT, framework="numpy") as file:
        header = json.loads(file.metadata()["implicit-bias"])
    header |= {"format": 2} if entry == "version" else {}
    arrays = {name: torch.tensor(array) for name, array in load_file(folder / REPORT).items()}
    text = json.dumps(header | {entry: ESCAPES + "x"})
    save_file(arrays, folder / REPORT, metadata={"implicit-bias": text})
    with pytest.raises(ValueError, match=r"x") as caught:
        ib.load(folder)
    assert "\x1b" not in str(caught.value) and "\x9b" not in str(caught.value)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn], ids=str)
def test_arrays_of_a_type_that_numpy_has_not_are_refused(kind, folder) -> None:
    save_file({"a": torch.zeros(2).to(kind)}, folder / REPORT, metadata={"implicit-bias": "{}"})
    with pytest.raises(ValueError, match="of a type that NumPy does not have"):
        ib.load(folder)


def test_fields_that_came_or_went_are_filled_or_left_out(folder, monkeypatch) -> None:
    expected = ib.load(folder)

    def older(record: dict[str, Any]) -> None:
        record["heading"]["state"]["record"]["options"]["retired"] = True
        for finding in record["findings"]:
            finding["row"]["retired_column"] = 1.0
            del finding["finished"], finding["shortfall"]
            finding["mood"] = "of a later version"
            for table in finding["tables"]["of"]:
                del table["state"]["of_network"]
                table["state"]["colour"] = "red"

    forge(folder, older)
    found = ib.load(folder)
    assert found.rows() == expected.rows()
    assert found.results["limit"] == expected.results["limit"]
    assert all(table.of_network is False for table in found.tables)
    np.testing.assert_array_equal(found.limit.zeta, expected.limit.zeta)

    def lacking(record: dict[str, Any]) -> None:
        for finding in record["findings"]:
            for table in finding["tables"]["of"]:
                del table["state"]["columns"]

    forge(folder, lacking)
    said = refusal(folder)
    assert "cannot read it: it has no columns of a Table" in said
    assert said.endswith("load it with the version that wrote it, or run it again")


def labelled_file(path, labels: list[str]) -> str:
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{labels[i % len(labels)]}"
            for i, (a, b) in enumerate(rng.normal(size=(30, 2)))]  # fmt: skip
    path.write_text("\n".join(["a,b,label", *rows]) + "\n")
    return str(path)


IN_A_LINE = ESCAPES.replace("\r", "")


@pytest.mark.parametrize(
    ("labels", "options", "code"),
    [
        ([f"cat{IN_A_LINE}", f"[/x]{IN_A_LINE}"], ("--positive", f"cat{IN_A_LINE}"), (0, 3, 5)),
        ([f"cat{IN_A_LINE}", f"[/x]{IN_A_LINE}", "dog"], ("--classes", "all"), (0, 3, 5)),
        ([f"cat{IN_A_LINE}", f"[/x]{IN_A_LINE}"], ("--positive", f"no{IN_A_LINE}"), (2,)),
        ([f"cat{IN_A_LINE}"], (), (2,)),
    ],
)
def test_no_label_of_own_data_commands_a_terminal(labels, options, code, tmp_path) -> None:
    commands = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
    words = ["--model", "linear", "--data", labelled_file(tmp_path / "x.csv", labels), *options,
             "--steps", "20"]  # fmt: skip
    for further in ((), ("--json",), ("--save", str(tmp_path / "run"))):
        shown = CliRunner().invoke(cli.main, ["compare", *words, *further])
        assert shown.exit_code in code, shown.stderr
        assert not commands.search(shown.stdout) and not commands.search(shown.stderr)
    if code != (2,):
        assert "cat" in shown.stdout
        again = CliRunner().invoke(cli.main, ["show", str(tmp_path / "run")])
        assert "cat" in again.stdout and not commands.search(again.stdout + again.stderr)


def test_a_bar_shows_any_name_of_a_stage(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with home(Progress).bar() as progress:
        progress.stage(f"training on [/x]{ESCAPES}")
        time.sleep(0.3)
    shown = capsys.readouterr().err
    assert "training on [/x]]0;owned[2J31m" in shown and "\x9b" not in shown and "\x07" not in shown
