"""The folder of a sweep: nothing that was written is lost, read twice, or believed when torn."""

from __future__ import annotations

import os
import shutil

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import implicit_bias as ib
from tests.commands import home

GRID = {"seed": range(4)}
SMALL = {"n_train": 12, "steps": 0}
TIMES = ["cell_seconds", "cell_written", "limit_seconds"]


def swept(folder, **further):
    return ib.sweep("linear", GRID, out=folder, **SMALL | further)


def check_same(frame, expected) -> None:
    pd.testing.assert_frame_equal(frame.drop(columns=TIMES), expected.drop(columns=TIMES))


@pytest.fixture
def expected(tmp_path) -> pd.DataFrame:
    return swept(tmp_path / "expected").frame()


@pytest.fixture
def loose(tmp_path, monkeypatch):
    """A folder whose records are not compacted, as a sweep that was killed leaves it."""
    with monkeypatch.context() as patched:
        patched.setattr(home(ib.sweep).Store, "compact", lambda store: None)
        swept(tmp_path / "runs")
    return tmp_path / "runs"


def records(folder):
    return list((folder / "_new").iterdir())


def test_records_are_read_as_they_are_and_become_one_table(loose, expected) -> None:
    (path,) = records(loose)
    assert path.read_bytes().count(b'"rows"') == 4 and not list(loose.glob("*.parquet"))
    check_same(ib.sweeps.read_rows(loose), expected)
    done = swept(loose)
    assert done.n_skipped == 4 and records(loose) == []
    assert len(list(loose.glob("*.parquet"))) == 1
    check_same(done.frame(), expected)


@pytest.mark.parametrize(
    "torn",
    [
        lambda content: content[:-10],
        lambda content: content[:-10] + bytes(10),
        lambda content: content.replace(b'"rows"', b'"r0ws"', 1),
        lambda content: content[: content.index(b"\n", 1) + 1] + b"{\n[]\n" + bytes(40),
        lambda content: b"",
    ],
    ids=["cut", "zeros", "other", "noise", "empty"],
)
def test_what_a_power_cut_has_torn_is_done_again(loose, expected, torn) -> None:
    (path,) = records(loose)
    whole = path.read_bytes()
    path.write_bytes(torn(whole))
    left = {0: 0, 1: 1}.get(path.read_bytes().count(b'"rows"'), 3)
    done = swept(loose)
    assert done.n_skipped == left < 4
    check_same(done.frame(), expected)


def test_a_table_of_rows_that_are_records_still_is_read_once(loose, expected) -> None:
    (path,) = records(loose)
    kept = path.read_bytes()
    swept(loose)
    (table,) = loose.glob("*.parquet")
    # As of two compactions at the same time, the second of which was killed before its end.
    shutil.copy(table, loose / "rows-other.parquet")
    path.write_bytes(kept)
    check_same(ib.sweeps.read_rows(loose), expected)
    check_same(swept(loose).frame(), expected)
    assert records(loose) == [] and len(list(loose.glob("*.parquet"))) == 1


def test_a_record_that_comes_while_rows_are_compacted_stays(loose, monkeypatch) -> None:
    (path,) = records(loose)
    *first, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(first))
    store = home(ib.sweeps.read_rows).Store
    write = store.compact.__globals__["write_atomically"]

    def late(where, content) -> None:
        (taken,) = records(loose)
        with taken.open("ab") as file:
            file.write(last)
        write(where, content)

    monkeypatch.setitem(store.compact.__globals__, "write_atomically", late)
    store(loose).compact()
    assert len(records(loose)) == 1
    assert ib.sweeps.read_rows(loose)["seed"].tolist() == [0, 1, 2, 3]


def test_a_compaction_that_fails_takes_no_row_with_it(loose, expected, monkeypatch) -> None:
    def full(where, content) -> None:
        raise OSError(28, "No space left on device", str(where))

    with monkeypatch.context() as patched:
        store = home(ib.sweeps.read_rows).Store
        patched.setitem(store.compact.__globals__, "write_atomically", full)
        with pytest.raises(OSError, match="No space left"):
            store(loose).compact()
    check_same(ib.sweeps.read_rows(loose), expected)
    assert swept(loose).n_skipped == 4


def test_a_full_disk_at_the_end_leaves_the_rows_as_records(
    tmp_path, expected, monkeypatch, caplog
) -> None:
    def full(where, content) -> None:
        raise OSError(28, "No space left on device", str(where))

    store = home(ib.sweeps.read_rows).Store
    with monkeypatch.context() as patched:
        patched.setitem(store.compact.__globals__, "write_atomically", full)
        check_same(swept(tmp_path / "runs").frame(), expected)
    assert "stay apart: [Errno 28] No space left" in caplog.text
    assert len(records(tmp_path / "runs")) == 1


def test_show_compacts_what_no_sweep_is_writing_to(loose) -> None:
    ib.sweeps.read_rows(loose)
    assert len(records(loose)) == 1  # young: its sweep may be at work
    os.utime(records(loose)[0], (0, 0))
    assert len(ib.sweeps.read_rows(loose)) == 4 and records(loose) == []


def test_a_folder_with_a_table_for_every_cell_is_read_and_gone_on_with(tmp_path, expected) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for row in expected.drop(columns=["cell_written", "kkt_cosine"]).to_dict("records"):
        table = pa.Table.from_pandas(pd.DataFrame([row]), preserve_index=False)
        parquet.write_table(table, old / f"{row['cell']}.parquet")
    (old / f"{expected['cell'][2]}.parquet").write_bytes(b"")
    done = swept(old)
    assert done.n_skipped == 3 and len(list(old.glob("*.parquet"))) == 1
    check_same(done.frame(), expected)


@pytest.mark.parametrize("name", ["rows-0.parquet", "mine.parquet"])
def test_a_table_that_is_damaged_or_something_else_is_named(tmp_path, name) -> None:
    swept(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}' cannot be read as rows of a sweep .*move it"):
        swept(tmp_path)
    (tmp_path / name).write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=rf"{name}' cannot be read .*delete it"):
        swept(tmp_path)


def test_records_wait_for_the_disk_where_it_is_asked_for(tmp_path, monkeypatch) -> None:
    synced = []
    wait = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(number), wait(number)))
    swept(tmp_path / "loose")
    usual = len(synced)
    swept(tmp_path / "safe", sync=True)
    assert len(synced) - usual == usual + 4


def test_infinite_numbers_and_texts_of_any_letters_come_back(loose) -> None:
    (path,) = records(loose)
    text = path.read_text().replace('"objective":', '"objective":Infinity,"lower_bound":', 1)
    path.write_text(text.replace('"model":"linear"', '"model":"lin\\u00e9\\u6e2c"', 1))
    frame = ib.sweeps.read_rows(loose)
    assert frame["objective"][0] == float("inf") and frame["model"][0] == "liné測"
