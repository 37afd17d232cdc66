"""Sweeps: what is finished stays finished, however they end."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_info

import implicit_bias as ib
from tests.commands import environment
from tests.sweeps.trap import Trap, interrupt, no_such_luck

GRID = {"hidden_units": [1, 2], "seed": range(2)}
SMALL = {"n_train": 12, "steps": 0}


def written(folder) -> dict[str, float]:
    """The cells in a folder, with the times when their rows were written."""
    if not any(folder.glob("**/*.*")):
        return {}
    frame = ib.sweeps.read_rows(folder)
    return dict(zip(frame["cell"], frame["cell_written"], strict=True))


def caught(out, sizes, trap, **further):
    """A sweep of as many training samples each, gated by a trap."""
    return ib.sweep("gln", {"n_train": sizes}, out=out, gating=trap, progress=trap.spring,
                    n_val=5, steps=0, **further)  # fmt: skip


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


def test_what_is_there_is_not_run_again(tmp_path) -> None:
    caught(tmp_path, [12, 13], Trap(0, no_such_luck))
    before = written(tmp_path)
    done = caught(tmp_path, [12, 13, 14], Trap(13, no_such_luck))
    assert done.n_skipped == 2 and not done.failures and len(done.cells) == 3
    assert written(tmp_path).items() >= before.items()


def test_a_failed_cell_is_a_row_with_its_message_and_ends_no_other(tmp_path) -> None:
    sizes = [12, 13, 14]
    done = caught(tmp_path, sizes, Trap(13, no_such_luck))
    frame = done.frame()
    assert frame["cell_error"].tolist()[1] == "RuntimeError: no such luck"
    assert frame["status"].notna().tolist() == [True, False, True]
    assert frame["n_train"].tolist() == sizes
    assert list(done.failures.values()) == ["RuntimeError: no such luck"]
    again = caught(tmp_path, sizes, Trap(0, no_such_luck))
    assert again.n_skipped == 3 and again.failures == done.failures
    retried = caught(tmp_path, sizes, Trap(0, no_such_luck), retry=True)
    assert retried.n_skipped == 2 and not retried.failures


def test_an_interrupt_keeps_the_cells_before_it(tmp_path) -> None:
    sizes = [12, 13, 14, 15]
    done = caught(tmp_path, sizes, Trap(14, interrupt))
    assert not done.finished and done.frame()["n_train"].tolist() == [12, 13]
    assert caught(tmp_path, sizes, Trap(0, interrupt)).n_skipped == 2


@pytest.mark.usefixtures("heard")
def test_an_interrupt_that_falls_where_exceptions_are_lost_ends_the_sweep(tmp_path) -> None:
    def swallow() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    done = caught(tmp_path, [12, 13, 14], Trap(13, swallow))
    assert not done.finished and done.frame()["n_train"].tolist() == [12, 13]
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.usefixtures("heard")
def test_an_interrupt_at_the_last_step_of_a_training_ends_the_sweep(tmp_path) -> None:
    def press(step: int, n_steps: int, log_loss: float) -> None:
        if step == n_steps:
            signal.raise_signal(signal.SIGINT)

    done = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, n_train=12, steps=5, callback=press)
    assert not done.finished and done.frame()["seed"].tolist() == [0]
    assert done.frame()["finished"].tolist() == [True]


def test_a_run_that_was_cut_short_is_no_result(tmp_path) -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def soon(stage: str, done: int, of: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.5)

    try:
        # Ten million steps take minutes.
        done = ib.sweep(
            "linear", {"seed": [0]}, out=tmp_path, n_train=12, steps=10**7, progress=soon
        )
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not done.finished and written(tmp_path) == {}


def test_a_full_disk_ends_the_sweep_and_takes_no_file_with_it(tmp_path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))

    sizes = [12, 13, 14, 15]
    try:
        with pytest.raises(ib.sweeps.NotWritten, match="File too large"):
            caught(tmp_path, sizes, Trap(14, fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ib.sweeps.read_rows(tmp_path)["n_train"].tolist() == [12, 13]
    assert caught(tmp_path, sizes, Trap(0, fill)).n_skipped == 2


@pytest.mark.long
def test_a_killed_sweep_goes_on_where_it_was(tmp_path) -> None:
    out = tmp_path / "runs"
    words = ["--model", "linear", "--seed", "0:400", "--n-train", "12", "--steps", "40",
             "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "implicit_bias", "sweep", *words],
        env=environment(), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(written(out)) < 3 and time.monotonic() < deadline:
        time.sleep(0.2)
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    before = written(out)
    assert 3 <= len(before) < 400
    done = ib.sweep("linear", {"seed": range(len(before) + 1)}, out=out, n_train=12, steps=40)
    assert done.n_skipped == len(before)
    assert written(out).items() >= before.items()
    assert done.frame()["status"].notna().all()


def test_cells_have_the_threads_that_were_asked_for_and_the_caller_keeps_its_own(tmp_path) -> None:
    seen = []
    before = torch.get_num_threads(), threads_of_blas()
    trap = Trap(12, lambda: seen.append((torch.get_num_threads(), threads_of_blas())))
    caught(tmp_path, [12], trap, engine=ib.sweeps.Engine(threads=2))
    # A library that was built for one thread, as some solvers bring, stays at one.
    assert {(torch_threads, max(blas)) for torch_threads, blas in seen} == {(2, 2)}
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
