"""Engines: whichever runs the cells, the same rows come out."""

from __future__ import annotations

import os
import signal
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

import implicit_bias as ib
from implicit_bias import MissingExtra
from tests.commands import ROOT
from tests.sweeps.trap import Trap

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


def end_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("found")
def test_a_cell_that_kills_its_process_fails_alone(tmp_path) -> None:
    trap = Trap(15, end_process)
    grid = {"n_train": range(12, 18)}
    done = ib.sweep("gln", grid, out=tmp_path, jobs=2, gating=trap, progress=trap.spring,
                    n_val=5, steps=0)  # fmt: skip
    errors = done.frame().set_index("n_train")["cell_error"]
    assert errors.notna().tolist() == [size == 15 for size in grid["n_train"]]
    assert errors[15].startswith("the process that ran the cell was ended from outside")


class Job:
    """A job of a cluster that ends after one cell, or none, of its share."""

    def __init__(self, written: int, error: Exception | None, function, share) -> None:
        function(share[:written])
        self.error = error

    def done(self) -> bool:
        return True

    def exception(self) -> Exception | None:
        return self.error

    def cancel(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch):
    """A cluster whose jobs end early, in place of submitit's."""

    def install(written: int, error: Exception | None) -> ib.sweeps.Engine:
        class AutoExecutor:
            def __init__(self, folder, cluster) -> None:
                pass

            def update_parameters(self) -> None:
                pass

            def map_array(self, function, shares):
                return [Job(written, error, function, share) for share in shares]

        module = ModuleType("submitit")
        module.__spec__ = ModuleSpec("submitit", None)
        module.AutoExecutor = AutoExecutor
        monkeypatch.setitem(sys.modules, "submitit", module)
        return ib.sweeps.Engine("slurm", scheduler="local")

    return install


def test_a_worker_whose_folder_is_another_one_is_reported(tmp_path, cluster) -> None:
    with pytest.raises(ib.sweeps.NotWritten, match="name a folder that all share"):
        ib.sweep("gln", GRID, out=tmp_path, engine=cluster(0, None), **SMALL)


def test_cells_of_a_job_that_ended_early_fail_and_those_that_it_wrote_do_not(
    tmp_path, cluster
) -> None:
    engine = cluster(1, RuntimeError("out of time"))
    done = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, engine=engine, **SMALL)
    assert done.failures == {done.cells[1]: "RuntimeError: out of time"}
    assert done.frame()["status"].notna().tolist() == [True, False]


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
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingExtra, match=r"pip install 'implicit-bias\[slurm\]'"):
        ib.sweeps.Engine("slurm")


def test_what_a_killed_writer_has_left_is_cleared_away(tmp_path: Path) -> None:
    old, young = tmp_path / ".a.1.new", tmp_path / ".b.2.new"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    ib.sweep("linear", {"seed": [0]}, out=tmp_path, **SMALL)
    assert not old.exists() and young.exists()
