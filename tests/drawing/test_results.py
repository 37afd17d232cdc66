"""Pictures of single results: readable axes, and a line where theory says 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from implicit_bias import Trajectory, run
from implicit_bias.measures import Comparison

STEPS = np.array([0, 1, 10, 100, 1000])


@pytest.fixture(scope="module")
def report():
    return run("gln", n_train=20, n_val=10, hidden_units=3, steps=60, trainer="normalised")


@pytest.fixture(scope="module")
def comparison(report) -> Comparison:
    return report.comparison


@pytest.fixture
def trajectory(report) -> Trajectory:
    return report.trajectory


def tick_labels(axis) -> list[str]:
    axis.figure.canvas.draw()
    low, high = sorted(axis.get_view_interval())
    ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


@pytest.mark.parametrize("norms", [(1.0,), (1.0, 1.000004), (1 - 1e-6, 1.000004, 1.000009)])
def test_units_are_whole_numbers_and_dual_norms_are_written_out(comparison, norms) -> None:
    ax = replace(comparison, dual_norms=norms, small_units=()).plot(Figure().subplots())
    assert tick_labels(ax.xaxis) == [str(h) for h in range(len(norms))]
    assert ax.yaxis.get_offset_text().get_text() == ""
    # Differences by rounding do not fill the axis.
    low, high = ax.get_ylim()
    assert low <= 0.99 and high >= 1.01


def heights(ax: Axes) -> list[float]:
    """Of the lines across the panel."""
    ends = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 2]
    return [end[0, 1] for end in ends if end[0, 1] == end[1, 1]]


def test_a_quantity_that_tends_to_one_has_a_line_there_and_its_way_to_it_fills_the_axis(
    trajectory,
) -> None:
    ratio = np.linspace(-20, 0.9, len(trajectory.step))
    observed = {"margin_ratio": ratio, "margin_bound": ratio}
    run = replace(trajectory, observed=observed)
    ax = run.plot(Figure().subplots(), quantity="margin_ratio")
    assert 1 in heights(ax)
    low, high = ax.get_ylim()
    assert low == 0 and 1 < high < 1.2
    assert heights(run.plot(Figure().subplots(), quantity="margin_bound")) == []
    # None is positive: the axis shows them as they are.
    below = replace(trajectory, observed={"margin_ratio": ratio - 1})
    assert below.plot(Figure().subplots(), quantity="margin_ratio").get_ylim()[0] < -20
