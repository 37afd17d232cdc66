"""Engines: whichever runs the cells, the same rows come out."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pandas as pd
import pytest

import implicit_bias as ib
from implicit_bias import MissingExtra
from implicit_bias.sweeps import engines
from implicit_bias.sweeps.cell_files import CellFiles
from implicit_bias.sweeps.cells import Cell
from implicit_bias.sweeps.work import Outcome, Work
from tests.commands import ROOT

GRID = {"hidden_units": [1, 2], "seed": range(2)}
SMALL = {"n_train": 12, "steps": 0}
TIMES = ["cell_seconds", "limit_seconds"]


@pytest.fixture
def found(monkeypatch) -> None:
    """The checkout is found by processes of its own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> pd.DataFrame:
    return ib.sweep("gln", GRID, out=tmp_path_factory.mktemp("here"), **SMALL).frame()


def check(done, expected) -> None:
    assert done.finished and not done.failures
    pd.testing.assert_frame_equal(done.frame().drop(columns=TIMES), expected.drop(columns=TIMES))


@pytest.mark.usefixtures("found")
def test_two_processes_do_what_one_does(tmp_path, expected) -> None:
    calls = []
    done = ib.sweep(
        "gln", GRID, out=tmp_path, jobs=2, progress=lambda *told: calls.append(told), **SMALL
    )
    check(done, expected)
    assert [told[1:] for told in calls] == [(0, 0), *((k, 4) for k in range(5))]


@pytest.mark.usefixtures("found")
def test_a_dask_cluster_does_what_one_process_does(tmp_path, expected) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster:
        engine = ib.sweeps.Engine("dask", scheduler=cluster.scheduler_address)
        check(ib.sweep("gln", GRID, out=tmp_path, jobs=2, engine=engine, **SMALL), expected)


@pytest.mark.usefixtures("found")
def test_jobs_of_submitit_do_what_one_process_does(tmp_path, expected) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed")
    engine = ib.sweeps.Engine("slurm", scheduler="local", options={"timeout_min": 5})
    out = tmp_path / "runs"
    check(ib.sweep("gln", GRID, out=out, jobs=2, engine=engine, **SMALL), expected)
    assert {path.suffix for path in out.iterdir()} == {".parquet"}


class Deadly:
    """Work of which one cell ends the process that does it."""

    def __call__(self, cell: Cell) -> Outcome:
        if cell.digest == "3":
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(cell.digest)

    def fail(self, cell: Cell, error: str) -> Outcome:
        return Outcome(cell.digest, error)


@pytest.mark.usefixtures("found")
def test_a_cell_that_kills_its_process_fails_alone() -> None:
    cells = [Cell(str(number), {}, {}) for number in range(6)]
    outcomes = engines._joblib(Deadly(), cells, 2, ib.sweeps.Engine())
    errors = {outcome.cell: outcome.error for outcome in outcomes}
    assert errors == {str(number): None for number in range(6)} | {"3": engines.ENDED}


def test_a_worker_whose_folder_is_another_one_is_told(tmp_path) -> None:
    work = Work("gln", {}, tmp_path, 1)
    with pytest.raises(OSError, match="name a folder that all share"):
        engines._arrived(work, Cell("a", {}, {}), None)


class Job:
    """A job of a cluster that has ended without a word."""

    def done(self) -> bool:
        return True

    def exception(self) -> Exception:
        return RuntimeError("out of time")


def test_cells_of_a_job_that_ended_early_fail_and_those_that_it_wrote_do_not(tmp_path) -> None:
    work, cells = Work("gln", {}, tmp_path, 1), [Cell(name, {}, {}) for name in ("a", "b")]
    work.write(cells[0], [{}], error=None, seconds=1.0)
    job = Job()
    watched = list(engines._watched(CellFiles(tmp_path), [job], [cells]))
    assert watched == [(None, cells[0]), (job, cells[1])]
    lost = engines._arrived(work, cells[1], job.exception())
    assert lost == Outcome("b", "RuntimeError: out of time")
    assert CellFiles(tmp_path).errors(["a", "b"]) == {"b": "RuntimeError: out of time"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "jobli"}, "did you mean 'joblib'"),
        ({"name": "dask"}, "give its address"),
        ({"scheduler": "tcp://here:1"}, "is for the engine dask or slurm"),
        ({"threads": 0}, "from 1 on, got 0"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        ib.sweeps.Engine(**arguments)


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch) -> None:
    monkeypatch.setattr("implicit_bias._extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'implicit-bias\[slurm\]'"):
        ib.sweeps.Engine("slurm")


def test_what_a_killed_writer_has_left_is_cleared_away(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.1.new", tmp_path / ".b.2.new"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    CellFiles(tmp_path).open()
    assert not old.exists() and young.exists()
