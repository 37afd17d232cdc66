"""Pictures: what is drawn is the trajectory, beside the limit that it should come to."""

from __future__ import annotations

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from implicit_bias import Trajectory, run, solve_gln_svm
from implicit_bias.limits import GLNLimit
from implicit_bias.runs.drawing import (
    Row,
    compose,
    legend_above,
    panel_rows,
    plot_agreement,
    plot_gate_changes,
    plot_growth,
    plot_kkt,
    plot_margin_ratio,
    plot_margins,
    plot_unit_norms,
    run_panels,
)

STEPS = np.array([0.0, 1, 10, 100, 1000])
MARGINS = np.array([-2.0, -0.5, 0.5, 2, 5])
LIMIT_SCORES = np.array([1.0, -1, 2, -3])
# Held-out labels agree on 1, 2, 2, 3 and 4 of four.
SCORES = np.array([
    [1.0, 1, -1, 1], [1, -5, -1, 1], [1, -5, -1, 1], [1, -5, 2, 1], [3, -3, 3, -3],
])  # fmt: skip


def plot_run(*data, title, panels=(), below=()) -> Figure:
    return compose([*panel_rows([*run_panels(*data), *panels]), *below], title=title)


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture(scope="module")
def limit() -> GLNLimit:
    # One sample of length 5: the optimum is 1/5.
    return solve_gln_svm(np.array([[3.0, 4.0]]), np.ones(1), np.zeros((1, 1), dtype=int))


def trajectory(
    *, rows: slice = slice(None), smallest_margin=MARGINS, observed=None, **changes
) -> Trajectory:
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
    } | changes
    columns = {name: np.asarray(c)[rows] for name, c in columns.items()}
    observed = {name: np.asarray(c)[rows] for name, c in (observed or {}).items()}
    return Trajectory(**columns, finished=True, observed=observed)


class Limit:
    """Of units with the norms 6, 3, 1 and 0, the last one dead."""

    dual_objective = 10.0
    unit_norms = np.array([6.0, 3.0, 1.0, 0.0])
    live = np.array([True, True, True, False])


def lines_by_label(ax: Axes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points that are drawn, by the names of their curves: where a value is missing none is."""
    found = {}
    for line in ax.lines:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        found[line.get_label()] = x[~np.isnan(y)], y[~np.isnan(y)]
    return found


def test_no_line_crosses_what_is_not_known(ax, limit) -> None:
    ratios = np.array([0.5, np.nan, np.nan, 0.9, 0.99])
    plot_margin_ratio(trajectory(observed={"margin_ratio": ratios}), limit, ax)
    (path,) = (line.get_path() for line in ax.lines if line.get_label() == "exact")
    known, _ = lines_by_label(ax)["exact"]
    np.testing.assert_array_equal(known, STEPS[[0, 3, 4]])
    assert np.isnan(path.vertices[1:3, 1]).all()


def labels(figure: Figure) -> list[str]:
    return [ax.get_ylabel() for ax in figure.axes]


def dashed(ax: Axes) -> list[float]:
    """Heights of the horizontal dashed lines."""
    return [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == "--"]


def test_margins_are_drawn_at_their_steps(ax) -> None:
    assert plot_margins(trajectory(), ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), STEPS)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), MARGINS)
    assert ax.get_ylabel() == "smallest margin"


def test_what_the_margin_ratio_lacks_is_drawn_on_a_log_axis_where_the_network_separates(
    ax, limit
) -> None:
    exact = replace(limit, certificate=replace(limit.certificate, dual_objective=0.2))
    assert plot_margin_ratio(trajectory(), exact, ax) is ax
    drawn = lines_by_label(ax)
    # The ratios 0.1, 0.4 and 1: nothing is lacking at the last, which a log axis cannot show.
    np.testing.assert_array_equal(drawn["exact"][0], STEPS[2:4])
    np.testing.assert_allclose(drawn["exact"][1], 1 - MARGINS[2:4] / 5, rtol=1e-7)
    np.testing.assert_array_equal(drawn["smoothed"][0], STEPS[3:])
    np.testing.assert_allclose(drawn["smoothed"][1], 1 - (MARGINS[3:] - 1) / 5, rtol=1e-7)
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["exact", "smoothed"]


def test_a_measured_margin_ratio_comes_before_a_computed_one(ax, limit) -> None:
    measured = np.array([-1.0, 0.1, 0.2, 0.3, 0.4])
    observed = {"margin_ratio": measured, "smooth_margin_ratio": measured - 0.15}
    plot_margin_ratio(trajectory(observed=observed), limit, ax)
    drawn = lines_by_label(ax)
    np.testing.assert_array_equal(drawn["exact"], [STEPS[1:], 1 - measured[1:]])
    np.testing.assert_allclose(drawn["smoothed"], [STEPS[2:], 1.15 - measured[2:]])


def test_a_network_that_never_separates_has_no_margin_ratio_but_the_same_axis(ax, limit) -> None:
    plot_margin_ratio(trajectory(smallest_margin=-np.abs(MARGINS)), limit, ax)
    assert list(ax.lines) == [] and ax.get_legend() is None
    assert ax.get_xlim()[1] > STEPS[-1]


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_held_out_data_show_what_differs_and_leave_out_what_does_not(ax, kind) -> None:
    zeta = np.linspace(0, 1, 5)
    plot_agreement(trajectory(observed={"zeta_cosine": zeta}), kind(LIMIT_SCORES), ax)
    drawn = lines_by_label(ax)
    lengths = np.linalg.norm(SCORES, axis=1) * np.linalg.norm(LIMIT_SCORES)
    np.testing.assert_allclose(
        drawn["1 - cosine of scores"][1], 1 - SCORES @ LIMIT_SCORES / lengths
    )
    np.testing.assert_array_equal(drawn["1 - cosine of direction"], [STEPS[:4], 1 - zeta[:4]])
    np.testing.assert_allclose(drawn["labels that differ"], [STEPS[:4], [0.75, 0.5, 0.5, 0.25]])
    assert ax.get_yscale() == "log"


def test_the_cosine_of_scores_survives_huge_ones_and_zeros(ax) -> None:
    huge = SCORES * np.array([0.0, 1, 1e200, 1e300, 1e-300])[:, None]
    plot_agreement(trajectory(scores=huge), LIMIT_SCORES, ax)
    plain = Figure().subplots()
    plot_agreement(trajectory(), LIMIT_SCORES, plain)
    cosines, wanted = (lines_by_label(a)["1 - cosine of scores"] for a in (ax, plain))
    # Scores of zero have no direction, hence no point.
    np.testing.assert_allclose(cosines, np.array(wanted)[:, 1:], rtol=1e-12)


def test_the_kkt_distance_is_drawn_on_a_log_axis_where_it_is_positive(ax) -> None:
    residual = np.array([np.nan, np.nan, 0.5, 0.1, 0.0])
    cosine = np.array([np.nan, np.nan, 0.6, 0.9, 1.0])
    observed = {"kkt_residual": residual, "kkt_cosine": cosine}
    assert plot_kkt(trajectory(observed=observed), ax) is ax
    drawn = lines_by_label(ax)
    assert set(drawn) == {"relative residual", "1 - cosine"}
    np.testing.assert_array_equal(drawn["relative residual"], [[10, 100], [0.5, 0.1]])
    np.testing.assert_allclose(drawn["1 - cosine"], [[10, 100], [0.4, 0.1]])
    assert ax.get_yscale() == "log"


def norms_to(last: list[float]) -> np.ndarray:
    return np.linspace(np.ones(len(last)), last, 5)


def test_unit_norms_are_shares_with_those_of_the_limit_as_asymptotes(ax) -> None:
    norms = norms_to([7.0, 2.0, 1e-4, 1.0])
    assert plot_unit_norms(trajectory(unit_norms=norms), ax, Limit()) is ax
    shares = norms / norms.sum(axis=1, keepdims=True)
    curves = [line for line in ax.lines if len(line.get_xdata()) == 5]
    np.testing.assert_allclose([line.get_ydata() for line in curves], shares.T)
    assert dashed(ax) == pytest.approx([0.6, 0.3, 0.1, 0.0])
    # Each asymptote has its unit's colour; the limit's dead unit is dotted.
    asymptotes = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [a.get_color() for a in asymptotes] == [c.get_color() for c in curves]
    assert [c.get_linestyle() for c in curves] == ["-", "-", "-", ":"]
    (cross,) = [line for line in ax.lines if line.get_marker() == "x"]
    np.testing.assert_allclose([*cross.get_xdata(), *cross.get_ydata()], [1000, shares[-1, 2]])
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [
        "4 units of the network", "predicted limit", "dead in the limit (1)",
        "dead in the network (1)",
    ]  # fmt: skip


def test_many_units_have_ticks_on_the_right_for_asymptotes(ax) -> None:
    class Many:
        unit_norms = np.arange(20.0)
        live = np.arange(20) > 0

    plot_unit_norms(trajectory(unit_norms=norms_to([1.0] * 20)), ax, Many())
    assert dashed(ax) == []
    ticks = [line for line in ax.lines if line.get_marker() == 0]
    np.testing.assert_allclose([t.get_ydata()[0] for t in ticks], np.arange(20) / 190)


@pytest.mark.parametrize("limit", [None, Limit()])
def test_units_that_are_not_the_limit_s_have_no_asymptotes(ax, limit) -> None:
    plot_unit_norms(trajectory(unit_norms=norms_to([1.0, 2, 3])), ax, limit)
    assert dashed(ax) == []
    assert len(ax.lines) == 3


def test_growth_is_that_of_weights_and_of_the_logarithm_of_the_loss(ax) -> None:
    assert plot_growth(trajectory(weight_norm=STEPS + 2), ax) is ax
    drawn = lines_by_label(ax)
    np.testing.assert_array_equal(drawn["weight norm"], [STEPS, STEPS + 2])
    np.testing.assert_array_equal(drawn["log(1/loss)"], [STEPS[2:], MARGINS[2:]])
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize(("last", "scale"), [(5, "linear"), (1e6, "symlog")])
def test_a_margin_that_grows_by_powers_is_on_an_axis_of_powers(ax, last, scale) -> None:
    plot_margins(trajectory(smallest_margin=np.array([-2.0, -0.5, 0.5, 2, last])), ax)
    assert ax.get_yscale() == scale
    # Less than a decade below the least margin.
    assert -10 < ax.get_ylim()[0] < -2
    # Margins of 1 are visibly above 0.
    bottom, one, top = ax.transData.transform([[1, 0], [1, 2], [1, last]])[:, 1]
    assert one - bottom > 0.04 * (top - bottom)


@pytest.mark.parametrize("least", [0.3, 0.05, 2e-4, 1e-7])
def test_powers_of_ten_are_written_in_one_way(ax, least) -> None:
    observed = {"kkt_residual": np.geomspace(least, 0.9, 5)}
    plot_kkt(trajectory(observed=observed), ax)
    ax.figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        names = [tick.get_text() for place, tick in ticks if low <= place <= high and place > 0]
        written = [name for name in names if name]
        assert len(written) >= 2
        assert all("10^{" in name for name in written)


def test_gate_changes_are_drawn_at_steps_of_their_own(ax) -> None:
    assert plot_gate_changes([0, 3, 7], [0.0, 0.1, 0.2], ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 0], [3, 0.1], [7, 0.2]])
    assert ax.get_ylim()[0] == 0


def test_a_panel_begins_where_its_quantity_is_known(ax, limit) -> None:
    # Separated from step 10 on.
    plot_margin_ratio(trajectory(), limit, ax)
    assert STEPS[1] < ax.get_xlim()[0] < STEPS[2]


def test_an_axis_of_less_than_two_powers_of_ten_has_several_labels(limit) -> None:
    figure = Figure()
    ax = figure.subplots()
    late = np.array([0.0, 1, 200, 300, 450])
    plot_margin_ratio(trajectory(step=late), limit, ax)
    figure.canvas.draw()
    low, high = ax.get_xlim()
    inside = [tick for tick in ax.get_xticks() if low <= tick <= high]
    texts = [text.get_text() for text in ax.get_xticklabels()]
    assert inside == [200, 500] and {"200", "500"} <= set(texts)


def test_so_does_a_panel_of_several_trainers() -> None:
    figure = run("gln", n_train=40, n_val=10, hidden_units=6, steps=80).figure()
    assert figure is not None
    (ratios,) = (ax for ax in figure.axes if ax.get_ylabel() == RATIO)
    first = min(steps[0] for steps, _ in lines_by_label(ratios).values())
    assert first > 1
    assert first / 2 < ratios.get_xlim()[0] < first


def test_all_panels_show_the_steps_from_0_to_the_last_on_one_logarithmic_axis(limit) -> None:
    separated = trajectory(smallest_margin=MARGINS + 2.5)
    figure = plot_run(separated, limit, LIMIT_SCORES, title="t")
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


RATIO, AGREEMENT, KKT, UNITS, GROWTH, GATES = (
    "1 - margin ratio", "difference on held-out data", "KKT distance (ideal 0)",
    "unit's share of the norm", "growth", "gates changed since the start",
)  # fmt: skip


def test_a_run_is_a_figure_under_a_title_that_leaves_pyplot_alone(limit) -> None:
    figure = plot_run(trajectory(), limit, LIMIT_SCORES, title="a toy and its limit")
    assert isinstance(figure, Figure)
    assert figure.get_suptitle() == "a toy and its limit"
    assert labels(figure) == [RATIO, AGREEMENT, GROWTH]
    assert "pyplot" not in vars(matplotlib) or not matplotlib.pyplot.get_fignums()


def test_panels_without_data_are_left_out() -> None:
    units = {"unit_norms": norms_to([1.0, 2, 3, 4])}
    never = {"kkt_residual": np.full(5, np.nan)}
    full = {"kkt_residual": np.ones(5), "gate_changes": np.zeros(5)}

    def shown(given: Trajectory, *rest) -> list[str]:
        return labels(plot_run(given, *rest, title="t"))

    everything = [RATIO, AGREEMENT, KKT, UNITS, GROWTH, GATES]
    given = trajectory(**units, observed=full)
    assert shown(given, Limit(), LIMIT_SCORES) == everything
    assert shown(trajectory(**units, observed=never), Limit(), LIMIT_SCORES) == [
        RATIO, AGREEMENT, UNITS, GROWTH,
    ]  # fmt: skip
    assert shown(given) == ["smallest margin", KKT, UNITS, GROWTH, GATES]
    assert shown(trajectory(scores=np.empty((5, 0))), Limit(), np.empty(0)) == [RATIO, GROWTH]
    failed = trajectory(smallest_margin=-np.abs(MARGINS))
    assert shown(failed, Limit()) == ["smallest margin", GROWTH]


def test_a_limit_in_a_norm_of_its_own_has_a_margin_ratio_only_if_it_was_measured() -> None:
    class Own(Limit):
        def norm_of(self, zeta):
            raise AssertionError("the trajectory has no coefficients")

    assert labels(plot_run(trajectory(), Own(), title="t")) == ["smallest margin", GROWTH]
    measured = trajectory(observed={"margin_ratio": np.full(5, 0.5)})
    assert labels(plot_run(measured, Own(), title="t")) == [RATIO, GROWTH]


@pytest.mark.parametrize(
    ("n", "wanted"), [(1, [1]), (3, [3]), (4, [2, 2]), (5, [3, 2]), (6, [3, 3]), (7, [3, 2, 2])]
)
def test_rows_are_as_even_as_can_be_and_keep_the_order(n, wanted) -> None:
    drawn: list[int] = []
    rows = panel_rows([lambda ax, k=k: drawn.append(k) for k in range(n)])
    assert [row.n for row in rows] == wanted
    compose(rows, title="t")
    assert drawn == list(range(n))


def test_rows_below_a_run_are_drawn_on_as_many_axes_as_they_ask_for(limit) -> None:
    given: list[list[Axes]] = []
    row = Row(4, given.append, height=2.0)
    panel = plot_gate_changes
    figure = plot_run(
        trajectory(), limit, title="t", panels=[lambda ax: panel([0, 1], [0, 1], ax)], below=[row]
    )
    assert figure.axes[-4:] == given[0]
    assert labels(figure) == [RATIO, GROWTH, GATES, *[""] * 4]


@pytest.mark.parametrize("name", ["", "its title"])
def test_a_legend_stands_above_its_panel_and_below_the_title(name) -> None:
    def draw(ax: Axes) -> None:
        for label in ("one", "another one", "a third one of many letters"):
            ax.plot([0, 1], [0, 1], label=label)
        ax.set_title(name)
        legend_above(ax)

    figure = compose(panel_rows([draw]), title="t")
    figure.draw_without_rendering()
    (ax,) = figure.axes
    legend, title = ax.get_legend().get_window_extent(), ax.title.get_window_extent()
    assert legend.y0 >= ax.get_window_extent().y1
    assert not name or title.y0 >= legend.y1 - 1
    assert figure.bbox.y1 > max(legend.y1, title.y1)


@pytest.mark.parametrize("height", [3.6, 4.0, 4.4])
def test_labels_of_square_panels_stay_in_their_rows(height) -> None:
    def draw(axes: list[Axes]) -> None:
        for ax in axes:
            ax.plot([0, 1], [0, 1], label="one")
            ax.set(title="above", xlabel="below", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
            legend_above(ax)

    figure = compose([*panel_rows([lambda ax: None]), Row(3, draw, height=height)], title="t")
    figure.draw_without_rendering()
    for row in figure.subfigs:
        boxes = [ax.get_tightbbox() for ax in row.axes]
        assert min(box.y0 for box in boxes) >= row.bbox.y0
        assert max(box.y1 for box in boxes) <= row.bbox.y1


def test_a_figure_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        compose([], title="t")


def test_every_panel_returns_the_axes_it_was_given() -> None:
    given = trajectory(
        unit_norms=norms_to([1.0, 2, 3, 4]),
        observed={"kkt_residual": np.ones(5), "gate_changes": np.zeros(5)},
    )
    panels = run_panels(given, Limit(), LIMIT_SCORES)
    assert len(panels) == 6
    for panel in panels:
        ax = Figure().subplots()
        assert panel(ax) is ax
