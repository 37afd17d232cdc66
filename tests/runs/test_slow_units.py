"""The line about a unit that descent has yet to wake, and its picture."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from implicit_bias import FReLU, Sample, TrainingSettings, kkt_distance, solve_frelu_svm, train
from implicit_bias.quantities import power_of_ten, rounded
from implicit_bias.runs import slow_units_finding
from implicit_bias.runs.drawing import Row, compose, each_panel, plot_unit_growth
from implicit_bias.runs.reports import Finding

# y x = (1, +-2.4), unit 1 open on the first sample alone: its dual norm is half of 2.6.
SAMPLE = Sample(
    np.array([[1.0, 2.4], [-1.0, 2.4]]), np.array([1.0, -1.0]), np.array([[1, 1], [1, 0]])
)
SETTINGS = TrainingSettings("normalised", schedule=((200, 0.005),))


def found(*, small: float = 1e-4, limit: bool = True) -> Finding:
    zeta = 20 * np.stack([[1.0, 0.0], small * np.array([1, 2.4]) / 2.6])
    network = FReLU.from_zeta(torch.tensor(zeta))
    run = train(network, *SAMPLE, settings=SETTINGS)
    predicted = solve_frelu_svm(*SAMPLE, tol=1e-10) if limit else None
    kkt = kkt_distance(network, *SAMPLE)
    return slow_units_finding(network, SAMPLE, predicted, (run, SETTINGS), kkt)


def test_a_unit_that_descent_has_yet_to_raise_has_a_line_of_its_own() -> None:
    finding = found()
    ((unit, words, steps),) = finding.views.tables[0].rows
    change = finding.views.objects["unit_growth"].changes[0]
    assert re.fullmatch(r"unit 1, 0\.0\d% of the norm, dual norm 1\.3", unit)
    active = next(one for one in change.arrivals if one.share == 0.1)
    reached = rounded(active.log_inverse_loss)
    assert words.startswith(f"predicted to reach 10.00% at about log(1/loss) = {reached} (")
    assert "; its limiting share, 41.0" in words
    # At 1e11 and beyond a constant step is no way.
    assert re.match(r"constant \(0\.01\): 10\^\(\de\d+\)", steps)
    assert "normalised: " in steps
    assert finding.views.record["unit_growth"]["changes"][0]["unit"] == 1


def test_without_a_limit_a_unit_has_marks_but_no_end() -> None:
    (row,) = found(limit=False).views.tables[0].rows
    assert "10.00%" in row[1] and "limit" not in row[1]


def test_a_unit_of_exactly_zero_stays_and_nothing_is_said_of_what_does_not_separate() -> None:
    ((_, words, steps),) = found(small=0.0).views.tables[0].rows
    assert (words, steps) == ("exactly zero, and gradient descent leaves it there", "-")
    network = FReLU(2, 2, random_state=0, dtype=torch.float64)
    run = train(network, *SAMPLE, settings=TrainingSettings("normalised", schedule=((1, 1e-9),)))
    assert slow_units_finding(network, SAMPLE, None, (run, SETTINGS), None).views.tables == ()


def test_the_picture_goes_on_with_the_predicted_power() -> None:
    finding = found()
    (panel,) = each_panel(finding.views.panels)
    assert isinstance(panel, partial) and panel.func is plot_unit_growth
    ax = Figure().subplots()
    panel(ax)
    growth = finding.views.objects["unit_growth"]
    (dashed,) = (line for line in ax.lines if line.get_linestyle() == "--")
    x, y = (np.asarray(values, dtype=float) for values in dashed.get_data())
    odds = y / (1 - y)
    slope = math.log(odds[-1] / odds[0]) / math.log(x[-1] / x[0])
    assert slope == pytest.approx(growth.exponents[1], rel=1e-3)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert y[0] == pytest.approx(growth.shares[1])
    assert [text.get_text() for text in ax.texts] == ["unit 1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2, "16"),
        (4.0, "1e4"),
        (3.4, "2512"),
        (1234.5, "1e1234"),
        (4e8, "10^(4e8)"),
        (math.nan, "-"),
    ],
)
def test_powers_of_ten_are_read_at_a_glance(value, text) -> None:
    assert power_of_ten(value) == text


@pytest.mark.parametrize("n_units", [2, 6])
def test_names_of_units_lie_beside_the_panel_and_not_over_each_other(n_units) -> None:
    finding = found()
    (panel,) = each_panel(finding.views.panels)
    trajectory, growth = panel.args
    (change,) = growth.changes
    changes = tuple(
        replace(change, unit=h, share=0.01 + 1e-6 * h, predicted_share=0.4) for h in range(n_units)
    )
    norms = np.tile(trajectory.unit_norms[:, :1], (1, n_units))
    figure = compose(
        [Row(2, lambda axes: [
            plot_unit_growth(
                replace(trajectory, unit_norms=norms), replace(growth, changes=changes), ax
            )
            for ax in axes
        ])], title="",
    )  # fmt: skip
    figure.canvas.draw()
    panels = [ax.get_window_extent() for ax in figure.axes]
    for ax in figure.axes:
        boxes = {text.get_text(): text.get_window_extent() for text in ax.texts}
        assert set(boxes) == {f"unit {h}" for h in range(n_units)}
        assert not any(a.overlaps(b) for a, b in combinations(boxes.values(), 2))
        # Neither are they over a curve, of this panel or the next, nor off the page.
        assert not any(box.overlaps(panel) for box in boxes.values() for panel in panels)
        assert all(box.x1 <= figure.bbox.x1 for box in boxes.values())
