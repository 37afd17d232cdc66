"""What a sweep says: its commands, its tables, its pictures."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from pyarrow import parquet
from scipy import stats

import implicit_bias as ib
from implicit_bias import cli
from implicit_bias.runs import Lines
from tests.commands import ROOT, environment

SMALL = ["--n-train", "12", "--steps", "0"]


def command(*words: object, code: int = 0):
    result = CliRunner().invoke(cli.main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of rows by hand: width 1 and 10, three seeds each, one of which failed."""
    path = tmp_path_factory.mktemp("rows")
    for units, objectives in ((1, (1.0, 2.0, 3.0)), (10, (5.0, 7.0, None))):
        for seed, objective in enumerate(objectives):
            row = {"cell": f"{units}-{seed}", "model": "gln", "hidden_units": units, "seed": seed}
            failed = objective is None
            row |= {"objective": objective, "status": None if failed else "SOLVED"}
            row["cell_error"] = "ValueError: no" if failed else None
            table = pa.Table.from_pylist([row], schema=ib.sweeps.sweep_schema())
            parquet.write_table(table, path / f"{row['cell']}.parquet")
    return path


def test_show_prints_means_and_spreads_and_the_failures(folder) -> None:
    result = command("show", folder, "--columns", "objective")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["1", "3", "3", "2", "+-", "1"] in lines
    assert ["10", "2", "2", "6", "+-", "1.4"] in lines
    assert "failed, 1 of 6 rows: ValueError: no" in result.stderr


def test_show_filters_and_lists_rows(folder) -> None:
    shown = command("show", folder, "--where", "hidden-units=10", "--each", "--columns",
                    "objective").stdout.splitlines()  # fmt: skip
    values = [line.split() for line in shown if line.startswith("gln")]
    assert [value[-1] for value in values] == ["5", "7", "-"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "objectve"], "did you mean 'objective'"),
        (["--where", "seed=7"], "there seed is 0, 1, 2"),
        (["--where", "seed"], "not of the form NAME=VALUE"),
        (["--plot", "no-such-folder/a.png"], "there is no folder"),
        (["--plot", "a.txt"], "must end in"),
    ],
)
def test_show_refuses_with_the_way_out(folder, words, message) -> None:
    result = command("show", folder, *words, code=2)
    assert message in " ".join(result.stderr.split())


def test_a_picture_has_the_means_with_their_spreads(folder, tmp_path, monkeypatch) -> None:
    drawn: list[Figure] = []
    with monkeypatch.context() as patched:
        patched.setattr(Figure, "savefig", lambda figure, path, **how: drawn.append(figure))
        command("show", folder, "--columns", "objective", "--plot", tmp_path / "a.svg")
    (ax,) = [ax for part in drawn[0].subfigs for ax in part.axes]
    (bars,) = ax.containers
    np.testing.assert_array_equal(bars.lines[0].get_xydata(), [[1, 2], [10, 6]])
    low, high = bars.lines[2][0].get_segments()[0][:, 1]
    assert (low, high) == (1.0, 3.0)
    command("show", folder, "--columns", "objective", "--plot", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 1000


def test_a_file_options_and_python_name_the_same_cells(tmp_path) -> None:
    out = tmp_path / "runs"
    file = tmp_path / "sweep.toml"
    file.write_text(
        'model = "gln"\noptions = {n_train = 12, steps = 0}\n'
        '[grid]\nhidden_units = [1, 2]\nseed = "0:2"\n[engine]\nthreads = 1\n'
    )
    said = command("sweep", file, "--out", out).stderr
    assert "4 of 4 cells are in" in said
    again = command("sweep", "--model", "gln", "--hidden-units", "1,2", "--seed", "0:2", *SMALL,
                    "--out", out).stderr  # fmt: skip
    assert "4 were there before" in again
    grid = {"hidden_units": [1, 2], "seed": range(2)}
    assert ib.sweep("gln", grid, out=out, n_train=12, steps=0).n_skipped == 4


def test_a_file_takes_pairs_and_draws(tmp_path) -> None:
    out, file = tmp_path / "runs", tmp_path / "sweep.toml"
    file.write_text(
        'model = "gln"\noptions = {n_train = 12, steps = 0}\n'
        "zip = {hidden_units = [1, 2], n_val = [5, 6]}\ngrid = {seed = '0:2'}\n"
        "[draw]\ncount = 3\ninit_scale = {loguniform = [0.01, 1]}\ncontexts = [2, 4]\n"
    )
    command("sweep", file, "--out", out)
    frame = ib.sweeps.read_rows(out)
    assert len(frame) == 3 * 2 * 2
    assert frame["init_scale"].nunique() == 3 and frame["init_scale"].between(0.01, 1).all()
    assert set(zip(frame["hidden_units"], frame["n_val"], strict=True)) == {(1, 5), (2, 6)}
    draws = ib.sweeps.drawn({"contexts": [2, 4], "init_scale": stats.loguniform(0.01, 1)}, count=3)
    pairs = ib.sweeps.zipped({"hidden_units": [1, 2], "n_val": [5, 6]})
    grid = draws * pairs * {"seed": range(2)}
    assert ib.sweep("gln", grid, out=out, n_train=12, steps=0).n_skipped == 12


@pytest.mark.long
def test_trainers_are_never_averaged_with_each_other(tmp_path) -> None:
    out = tmp_path / "runs"
    grid = {"hidden_units": [1, 2], "contexts": [2, 4]}
    done = ib.sweep("gln", grid, out=out, n_train=12, steps=20, trainer="momentum,annealed")
    frame = done.frame()
    shown = command("show", out, "--by", "hidden-units", "--columns", "margin_ratio").stdout
    assert "mean +- spread over contexts" in shown
    rows = [line.split() for line in shown.splitlines() if line[:1] in ("1", "2")]
    assert [row[:2] for row in rows] == [[n, t] for n in "12" for t in ("annealed", "momentum")]
    for row in rows:
        mine = frame[(frame["hidden_units"] == int(row[0])) & (frame["trainer"] == row[1])]
        assert row[2:5] == ["2", "2", f"{mine['margin_ratio'].mean():.4g}"]
    means = done.frame(over="contexts", columns=["margin_ratio"])
    assert list(means) == ["hidden_units", "trainer", "runs", "solved", "margin_ratio",
                           "margin_ratio_spread", "margin_ratio_count"]  # fmt: skip
    own = frame.groupby(["hidden_units", "trainer"])["margin_ratio"]
    np.testing.assert_allclose(means["margin_ratio"], own.mean())
    np.testing.assert_allclose(means["margin_ratio_spread"], own.std())
    (ax,) = [ax for part in done.plot("margin_ratio", by="hidden_units").subfigs
             for ax in part.axes]  # fmt: skip
    assert len(ax.containers) == 2  # a line a trainer


def test_what_follows_from_the_axis_makes_no_lines(tmp_path) -> None:
    """Of 20 and 40 training samples, 1777 and 1757 are left over."""
    done = ib.sweep("linear", {"n_train": [20, 40], "seed": [0, 1]}, out=tmp_path / "o", steps=0)
    assert done.frame()["n_val"].nunique() == 2
    (ax,) = [ax for part in done.plot("objective").subfigs for ax in part.axes]
    (line,) = ax.containers
    assert list(line.lines[0].get_xdata()) == [20, 40]


def test_seeds_are_averaged_where_nothing_else_differs(folder, tmp_path) -> None:
    shown = command("show", folder, "--where", "hidden_units=10", "--columns", "objective").stdout
    (line,) = [line.split() for line in shown.splitlines() if line.startswith("gln")]
    assert line == ["gln", "2", "2", "6", "+-", "1.4"] and "over seed" in shown


def test_a_mean_says_how_many_have_a_value_where_not_all_do(tmp_path) -> None:
    done = ib.sweep("linear", {"seed": range(3)}, out=tmp_path, n_train=12, steps=0)
    more = ib.sweep("linear", {"seed": [0]}, out=tmp_path, n_train=12, steps=20)
    assert len(done.frame()) == 3 and len(more.frame()) == 1
    shown = command("show", tmp_path, "--by", "model", "--columns", "objective,margin_ratio").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("linear")]
    assert line.split()[-1] == "(1)"
    with pytest.raises(ValueError, match="there is no option 'sed': did you mean 'seed'"):
        done.frame(over="sed")


def test_an_option_of_several_numbers_is_given_once_a_value(tmp_path) -> None:
    out = tmp_path / "runs"
    command("sweep", "--model", "linear", "--steps", "2,3", "--steps", "4,1", "--n-train", "12",
            "--trainer", "constant", "--out", out)  # fmt: skip
    assert sorted(pd.read_parquet(out)["steps"]) == ["2,3", "4,1"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model = ", "is no TOML file"),
        ("grid = {seed = [1]}", "names no model"),
        ('model = "gln"\ngird = {seed = [1]}', "there is no `gird`: did you mean 'grid'"),
        ('model = "gln"\nengine = {nam = "dask"}', "there is no `engine.nam`"),
        ('model = "gln"\ndraw = {seed = [1]}', "`draw` needs `count`"),
        ('model = "gln"\ndraw = {count = 2, tol = {unifrm = [1]}}', "did you mean 'uniform'"),
        ('model = "gln"\ndraw = {count = 0, seed = [1]}', "`count` must be at least 1, got 0"),
        ('model = "gnl"', "did you mean 'gln'"),
        ('model = "gln"\ngrid = {sed = [1]}', "did you mean `seed`"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, content, message) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(content)
    assert message in command("sweep", file, "--out", tmp_path / "runs", code=2).stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.long
def test_sigterm_ends_a_sweep_as_ctrl_c_does(tmp_path) -> None:
    out = tmp_path / "runs"
    words = [sys.executable, "-m", "implicit_bias", "sweep", "--model", "linear", "--seed",
             "0:400", "--n-train", "12", "--steps", "40", "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(out.glob("_new/*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    there = len(ib.sweeps.read_rows(out))
    assert f"{there} of 400 cells are in" in said and "the same command goes on" in said


def test_failures_have_a_code(tmp_path) -> None:
    out = tmp_path / "runs"
    words = ["sweep", "--model", "linear", *SMALL, "--seed", "0:2", "--out", out]
    command(*words)
    (path,) = out.glob("*.parquet")
    row, *others = parquet.read_table(path).to_pylist()
    failed = row | {"cell_error": "ValueError: no such luck", "status": None}
    table = pa.Table.from_pylist([failed, *others], schema=ib.sweeps.sweep_schema())
    parquet.write_table(table, path)
    assert "1 x ValueError: no such luck" in command(*words, code=6).stderr
    command(*words, "--retry")


def test_lines_tell_the_time_that_is_left() -> None:
    times = iter([0.0, 0.0, 50.0, 68.0, 250.0])
    said: list[str] = []
    lines = Lines(said.append, lambda: next(times)).progress()
    for done in (0, 1, 10, 100):
        lines.advance(done, 100)
    # Processes take 50 seconds to begin. Nine cells take 18 seconds: ninety take three minutes.
    assert said == ["1 of 100 cells", "10 of 100 cells, about 3 min left",
                    "100 of 100 cells, about 0 s left"]  # fmt: skip


FEWER = {"[1, 2, 5, 10, 20]": "[1, 2]", "[20, 40, 80, 160]": "[20, 40]", "range(10)": "range(2)",
         "1,2,5,10,20": "1,2", "20,40,80,160": "20,40", "0:10": "0:2", "steps=100": "steps=9",
         "--steps 100": "--steps 9", "[100]": "[9]", "jobs=2": "jobs=1", "--jobs 2": "",
         "progress=True": "progress=False", "\\\n": ""}  # fmt: skip


@pytest.mark.long
def test_the_example_of_the_page_is_one_sweep_in_python_as_a_command_and_from_a_file(
    tmp_path, monkeypatch
) -> None:
    page = (ROOT / "docs" / "sweeps.md").read_text()
    for text, fewer in FEWER.items():
        page = page.replace(text, fewer)
    block, file = (
        re.search(rf"^```{language}\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)[1]
        for language in ("python", "toml")
    )
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/sweeps.md", "exec"), {"__name__": "__main__"})
    assert (tmp_path / "margins.png").stat().st_size > 10_000
    (tmp_path / "sweep.toml").write_text(file)
    words, shown = re.findall(r"^    implicit-bias (sweep --model.*|show .*)$", page, re.MULTILINE)[
        :2
    ]
    for again in (words.split(), ["sweep", "sweep.toml", "--out", "runs/"]):
        assert "8 of 8 cells are in" in (said := command(*again).stderr)
        assert "8 were there before" in said
    assert "margin_ratio" in command(*shown.split()).stdout
