"""Cells that end early keep what they have, and what was asked for is kept beside their rows."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import implicit_bias as ib
from tests.sweeps.trap import Trap

SMALL = {"n_train": 12, "n_val": 6}
LONG = {"steps": 10**7, "trainer": "constant"}  # minutes of work


def stop_at(last):
    """A callback that ends training at the first report from that step on."""

    def callback(step, n_steps, log_loss):
        assert math.isfinite(log_loss) and n_steps == LONG["steps"]
        if step >= last:
            raise StopIteration("far enough")

    return callback


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_callback_ends_training_and_the_row_is_of_what_there_is(tmp_path, jobs) -> None:
    grid = {"seed": [0, 1]}
    done = ib.sweep("linear", grid, out=tmp_path, jobs=jobs, callback=stop_at(1), **SMALL, **LONG)
    assert done.finished and not done.failures and len(done.ended) == 2
    frame = done.frame()
    assert all(frame["cell_ended"].str.fullmatch("the callback, after step [0-9]+: far enough"))
    assert frame["margin_ratio"].notna().all() and not frame["finished"].any()
    again = ib.sweep("linear", grid, out=tmp_path, retry=True, **SMALL, **LONG)
    assert again.n_skipped == 2 and again.ended == done.ended


def test_a_time_limit_ends_training_and_a_retry_may_have_longer(tmp_path) -> None:
    ib.run("linear", steps=2, **SMALL)  # what loads once is loaded
    done = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, time_limit=0.3, **SMALL, **LONG)
    assert done.finished and list(done.ended.values()) == 2 * ["the time limit of 0.3 s"]
    before = done.frame()
    assert before["margin_ratio"].notna().all()  # compared after its training was ended
    kept = ib.sweep("linear", {"seed": [0]}, out=tmp_path, **SMALL, **LONG)
    assert kept.n_skipped == 1 and kept.ended.items() < done.ended.items()
    longer = ib.sweep("linear", {"seed": [0]}, out=tmp_path, retry=True, time_limit=0.6,
                      **SMALL, **LONG)  # fmt: skip
    assert longer.n_skipped == 0 and list(longer.ended.values()) == ["the time limit of 0.6 s"]
    assert len(longer.frame()) == 1


@pytest.mark.usefixtures("heard")
def test_a_cell_that_has_found_nothing_in_its_time_fails(tmp_path) -> None:
    trap = Trap(12, lambda: time.sleep(30))
    done = ib.sweep("gln", {"seed": [0]}, out=tmp_path, gating=trap, progress=trap.spring,
                    time_limit=0.2, steps=0, **SMALL)  # fmt: skip
    message = "TimeoutError: nothing was found within the time limit of 0.2 s"
    assert list(done.failures.values()) == [message]
    trap.act = lambda: None
    done = ib.sweep("gln", {"seed": [0]}, out=tmp_path, gating=trap, retry=True, steps=0, **SMALL)
    assert not done.failures and done.frame()["status"].tolist() == ["SOLVED"]


def test_where_no_signal_reaches_a_cell_its_progress_ends_it(tmp_path, monkeypatch) -> None:
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = ib.sweep("linear", {"seed": [0]}, out=tmp_path, time_limit=0.3, **SMALL,
                        steps=10**5, trainer="constant")  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(done.ended.values()) == ["the time limit of 0.3 s"]
    assert done.frame()["margin_ratio"].notna().all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"time_limit": 0}, ValueError, "`time_limit` must be positive .*got 0"),
        ({"time_limit": float("nan")}, ValueError, "`time_limit` must be finite"),
        ({"time_limit": "1h"}, TypeError, "`time_limit` must be a number, got '1h'"),
        ({"callback": 3}, TypeError, "`callback` must be a function, got 3"),
        ({"save": ("reprot",)}, ValueError, "`save`: .*did you mean 'report'"),
        ({"save": {"limit": True}}, TypeError, "the rule of 'limit' must be a function of a row"),
    ],
)
def test_wrong_arguments_end_before_planning(tmp_path, arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        ib.sweep("linear", {"seed": [0]}, out=tmp_path / "runs", **SMALL, steps=0, **arguments)
    assert not (tmp_path / "runs").exists()


def test_reports_of_cells_are_given_back(tmp_path) -> None:
    grid = {"seed": [0, 1]}
    done = ib.sweep("linear", grid, out=tmp_path, save=("report",), steps=20, **SMALL)
    for cell, row in zip(done.cells, done.frame().to_dict("records"), strict=True):
        report = done.load(cell)
        assert report.limit.objective == row["objective"]
        assert report.trajectory.step[-1] == 20
        expected = ib.run("linear", seed=row["seed"], steps=20, **SMALL)
        found, wanted = (one.network.zeta().detach().numpy() for one in (report, expected))
        np.testing.assert_array_equal(found, wanted)


def test_rules_name_the_cells_of_which_something_is_kept(tmp_path) -> None:
    save = {"report": lambda row: row["seed"] == 1, "limit": lambda row: row["status"] == "SOLVED"}
    done = ib.sweep("linear", {"seed": [0, 1, 2]}, out=tmp_path, save=save, steps=20, **SMALL)
    files = [{path.name for path in done.kept(cell).iterdir()} for cell in done.cells]
    assert files[0] == files[2] == {"kept.json", "limit.safetensors"} < files[1]
    limit = ib.load(done.kept(done.cells[2]) / "limit.safetensors")
    assert limit.objective == done.frame()["objective"][2]
    with pytest.raises(ValueError, match=r"limit.safetensors were kept in .* and no report"):
        done.load(done.cells[0])
    with pytest.raises(ValueError, match="'zzz' is no cell of this sweep"):
        done.load("zzz")
    bare = ib.sweep("linear", {"seed": [3]}, out=tmp_path, steps=0, **SMALL)
    with pytest.raises(ValueError, match="the report of this cell was not kept"):
        bare.load(bare.cells[0])


def test_a_rule_sees_nan_for_numbers_that_there_are_not_and_one_that_fails_is_a_row(
    tmp_path,
) -> None:
    low = {"report": lambda row: row["margin_ratio"] < 2}  # nothing is trained
    done = ib.sweep("linear", {"seed": [0]}, out=tmp_path, save=low, steps=0, **SMALL)
    assert not done.failures and not done.kept(done.cells[0]).exists()
    wrong = {"report": lambda row: row["margin"] < 2}
    done = ib.sweep("linear", {"seed": [1]}, out=tmp_path, save=wrong, steps=0, **SMALL)
    assert list(done.failures.values()) == ["KeyError: 'margin'"]


def test_cells_that_are_done_run_again_where_something_of_them_is_to_be_kept(tmp_path) -> None:
    def swept(**further):
        done = ib.sweep("linear", {"seed": [0, 1]}, out=tmp_path, steps=0, **SMALL, **further)
        return done.n_skipped

    first = {"limit": lambda row: row["seed"] == 0}
    assert [swept(), swept(save=first), swept(save=first)] == [0, 1, 2]
    assert [swept(save="limit"), swept(save=("limit", "network"))] == [1, 0]
    # There is no network, and that is known now.
    assert [swept(save=what) for what in ("network", "report", ("report", "limit"))] == [2, 0, 2]
    assert len(ib.sweeps.read_rows(tmp_path)) == 2


def test_several_trainers_end_one_by_one(tmp_path) -> None:
    def callback(step, n_steps, log_loss):
        if step >= 5:
            raise StopIteration

    done = ib.sweep("gln", {"seed": [0]}, out=tmp_path, callback=callback, steps=50, **SMALL)
    assert done.frame()["cell_ended"].str.startswith("the callback, after step ").all()
