"""Several trainers from the same weights: each as if it were alone, beside the others."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import implicit_bias as ib
from implicit_bias import Sample
from implicit_bias.models import MODELS
from implicit_bias.options import each_trainer
from implicit_bias.runs import Seeds, agreement_ahead
from tests.commands import cut, results, run, saved_arrays, without_times

PAIR = "momentum,annealed"
SMALL: dict[str, Any] = {
    "n_train": 40, "n_val": 40, "hidden_units": 3, "steps": 30, "seed": 3
}  # fmt: skip
TYPED = ("--model", "gln", "--trainer", PAIR, "--n-train", "40", "--n-val", "40",
         "--hidden-units", "3", "--steps", "30", "--seed", "3")  # fmt: skip
OWN = ("network", "comparison", "extrapolation", "rates", "unit_growth", "agreement_ahead")


@pytest.fixture(scope="module")
def report() -> ib.Report:
    return ib.run("gln", trainer=PAIR, **SMALL)


@pytest.fixture(scope="module")
def alone() -> dict[str, ib.Report]:
    return {name: ib.run("gln", trainer=name, **SMALL) for name in PAIR.split(",")}


def test_each_trains_as_if_it_were_alone(report, alone) -> None:
    starts = [run.unit_norms[0] for run in (one.trajectory for one in report.by_trainer.values())]
    assert np.array_equal(*starts)
    for name, one in report.by_trainer.items():
        by_itself = alone[name]
        assert torch.equal(
            *(torch.nn.utils.parameters_to_vector(found.network.parameters())
              for found in (one, by_itself))
        )  # fmt: skip
        own, other = without_times(one.results), without_times(by_itself.results)
        assert own["options"] == other["options"] and own["comparison"] == other["comparison"]
        seconds = {"limit_seconds", "training_seconds"}
        rows = [{k: v for k, v in found.row().items() if k not in seconds}
                for found in (one, by_itself)]  # fmt: skip
        assert rows[0] == rows[1]


def test_results_have_all_and_above_them_the_last(report, alone) -> None:
    found = json.loads(report.to_json())
    assert list(found["networks"]) == PAIR.split(",")
    assert found["options"]["trainer"] == PAIR and found["options"]["learning_rate"] is None
    for name in OWN:
        if name in found["networks"]["annealed"]:
            assert found[name] == found["networks"]["annealed"][name], name
    assert found["networks"]["momentum"]["extrapolation"] is not None
    assert found["extrapolation"] is None  # annealed is no descent
    assert report.network is report.by_trainer["annealed"].network
    rows = report.rows()
    assert [row["trainer"] for row in rows] == PAIR.split(",") and rows[-1] == report.row()
    assert alone["annealed"].by_trainer == {"annealed": alone["annealed"]}


def test_tables_have_a_column_a_trainer_and_panels_a_curve(report) -> None:
    tables = {table.title: table for table in report.tables}
    # The nearest to its limit first, as on the screen.
    nearest = [one.trainer for one in report.verdicts]
    assert sorted(nearest) == sorted(PAIR.split(","))
    assert tables["prediction and training"].columns == ("", "SVM-GLN", *nearest)
    (head,) = [line.split() for line in str(report).splitlines() if line.split()[:1] == ["SVM-GLN"]]
    assert head == ["SVM-GLN", *nearest]
    going = tables["where the margin ratio is going"]
    assert going.columns == ("", *nearest)
    (said,) = [row for row in going.rows if row[0] == "extrapolated to zero loss"]
    assert said[going.columns.index("annealed")] == "not: no descent"
    figure = report.figure()
    assert figure is not None
    ratio, *_ = figure.axes
    assert [text.get_text() for text in ratio.get_legend().get_texts()] == PAIR.split(",")
    ends = {line.get_color(): line.get_ydata()[-1] for line in ratio.lines}
    expected = [1 - one.comparison.margin_ratio for one in report.by_trainer.values()]
    assert list(ends.values()) == pytest.approx([value for value in expected if value < 1])
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert {f"unit's share of the norm: {name}" for name in PAIR.split(",")} <= set(labels)


def test_every_trainer_begins_from_its_own_and_what_is_given_goes_to_each() -> None:
    own = each_trainer(MODELS["gln"].choose(trainer=["constant", "dual"]))
    assert [(one.steps, one.learning_rate, one.batch_size) for one in own] == [
        ((1600, 1600), (0.04, 0.01), 128), ((3000,), (), 0),
    ]  # fmt: skip
    given = each_trainer(MODELS["gln"].choose(trainer=("constant", "momentum"), steps=7))
    assert [(one.steps, one.learning_rate) for one in given] == [((7,), (0.04,)), ((7,), ())]
    usual = MODELS["frelu"].choose()
    assert (usual.trainer, usual.steps, usual.init) == (PAIR, (700,), "kaiming")
    assert MODELS["gln"].choose(classes="all").trainer == "annealed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--model gln --trainer momentum,anealed", "did you mean 'annealed'?"),
        ("--model gln --trainer dual,dual", "'dual' is named twice"),
        ("--model gln --trainer momentum,", "'' is not one of"),
        ("--model gln --trainer constant,dual --steps 9", "linear in its"),
        ("--model gln --trainer constant,annealed --momentum 0.5", "trainer 'annealed' has a"),
        ("--model gln --trainer constant,annealed --learning-rate 0.1", "for trainer 'annealed'"),
        ("--model gln --trainer constant,momentum --batch-size 9", "trainer 'momentum' works"),
        ("--model gln --classes all --trainer constant,dual", "a network of its own"),
        ("--model relu --trainer constant,momentum", "what one network has learned"),
        (
            "--model orthosep --trainer constant,momentum",
            "are about the neurons and layers of one network",
        ),
        ("--model dgn --trainer constant,momentum", "differ in their starts"),
        ("--model dlgn --trainer constant,momentum", "that it has trained"),
    ],
)
def test_lists_that_make_no_sense_are_refused_before_any_work(arguments, message) -> None:
    result = run(*arguments.split())
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())
    assert "solving" not in result.stderr


def test_an_interrupt_of_the_second_keeps_the_first_and_is_made_good(
    tmp_path, monkeypatch, report
) -> None:
    arguments = (*TYPED, "--save", tmp_path)
    cut(monkeypatch, arguments, "training a GLN by annealed", at=0.3)
    kept = json.loads((tmp_path / "results.json").read_text())
    assert not kept["finished"]
    assert kept["networks"]["momentum"]["network"]["finished"]
    assert not kept["networks"]["annealed"]["network"]["finished"]
    done = results(*arguments, "--resume")
    assert done["finished"]
    expected = without_times(json.loads(report.to_json()))
    assert without_times(done)["networks"] == expected["networks"]
    assert {"network-momentum.safetensors", "trajectory-annealed.parquet"} <= {
        path.name for path in tmp_path.iterdir()
    }
    steps = pd.read_parquet(tmp_path / "trajectory-annealed.parquet")["step"]
    assert steps.iloc[-1] == 30
    assert len(saved_arrays(tmp_path)) > 0


def test_a_first_that_does_not_separate_is_a_shortfall_though_the_second_does() -> None:
    arguments = [*TYPED[:-2], "--seed", "3", "--trainer", "constant,annealed", "--steps", "1"]
    result = run(*arguments)
    assert result.exit_code == 5 and "NOT SEPARATED: constant: the network" in result.stderr


def test_labels_ahead_are_those_of_finer_steps_of_the_flow_or_say_why_not(report) -> None:
    one = report.by_trainer["momentum"]
    data = ib.load_digits(n_train=40, n_val=40, random_state=Seeds.from_seed(3).data)
    gating = ib.HyperplaneContexts(3, 2, random_state=Seeds.from_seed(3).gating).fit(data.X_train)
    train, held_out = (
        Sample(X, y, gating.transform(X))
        for X, y in ((data.X_train, data.y_train), (data.X_val, data.y_val))
    )
    network = one.network
    path = one.trajectory
    found = agreement_ahead(network, train, held_out, report.limit, path)
    fine = ib.dynamics.margin_flow(
        network, *train, until=1e6, step=0.05,
        observer=ib.measures.Distances(report.limit, train, held_out, kkt=False),
    ).first("agreement", 0.99)  # fmt: skip
    assert found.reason == "" and abs(math.log(found.log_inverse_loss / fine)) < 0.2
    assert one.row()["agreement_from"] == found.log_inverse_loss
    assert report.by_trainer["annealed"].row()["agreement_from"] is None
    many = Sample(*(np.repeat(part, 20, axis=0) for part in train))
    assert "margin_flow" in agreement_ahead(network, many, held_out, report.limit, path).reason
    begun = ib.GLN(train.X.shape[1], 3, 2, random_state=0)
    reason = agreement_ahead(begun, train, held_out, report.limit, path).reason
    assert "the flow begins where every sample has a positive margin" in reason


def test_labels_that_agree_already_did_so_from_where_the_run_came_to_it() -> None:
    report = ib.run("linear", n_train=60, steps=3000)
    path, ahead = report.trajectory, report.results["agreement_ahead"]
    agrees = path.observed["agreement"] >= 0.99
    since = next(row for row in range(len(agrees)) if agrees[row:].all())
    assert 0 < since < len(agrees) - 1  # well before the end, which had been given for it
    assert ahead["measured"] and ahead["log_inverse_loss"] == -path.log_loss[since]
    assert "on at the latest, measured along the run" in " ".join(report.details().split())
