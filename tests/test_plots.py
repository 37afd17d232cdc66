"""Pictures: what is drawn is the trajectory, beside the limit that it should come to."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from implicit_bias import GLNLimit, Trajectory, solve_gln_svm
from implicit_bias.plots import plot_agreement, plot_margin_ratio, plot_margins, plot_run

STEPS = np.array([0.0, 1, 10, 100, 1000])
MARGINS = np.array([-2.0, -0.5, 0.5, 2, 5])
LIMIT_SCORES = np.array([1.0, -1, 2, -3])
# Held-out labels agree on 1, 2, 2, 3 and 4 of four.
SCORES = np.array([
    [1.0, 1, -1, 1], [1, -5, -1, 1], [1, -5, -1, 1], [1, -5, 2, 1], [3, -3, 3, -3],
])  # fmt: skip


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture(scope="module")
def limit() -> GLNLimit:
    # One sample of length 5: the optimum is 1/5.
    return solve_gln_svm(np.array([[3.0, 4.0]]), np.ones(1), np.zeros((1, 1), dtype=int))


def trajectory(*, rows: slice = slice(None), smallest_margin=MARGINS) -> Trajectory:
    columns = {
        "step": STEPS,
        "loss": np.exp(-MARGINS),
        "log_loss": -MARGINS,
        "smallest_margin": smallest_margin,
        "normalised_margin": smallest_margin,
        "smooth_margin": smallest_margin - 1,
        "weight_norm": np.ones(5),
        "unit_norms": np.ones((5, 1)),
        "scores": SCORES,
        "seconds": STEPS,
    }
    return Trajectory(**{name: np.asarray(c)[rows] for name, c in columns.items()}, finished=True)


def dashed(ax: Axes) -> list[float]:
    """Heights of the horizontal dashed lines."""
    return [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]


def test_margins_are_drawn_at_their_steps(ax) -> None:
    assert plot_margins(trajectory(), ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), STEPS)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), MARGINS)
    assert ax.get_ylabel() == "smallest margin"


def test_margin_ratio_is_drawn_where_the_network_separates_below_an_asymptote_at_1(
    ax, limit
) -> None:
    assert plot_margin_ratio(trajectory(), limit, ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), STEPS[2:])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), MARGINS[2:] / 5, rtol=1e-7)
    assert dashed(ax) == [1]
    assert ax.get_ylim() == (0, 1.05)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["trained network", "predicted limit"]


def test_a_network_that_never_separates_has_no_margin_ratio_but_the_same_axis(ax, limit) -> None:
    plot_margin_ratio(trajectory(smallest_margin=-np.abs(MARGINS)), limit, ax)
    assert len(ax.lines[0].get_xdata()) == 0
    assert dashed(ax) == [1]
    assert ax.get_xlim()[1] > STEPS[-1]


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_agreement_is_the_share_of_equal_signs_below_an_asymptote_at_1(ax, kind) -> None:
    assert plot_agreement(trajectory(), kind(LIMIT_SCORES), ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), STEPS)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.25, 0.5, 0.5, 0.75, 1.0])
    assert dashed(ax) == [1]


def test_all_panels_show_the_steps_from_0_to_the_last_on_one_logarithmic_axis(limit) -> None:
    figure = plot_run(trajectory(), limit, LIMIT_SCORES, title="t")
    limits = {ax.get_xlim() for ax in figure.axes}
    assert len(limits) == 1
    low, high = limits.pop()
    # Step 0 is inside; nothing is left for negative steps, and little beyond the last one.
    assert -1 < low < 0
    assert STEPS[-1] < high < 2 * STEPS[-1]
    for ax in figure.axes:
        assert ax.get_xlabel() == "gradient steps"
        assert ax.get_xscale() == "symlog"
        places = ax.transData.transform(np.column_stack([STEPS[1:], np.ones(4)]))[:, 0]
        np.testing.assert_allclose(np.diff(places), np.diff(places)[0], rtol=0.01)


def test_a_run_of_one_row_can_be_drawn(limit) -> None:
    figure = plot_run(trajectory(rows=slice(1)), limit, LIMIT_SCORES, title="t")
    figure.canvas.draw()


def test_a_run_is_three_panels_under_a_title_and_leaves_pyplot_alone(limit) -> None:
    figure = plot_run(trajectory(), limit, LIMIT_SCORES, title="a toy and its limit")
    assert isinstance(figure, Figure)
    assert figure.get_suptitle() == "a toy and its limit"
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels == ["smallest margin", "margin ratio", "agreement on held-out labels"]
    assert "pyplot" not in vars(matplotlib) or not matplotlib.pyplot.get_fignums()


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-")]
)
def test_a_picture_is_written_in_each_format_without_a_warning(
    tmp_path, limit, recwarn, ending, magic
) -> None:
    path = tmp_path / f"run.{ending}"
    plot_run(trajectory(), limit, LIMIT_SCORES, title="t").savefig(path)
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 5000
    assert not recwarn.list
