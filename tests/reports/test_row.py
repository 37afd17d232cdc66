"""One row a run: the same columns and types for every model; and reports that pickle."""

from __future__ import annotations

import logging
import math
import pickle

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import implicit_bias as ib
from implicit_bias.models import MODELS
from implicit_bias.runs.reports import COLUMNS, READ, make_row
from tests.commands import small_runs

TINY = small_runs(
    {"n_train": 30, "steps": 10, "hidden_units": 3},
    {
        "collapse": {"n_train": None},
        "dgn": {"n_train": 20, "steps": 30, "data": "quadrants", "starts": 2},
        "diagonal": {"n_train": 10},
        "distillation": {"n_train": 10, "n_val": 40},
        "dlgn": {"gate_steps": 40, "hidden_units": 8, "data": "circle"},
        "fixed-outer": {"n_train": 8},
        "frelu": {"data": "quadrants"},
        "gdln": {"n_train": 60, "hidden_units": 2},
        "gln": {"steps": 40, "hidden_units": 2, "data": "quadrants"},
        "heads": {"n_train": 60, "hidden_units": 6, "trunk_steps": 20, "exits": (1, 3)},
        "next-token": {"descent_steps": 20, "dimension": 8},
        "orthosep": {"learning_rate": 0.1, "hidden_units": 4},
        "relu": {"hidden_units": 8, "data": "quadrants"},
    },
)
DRAWN = ("gdln", "gln", "orthosep")  # with rows of their own; drawing takes its time
CLASSES = {"classes": "all", "n_train": 60, "steps": 5}


@pytest.fixture(scope="module")
def reports() -> dict[str, ib.Report]:
    runs = {model: (model, TINY[model]) for model in MODELS} | {"classes": ("linear", CLASSES)}
    return {key: ib.run(model, **options, seed=1) for key, (model, options) in runs.items()}


@pytest.mark.long
def test_rows_of_all_models_are_one_data_set(reports, tmp_path) -> None:
    for key, report in reports.items():
        table = pa.Table.from_pylist([report.row()], schema=ib.sweeps.row_schema())
        pq.write_table(table, tmp_path / f"{key}.parquet")
    written = {pq.read_schema(path) for path in tmp_path.iterdir()}
    assert written == {ib.sweeps.row_schema()}
    whole = pyarrow.dataset.dataset(tmp_path).to_table()
    assert whole.schema.equals(ib.sweeps.row_schema())
    frame = pd.read_parquet(tmp_path)
    assert sorted(frame["model"]) == sorted([*MODELS, "linear"])
    # Nulls where a quantity does not exist, and there alone.
    by = frame.drop_duplicates("model").set_index("model")
    assert math.isnan(by.loc["gdln", "gap"]) and by.loc["gdln", "stationarity"] < 1e-8
    deep = ["deep-linear", "dgn", "distillation", "heads", "relu"]
    assert by.loc[deep, "depth"].tolist() == [3, 3, 2, 3, 2]
    for name in ("depth", "contexts", "hidden_units"):
        takers = {key for key, model in MODELS.items() if name in model.option_names}
        takers -= {"dgn"} if name == "contexts" else set()  # it has gates here
        assert set(by[name].dropna().index) == takers


def test_a_row_says_what_the_results_say(reports) -> None:
    row, found = reports["gln"].row(), reports["gln"].results
    assert row["status"] == "SOLVED" and row["gap"] == found["limit"]["gap"]
    assert row["objective"] == found["limit"]["objective"]
    assert row["kkt_residual"] == found["comparison"]["kkt_residual"]
    assert row["error_limit"] == pytest.approx(1 - found["limit"]["val_accuracy"])
    assert row["log_inverse_loss"] == -found["network"]["log_loss"]
    assert (row["data"], row["data_digest"]) == ("quadrants", found["data"]["sha256"])
    assert (row["seed"], row["n_train"], row["n_steps"], row["steps"]) == (1, 30, 40, "40")
    assert row["learning_rate"] == "auto"
    relu = reports["relu"].results
    assert reports["relu"].row()["objective"] == relu["comparison"]["lc"]["optimum"]
    assert reports["relu"].row()["freeze_at"] == relu["frozen"]["freeze_at"] == 5


def test_every_value_is_of_its_column_s_type(reports) -> None:
    for report in reports.values():
        row = report.row()
        assert list(row) == [column.name for column in COLUMNS]
        for column in COLUMNS:
            assert row[column.name] is None or type(row[column.name]) is READ[column.type]


def test_a_row_takes_no_value_without_a_column_and_no_nan() -> None:
    with pytest.raises(KeyError, match="no_such have no column"):
        make_row({"no_such": 1})
    assert make_row({"gap": math.nan})["gap"] is None
    assert make_row({"gap": math.inf})["gap"] == math.inf


@pytest.mark.parametrize("key", [*MODELS, "classes"])
def test_a_report_pickles_with_all_that_it_says(key, reports, tmp_path) -> None:
    report = reports[key]
    again = pickle.loads(pickle.dumps(report))
    assert again.to_json() == report.to_json()
    assert again.row() == report.row()
    assert again.tables == report.tables and str(again) == str(report)
    if key in DRAWN:
        titles = [ax.get_title() for ax in again.figure().axes]
        assert titles == [ax.get_title() for ax in report.figure().axes]
    files = sorted(["results.json", "report.safetensors", *report.files])
    assert sorted(again.save(tmp_path)) == files


@pytest.mark.parametrize("key", [*MODELS, "classes"])
def test_a_saved_report_loads_with_all_that_it_says_and_saves_again(
    key, reports, tmp_path, caplog
) -> None:
    report = reports[key]
    with caplog.at_level(logging.WARNING, "implicit_bias"):
        files = report.save(tmp_path / "first")
    assert "leaves out" not in caplog.text
    again = ib.load(tmp_path / "first")
    assert again.to_json() == report.to_json() and again.rows() == report.rows()
    assert again.tables == report.tables and str(again) == str(report)
    assert list(again.objects) == list(report.objects)
    if key in DRAWN:
        titles = [ax.get_title() for ax in again.plot().axes]
        assert titles == [ax.get_title() for ax in report.plot().axes]
    assert again.save(tmp_path / "second") == files
    for name in report.files:
        first, second = (tmp_path / place / name for place in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
