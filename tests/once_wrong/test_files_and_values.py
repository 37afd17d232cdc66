"""What was once wrong about files that are read, texts that are shown, and values that are kept."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import implicit_bias as ib
from tests.reports.kept import NOW


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,label\n1,2,3,0\n4,5,6,1\n", "3 columns, .* 4 fields"),
        ("a,b,label\n1,2,0,\n4,5,1,\n", "3 columns, .* 4 fields"),
        ("\n\na,b,label\n1,2,3,4,0\n", "3 columns, .* 5 fields"),
        ("a,a,label\n1,2,0\n4,5,1\n", "two columns 'a'"),
        ('a,b,"b",label\n1,2,3,0\n4,5,6,1\n', "two columns 'b'"),
        ("label,b,label\n1,2,0\n4,5,1\n", "two columns 'label'"),
    ],
)
def test_columns_without_a_name_of_their_own_are_refused(text, said, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        ib.load_data(str(path))


def test_names_that_pandas_would_give_to_twins_may_be_those_of_columns(tmp_path) -> None:
    path, rows = tmp_path / "x.csv", np.arange(24).reshape(8, 3)
    lines = [f"{a},{b},{c},{c % 2}" for a, b, c in rows]
    path.write_text("\n".join(["a,a.1,b,label", *lines]) + "\n")
    data = ib.load_data(str(path), n_val=2)
    both = np.vstack([data.X_train, data.X_val])
    assert both.shape == (8, 3)


def test_twins_in_a_parquet_file_are_refused_by_their_name(tmp_path) -> None:
    columns = [pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([0, 1])]
    parquet.write_table(pa.table(columns, names=["a", "a", "label"]), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="two columns 'a': rename one"):
        ib.load_data(str(tmp_path / "x.parquet"))


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(NOW / "gln", tmp_path / "x")


def replaced(path, kind: str) -> None:
    """Put a link, a pipe or a device in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
        return
    secret = path.parent.parent / "secret"
    secret.write_text("not for the copy")
    path.symlink_to(secret if kind == "link" else "/dev/zero")


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_a_copy_of_a_report_reads_no_link_no_pipe_and_no_device(kind, folder, tmp_path) -> None:
    assert (folder / "limit.safetensors").is_file()
    replaced(folder / "limit.safetensors", kind)
    why = "no plain file" if kind == "pipe" else "it is a link"
    with pytest.raises(OSError, match=rf"{why}.*limit\.safetensors"):
        ib.load(folder).save(tmp_path / "copy")
    assert not (tmp_path / "copy" / "limit.safetensors").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
@pytest.mark.parametrize("name", ["report.safetensors", "results.json", "run.json"])
def test_a_folder_of_links_and_pipes_is_refused_at_once(kind, name, folder) -> None:
    if name != "report.safetensors":
        (folder / "report.safetensors").unlink()
    replaced(folder / name, kind)
    with pytest.raises(ValueError, match=r"link|no plain file|no saved run|is missing|finished"):
        ib.load(folder)
    with pytest.raises(ValueError, match=r"no plain file|link"):
        ib.run("linear", n_train=30, steps=2, save=folder)
