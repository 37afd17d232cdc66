"""Sweeps: what is finished stays finished, however they end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_info

import implicit_bias as ib
from implicit_bias.runs import Progress
from implicit_bias.sweeps import NotWritten, cell_files, work
from tests.commands import environment

GRID = {"hidden_units": [1, 2], "seed": range(2)}
SMALL = {"n_train": 12, "steps": 0}
TIMES = ["cell", "cell_seconds", "limit_seconds"]


def files(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}


def failing(monkeypatch, error, *, seed) -> None:
    """Runs with this seed end by `error`."""
    usual = work.run

    def run(model, **options):
        if options["seed"] == seed:
            raise error
        return usual(model, **options)

    monkeypatch.setattr(work, "run", run)


def test_the_rows_of_a_sweep_are_those_of_run(tmp_path) -> None:
    frame = ib.sweep("gln", GRID, out=tmp_path, **SMALL).frame()
    rows = [ib.run("gln", hidden_units=units, seed=seed, **SMALL).row()
            for units in (1, 2) for seed in (0, 1)]  # fmt: skip
    alone = pd.DataFrame(rows).drop(columns="limit_seconds")
    assert frame["cell_error"].isna().all()
    for name in alone:
        swept = [None if value != value else value for value in frame[name].tolist()]
        assert swept == [None if value != value else value for value in alone[name].tolist()], name


def test_pandas_and_polars_read_the_folder_as_one_frame(tmp_path) -> None:
    ib.sweep("gln", {"seed": [0]}, out=tmp_path, **SMALL)
    ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, **SMALL)
    frame = pd.read_parquet(tmp_path)
    assert sorted(frame["model"]) == ["gln", "linear", "linear"]
    assert list(frame) == ib.sweeps.sweep_schema().names
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert polars.read_parquet(tmp_path).columns == list(frame)


def test_what_is_there_is_not_run_again(tmp_path, monkeypatch) -> None:
    ib.sweep("gln", {"seed": [0, 1]}, out=tmp_path, **SMALL)
    before = files(tmp_path)
    failing(monkeypatch, AssertionError("run again"), seed=1)
    done = ib.sweep("gln", {"seed": range(3)}, out=tmp_path, **SMALL)
    assert done.n_skipped == 2 and not done.failures and len(done.cells) == 3
    assert files(tmp_path).items() >= before.items()


def test_a_failed_cell_is_a_row_with_its_message_and_ends_no_other(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        failing(patched, ValueError("no such luck"), seed=1)
        done = ib.sweep("gln", {"seed": range(3)}, out=tmp_path, **SMALL)
    frame = done.frame()
    assert frame["cell_error"].tolist()[1] == "ValueError: no such luck"
    assert frame["status"].notna().tolist() == [True, False, True]
    assert frame["seed"].tolist() == [0, 1, 2]
    assert list(done.failures.values()) == ["ValueError: no such luck"]
    again = ib.sweep("gln", {"seed": range(3)}, out=tmp_path, **SMALL)
    assert again.n_skipped == 3 and again.failures == done.failures
    retried = ib.sweep("gln", {"seed": range(3)}, out=tmp_path, retry=True, **SMALL)
    assert retried.n_skipped == 2 and not retried.failures


def test_an_interrupt_keeps_the_cells_before_it(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        failing(patched, KeyboardInterrupt(), seed=2)
        done = ib.sweep("gln", {"seed": range(4)}, out=tmp_path, **SMALL)
    assert not done.finished and done.frame()["seed"].tolist() == [0, 1]
    assert ib.sweep("gln", {"seed": range(4)}, out=tmp_path, **SMALL).n_skipped == 2


def test_a_run_that_was_cut_short_is_no_result(tmp_path, monkeypatch) -> None:
    def cut(done: int, of: int) -> None:
        raise KeyboardInterrupt

    run = partial(work.run, progress=Progress(advance=cut))
    monkeypatch.setattr(work, "run", run)
    done = ib.sweep("linear", {"seed": [0]}, out=tmp_path, n_train=12, steps=50)
    assert not done.finished and files(tmp_path) == {}


def test_a_full_disk_ends_the_sweep_and_takes_no_file_with_it(tmp_path, monkeypatch) -> None:
    usual, count = cell_files.write_atomically, iter(range(9))

    def write(path, content, **how):
        if next(count) == 2:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        usual(path, content, **how)

    with monkeypatch.context() as patched:
        patched.setattr(cell_files, "write_atomically", write)
        with pytest.raises(NotWritten, match="No space left"):
            ib.sweep("gln", {"seed": range(4)}, out=tmp_path, **SMALL)
    assert sorted(pd.read_parquet(tmp_path)["seed"]) == [0, 1]
    assert ib.sweep("gln", {"seed": range(4)}, out=tmp_path, **SMALL).n_skipped == 2


def test_a_killed_sweep_goes_on_where_it_was(tmp_path) -> None:
    out = tmp_path / "runs"
    words = ["--model", "linear", "--seed", "0:400", "--n-train", "12", "--steps", "40",
             "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "implicit_bias", "sweep", *words],
        env=environment(), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(files(out)) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    before = files(out)
    assert 3 <= len(before) < 400
    done = ib.sweep("linear", {"seed": range(len(before) + 1)}, out=out, n_train=12, steps=40)
    assert done.n_skipped == len(before)
    assert files(out).items() >= before.items()
    assert done.frame()["status"].notna().all()


def test_cells_have_the_threads_that_were_asked_for_and_the_caller_keeps_its_own(
    tmp_path, monkeypatch
) -> None:
    seen = []
    before = torch.get_num_threads(), threads_of_blas()
    usual = work.run

    def run(*args, **kwargs):
        seen.append((torch.get_num_threads(), threads_of_blas()))
        return usual(*args, **kwargs)

    monkeypatch.setattr(work, "run", run)
    engine = ib.sweeps.Engine(threads=2)
    ib.sweep("linear", {"seed": [0]}, out=tmp_path, engine=engine, **SMALL)
    # A library that was built for one thread, as some solvers bring, stays at one.
    assert [(torch_threads, max(blas)) for torch_threads, blas in seen] == [(2, 2)]
    assert (torch.get_num_threads(), threads_of_blas()) == before


def threads_of_blas():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_data_of_ones_own_are_swept(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = np.where(X @ np.ones(4) > 0, 1.0, -1.0)
    frame = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, X=X, y=y, steps=0).frame()
    assert frame["status"].tolist() == ["SOLVED", "SOLVED"]
    assert frame["data_digest"].nunique() == 2  # another part is held out
    assert os.fspath(tmp_path) not in frame.to_csv()
