"""Engines: whichever runs the cells, the same rows come out."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas as pd
import psutil
import pytest
from joblib.externals.loky import get_reusable_executor

import implicit_bias as ib
from implicit_bias import MissingExtra
from tests.commands import ROOT, environment
from tests.long import some_of
from tests.sweeps.trap import Trap

GRID = {"hidden_units": [1, 2], "seed": range(2)}
SMALL = {"n_train": 12, "steps": 0}
TIMES = ["cell_seconds", "cell_written", "limit_seconds", "training_seconds"]


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


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a Dask scheduler with two workers, which are given up at their first death."""
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    import dask

    settings = {"distributed.scheduler.allowed-failures": 0}
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    found = pytest.MonkeyPatch()
    found.setenv("PYTHONPATH", str(ROOT))  # the checkout, for processes of its own
    with found.context(), dask.config.set(settings), distributed.LocalCluster(**how) as cluster:
        yield cluster.scheduler_address
    found.undo()


@pytest.mark.long
def test_a_dask_cluster_does_what_one_process_does(tmp_path, expected, scheduler) -> None:
    engine = ib.sweeps.Engine("dask", scheduler=scheduler)
    check(ib.sweep("gln", GRID, out=tmp_path, jobs=2, engine=engine, **SMALL), expected)
    with pytest.raises(ValueError, match="Client has no option `nam`: did you mean 'name'"):
        ib.sweeps.Engine("dask", scheduler=scheduler, options={"nam": "a"})


def test_a_scheduler_is_given_by_its_address_a_client_or_a_cluster(scheduler) -> None:
    from distributed import Client, LocalCluster

    with Client(scheduler, set_as_default=False) as client:
        assert ib.sweeps.Engine("dask", scheduler=client).scheduler == scheduler
    how = {"n_workers": 0, "processes": False, "dashboard_address": None}
    with LocalCluster(**how) as cluster:
        engine = ib.sweeps.Engine("dask", scheduler=cluster)
        assert engine == ib.sweeps.Engine("dask", scheduler=cluster.scheduler_address)
    with pytest.raises(TypeError, match=r"must be the address of a Dask .* got int"):
        ib.sweeps.Engine("dask", scheduler=3)


def test_a_worker_of_dask_that_dies_loses_its_cell_and_not_the_sweep(tmp_path, scheduler) -> None:
    trap = Trap(13, end_process)
    sizes = {"n_train": [12, 13, 14]}
    engine = ib.sweeps.Engine("dask", scheduler=scheduler)
    done = ib.sweep("gln", sizes, out=tmp_path, gating=trap, progress=trap.spring, engine=engine,
                    n_val=5, steps=0)  # fmt: skip
    assert list(done.lost) == [done.cells[1]] and not done.failures and not done.finished
    assert done.lost[done.cells[1]].startswith("its workers were ended from outside")
    assert done.frame()["n_train"].tolist() == [12, 14]


def end_process() -> None:
    assert "torch" not in sys.modules  # no cell here trains
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.usefixtures("found")
def test_a_cell_that_kills_its_process_is_lost_alone_and_runs_another_time(tmp_path) -> None:
    get_reusable_executor().shutdown()  # joblib keeps processes, in which earlier cells trained
    trap = Trap(13, end_process)
    grid = {"n_train": range(12, 15)}
    done = ib.sweep("gln", grid, out=tmp_path, jobs=2, gating=trap, progress=trap.spring,
                    n_val=5, steps=0)  # fmt: skip
    assert done.frame()["n_train"].tolist() == [12, 14]
    assert not done.finished and not done.failures and list(done.lost) == [done.cells[1]]
    assert done.lost[done.cells[1]].startswith("the process that ran the cell was ended")
    again = ib.sweep("gln", grid, out=tmp_path, gating=Trap(0, end_process), n_val=5, steps=0)
    assert again.n_skipped == 2 and again.finished
    assert again.frame()["n_train"].tolist() == list(grid["n_train"])


def tell_time_out() -> None:
    os.kill(os.getpid(), signal.SIGUSR2)


def out_of_time(number: int, frame: object) -> None:
    raise RuntimeError("the job is out of time")


def test_a_job_that_runs_out_of_time_fails_no_cell(tmp_path, cluster) -> None:
    """At the signal of a time-out, submitit raises in whatever runs."""
    trap = Trap(13, tell_time_out)
    before = signal.signal(signal.SIGUSR2, out_of_time)
    try:
        done = ib.sweep("gln", {"n_train": [12, 13, 14]}, out=tmp_path, gating=trap, n_val=5,
                        progress=trap.spring, engine=cluster(3, None), steps=0)  # fmt: skip
        assert signal.getsignal(signal.SIGUSR2) is out_of_time
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert done.frame()["n_train"].tolist() == [12] and not done.failures
    ended = "its job has ended (RuntimeError: the job is out of time)"
    assert done.lost == dict.fromkeys(done.cells[1:], ended)


class Job:
    """A job of a cluster that ends after one cell, or none, of its share."""

    sent: ClassVar[list[int]] = []

    def __init__(self, written: int, error: Exception | None, function, share) -> None:
        self.sent.append(len(pickle.dumps((function, share))))
        self.error = error
        try:
            function(share[:written])
        except RuntimeError as own:
            self.error = own

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


def test_cells_of_a_job_that_ended_early_are_lost_and_not_failed(tmp_path, cluster) -> None:
    engine = cluster(1, RuntimeError("out of time\nTraceback"))
    grid = {"seed": [0, 1, 2]}
    done = ib.sweep("linear", grid, out=tmp_path, engine=engine, **SMALL)
    ended = "its job has ended (RuntimeError: out of time)"
    assert done.lost == dict.fromkeys(done.cells[1:], ended) and not done.failures
    assert done.frame()["seed"].tolist() == [0] and not done.finished
    again = ib.sweep("linear", grid, out=tmp_path, engine=cluster(2, None), **SMALL)
    assert again.n_skipped == 1 and again.frame()["seed"].tolist() == [0, 1, 2]


def test_jobs_are_sent_where_the_data_are_and_not_the_data(tmp_path, cluster) -> None:
    X = np.random.default_rng(0).normal(size=(400, 30))
    y = np.where(X @ np.ones(30) > 0, 1, -1)
    engine = cluster(2, None)
    done = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, engine=engine, X=X, y=y, steps=0)
    assert done.frame()["status"].tolist() == ["SOLVED", "SOLVED"]
    assert max(Job.sent) < X.nbytes / 20
    stored = [np.load(path) for path in (tmp_path / "_data").iterdir()]
    assert sorted(array.shape for array in stored) == [(400,), (400, 30)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "jobli"}, "did you mean 'joblib'"),
        ({"name": "dask"}, "give its address"),
        ({"scheduler": "tcp://here:1"}, "is for the engine dask or slurm"),
        ({"threads": 0}, "from 1 on, got 0"),
        ({"threads": 1.5}, "`threads` must be an integer, got 1.5"),
        ({"options": {"n_jobs": 4}}, "`n_jobs` is the sweep's own: give `jobs`"),
        (
            {"options": {"verbos": 4}},
            "joblib.Parallel has no option `verbos`: did you mean 'verbose'",
        ),
        ({"options": {"backend": "lok"}}, "joblib.Parallel does not take these `options`: .*lok"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(arguments, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
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


def ended(processes: list[psutil.Process], seconds: float = 60) -> bool:
    """True once all of them have ended."""
    return not psutil.wait_procs(processes, timeout=seconds)[1]


def lines(out: Path) -> list[bytes]:
    """The records that are in the folder of a sweep."""
    return [line for path in out.glob("_new/*") for line in path.read_bytes().split(b"\n") if line]


def engine_of(name: str, request: pytest.FixtureRequest) -> ib.sweeps.Engine:
    """An engine on this machine, where it is installed."""
    if name == "dask":
        return ib.sweeps.Engine("dask", scheduler=request.getfixturevalue("scheduler"))
    if name == "slurm":
        pytest.importorskip("submitit", reason="submitit is not installed")
        return ib.sweeps.Engine("slurm", scheduler="local", options={"timeout_min": 5})
    return ib.sweeps.Engine()


def typed(engine: ib.sweeps.Engine) -> list[str]:
    """An engine as it is typed."""
    words = ["--engine", engine.name, *(["--scheduler", engine.scheduler] * bool(engine.scheduler))]
    return words + [f"--engine-option={name}={value}" for name, value in engine.options.items()]


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("name", some_of(["joblib", "slurm", "dask"], one_in=3))
def test_a_sweep_that_is_killed_leaves_no_process_and_goes_on_to_the_same_table(
    tmp_path, name, request, capfd
) -> None:
    out, engine = tmp_path / "runs", engine_of(name, request)
    jobs = "2" if name == "joblib" else "1"  # one of joblib's is the process of the sweep
    words = ["--model", "linear", "--seed", "0:400", "--n-train", "12", "--steps", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "implicit_bias", "sweep", *words, "--jobs", jobs, *typed(engine),
         "--out", str(out)],
        env=environment(), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(lines(out)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(timeout=60)
    assert (workers or name == "dask") and ended(workers)
    before = len(lines(out))
    assert 3 <= before < 400
    # Some that were done, and two that nobody had come to, in a job each.
    seeds = sorted(ib.sweeps.read_rows(out)["seed"])
    grid = {"seed": [*seeds[:3], 398, 399]}
    done = ib.sweep("linear", grid, out=out, engine=engine, jobs=2, **SMALL)
    assert done.n_skipped == 3
    check(done, ib.sweep("linear", grid, out=tmp_path / "alone", **SMALL).frame())
    assert {path.suffix for path in out.iterdir() if path.is_file()} == {".parquet"}
    assert "Traceback" not in capfd.readouterr().err
