"""The first screen of a run: 24 lines of 80 columns, whatever the run was."""

from __future__ import annotations

from typing import Any

import pytest

import implicit_bias as ib
import implicit_bias.cli
from implicit_bias.runs.reports import (
    LINES,
    WIDTH,
    Assumption,
    Finding,
    Heading,
    Report,
    Side,
    Table,
    Verdict,
    render_screen,
    screen_table,
)
from implicit_bias.training import TRAINERS, losses_of
from tests.commands import run
from tests.long import some_of

# Those that take a linear predictor.
MARGIN_TRAINERS = tuple(
    name for name in TRAINERS if "logistic" in losses_of(name) and name != "smoothed"
)
FEW: dict[str, Any] = {"n_train": 40, "checkpoints": 8}
SMALL = FEW | {"n_val": 60, "steps": 60, "hidden_units": 3}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "every trainer": ("linear", FEW | {"steps": 60, "trainer": MARGIN_TRAINERS}),
    "all classes": ("gln", SMALL | {"n_train": 100, "classes": "all", "trainer": "annealed"}),
    "prediction": ("gln", SMALL | {"steps": 0}),
    "deep dlgn": ("dlgn", FEW | {"depth": 3, "steps": 200, "gate_steps": 50}),
    "deep relu": ("relu", SMALL | {"depth": 3, "steps": 200, "freeze_at": 100}),
    "lazy": ("dgn", {"regime": "lazy", "n_train": 20, "steps": 50, "hidden_units": 3}),
    "directions": ("heads", SMALL | {"share": 1.0, "hidden_units": 16, "trunk_steps": 30}),
    "skips": ("orthosep", SMALL | {"network": "residual", "n_train": 60}),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, ib.Report]:
    return {}


@pytest.fixture(params=some_of(sorted(RUNS), one_in=2))
def report(request, reports) -> ib.Report:
    name, options = RUNS[request.param]
    if request.param not in reports:
        reports[request.param] = ib.run(name, **options)
    return reports[request.param]


def test_it_has_24_lines_of_80_columns(report) -> None:
    lines = str(report).splitlines()
    assert len(lines) <= LINES == 24 and max(map(len, lines)) <= WIDTH == 80
    assert sum(line.startswith(one.word) for one in report.verdicts for line in lines)
    assert render_screen(report, 200) == str(report)
    assert max(map(len, render_screen(report, 50).splitlines())) <= 50


def a_report(*sides: Side, verdicts: tuple[Verdict, ...] = (), **further: Any) -> Report:
    heading = Heading("m", "a theorem", "min 0", "data", "a title", {}, "the source")
    return Report(heading, (Finding.said("limit", sides=sides, verdicts=verdicts, **further),))


def test_rows_are_those_that_differ_or_prove_and_a_prediction_has_ideal_values() -> None:
    near = {"objective": 2.5, "margin_ratio": 0.9, "agreement": 0.5, "n_live": "2 of 2"}
    report = a_report(
        Side("far", near | {"margin_ratio": 0.5}),
        Side("near", near),
        Side("program", {"objective": 2.0, "lower_bound": 2.0, "gap": 0.0, "n_live": "2 of 2"},
             predicted=True),
        verdicts=(
            Verdict("NOT THERE YET", "", {"margin_ratio": 0.5}, "far"),
            Verdict("NOT THERE YET", "", {"margin_ratio": 0.9}, "near"),
        ),
    )  # fmt: skip
    heads, rows = screen_table(report)
    assert heads == ("", "program", "near", "far")
    assert [(row[0].strip(), row[1:]) for row in rows] == [
        ("norm per unit margin", ("2", "2.5", "2.5")),
        ("certified lower bound", ("2", "-", "-")),
        ("duality gap", ("0.00e+00", "-", "-")),
        ("margin ratio", ("1", "0.9000", "0.5000")),
        ("agreement on held-out labels", ("100%", "50.00%", "50.00%")),
    ]


def test_trainers_stand_in_one_order_on_screen_and_page() -> None:
    sides = [Side(name, {"margin_ratio": ratio}) for name, ratio in (("far", 0.5), ("near", 0.9))]
    verdicts = tuple(
        Verdict("NOT THERE YET", "", dict(side.values), trainer=side.name) for side in sides
    )
    table = Table("t", ("", "limit", "far", "near"), (("row", "0", "1", "2"),), of_network=True)
    report = a_report(*sides, verdicts=verdicts, tables=(table,))
    assert screen_table(report)[0] == ("", "near", "far")
    (shown,) = report.tables
    assert shown.columns == ("", "limit", "near", "far") and shown.rows == (("row", "0", "2", "1"),)


def test_what_networks_are_worth_stands_where_columns_agree_and_rows_are_left_out() -> None:
    worth = {"agreement": 1.0, "val_accuracy": 0.9, "limit_seconds": 1.0}
    others = {"n_live": 1, "largest_dual_norm": 1.0, "log_inverse_loss": 2.0, "zeta_cosine": 0.5}
    sides = [
        Side(f"network {k}", {name: value + k for name, value in others.items()} | worth)
        for k in range(2)
    ]
    for most in (3, 5, 10):
        _, rows = screen_table(a_report(*sides), most=most)
        names = [row[0] for row in rows]
        assert names[-3:] == ["agreement on held-out labels", "held-out accuracy", "seconds"]
        assert len(names) == min(most, 7)


def test_columns_for_which_there_is_no_room_are_named() -> None:
    sides = [Side(f"trainer number {k}", {"margin_ratio": k / 10}) for k in range(8)]
    lines = str(a_report(*sides)).splitlines()
    (more,) = (line for line in lines if "more in --details" in line)
    shown = sum(side.name in "".join(lines[:-5]) for side in sides)
    assert more.startswith(f"{8 - shown} more") and 1 < shown < 8


def test_a_sentence_gives_up_its_last_parts_and_never_its_first() -> None:
    verdicts = tuple(
        Verdict("NOT THERE YET", f"ratio {k}; {'a reason ' * 20}; {'a prediction ' * 20}")
        for k in range(8)
    )
    text = str(a_report(verdicts=verdicts))
    assert all(f"ratio {k}" in text for k in range(8)) and len(text.splitlines()) <= LINES
    assert "a reason" not in text
    assert "a reason" in str(a_report(verdicts=verdicts[:1]))


def test_assumptions_that_fail_stand_before_those_that_hold() -> None:
    assumptions = (
        Assumption("text", True, "first", "proved"),
        Assumption("text", None, "second", "cannot be checked"),
        Assumption("text", False, "third"),
        Assumption("not on the first screen", True),
    )
    text = " ".join(str(a_report(assumptions=assumptions)).split())
    assert (
        "Theory: the source. Does not hold: third. Open: second (cannot be checked). "
        "Holds: first (proved)."
    ) in text
    assert "not on the first screen" not in text


def test_a_network_at_its_limit_without_the_theorem_is_said_to_be_measured() -> None:
    near, far = (Verdict(word, "", {}, trainer) for word, trainer in (
        ("AT ITS LIMIT", "annealed"), ("NOT THERE YET", "momentum")))  # fmt: skip
    same = "At its limit though these do not hold: small norms"
    for how, verdicts, said in (
        ("", (near, far), same),
        ("annealed, measured", (near, far), same),
        ("momentum, measured", (near, far), "Does not hold: small norms"),
        ("", (far,), "Does not hold: small norms"),
    ):
        fails = Assumption("text", False, "small norms", how)
        text = str(a_report(verdicts=verdicts, assumptions=(fails,)))
        assert said in " ".join(text.split()), (how, verdicts)
        assert "At its limit" not in text or said == same


def test_assumptions_that_are_counted_are_those_not_named() -> None:
    many = tuple(Assumption("text", True, f"number {k} of many words", "proved") for k in range(90))
    assert "Holds: 90 others." in str(a_report(assumptions=many))


def test_the_last_line_names_every_way_to_more_and_each_row_is_explained(reports) -> None:
    name, options = RUNS["prediction"]
    found = reports.setdefault("prediction", ib.run(name, **options))
    last = str(found).splitlines()[-1]
    asked = {word for word in last.split() if word.startswith("--")}
    assert asked == {"--explain", "--details", "--program", "--plot", "--report", "--save"}
    assert asked <= {one for option in ib.cli.compare.params for one in option.opts}
    explained = found.first_screen(explain=True)
    assert explained.startswith(str(found))
    below = explained.removeprefix(str(found))
    _, rows = screen_table(found)
    assert rows and all(f"\n{row[0].strip()}: " in below for row in rows)


def test_an_assumption_that_holds_of_one_network_alone_says_of_which() -> None:
    many = [Assumption("text", True, f"the assumption number {k}", "proved") for k in range(9)]
    one, other = (
        Assumption("text", holds, "small norms", how)
        for holds, how in ((True, "annealed, measured"), (False, "momentum, measured"))
    )
    text = " ".join(str(a_report(assumptions=(one, other, *many[:5]))).split())
    assert "Does not hold: small norms (momentum, measured)." in text
    assert "Holds: small norms (annealed, measured), the assumption number 0 (proved), " in text


def test_the_command_prints_it_and_all_tables_if_asked(tmp_path) -> None:
    typed = ("--model", "linear", "--n-train", "40", "--steps", "300", "--seed", "1")
    plain, whole = run(*typed, "--save", str(tmp_path / "a")), run(*typed, "--details")
    assert plain.stdout == f"{ib.load(tmp_path / 'a')}\n"
    assert len(whole.stdout.splitlines()) > LINES
    (sentence,) = (line for line in whole.stdout.splitlines() if line.startswith("AT ITS LIMIT: "))
    assert whole.stdout.splitlines()[0] == sentence
    assert sentence.removeprefix("AT ITS LIMIT: ") in plain.stdout
    assert "KKT stationarity" in whole.stdout and "KKT stationarity" not in plain.stdout


def test_data_that_are_not_separable_show_the_proof_and_no_norm() -> None:
    text = str(ib.run("linear", data="quadrants", n_train=60))
    assert "NOT SEPARABLE" in text and "relative margin of any coefficients" in text
    assert "norm per unit margin" not in text and "lower bound" not in text


def test_of_all_classes_the_labels_of_all_together_are_shown(reports) -> None:
    name, options = RUNS["all classes"]
    if "all classes" not in reports:
        reports["all classes"] = ib.run(name, **options)
    found = reports["all classes"]
    _, rows = screen_table(found)
    cells = {row[0].strip(): row[1:] for row in rows}
    labels = found.objects["labels"]
    assert cells["agreement on held-out labels"] == ("100%", f"{labels.agreement:.2%}")
    assert next(iter(cells)) == "duality gap"
