"""Which units pictures show: every one, where it is, and coloured those that will change."""

from __future__ import annotations

from pkgutil import resolve_name
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex

UNITS = SimpleNamespace(
    log_inverse_loss=20.0, offset=0.0, mean_margin=20.0,
    limit_shares=np.array([0.2, 0.5, 0.1, 0.2]),
    changes=[
        SimpleNamespace(unit=2, share=0.5, exponent=-0.3, predicted_share=0.1, arrivals=()),
        SimpleNamespace(unit=1, share=0.1, exponent=0.4, predicted_share=0.5, arrivals=()),
    ],
)  # fmt: skip


def test_units_that_will_change_are_drawn_in_colour_and_go_on_as_predicted() -> None:
    plot_unit_growth = resolve_name("implicit_bias.runs.drawing.unit_growth:plot_unit_growth")
    norms = np.outer([1.0, 2.0], [2.0, 1.0, 5.0, 2.0])
    course = SimpleNamespace(log_loss=np.array([-5.0, -20.0]), unit_norms=norms)
    _, ax = plt.subplots()
    plot_unit_growth(course, UNITS, ax)
    seen = [line for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 2]
    for line, share in zip(seen, [0.2, 0.1, 0.5, 0.2], strict=True):
        np.testing.assert_allclose(line.get_ydata(), share)
    grey = [to_hex(line.get_color()) == "#cccccc" for line in seen]
    assert grey == [True, False, False, True]
    ahead = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(ahead) == 2
    for line, change in zip(ahead, UNITS.changes, strict=True):
        assert line.get_color() == seen[change.unit].get_color()
        x, y = line.get_data()
        odds = change.share / (1 - change.share) * (x / 20.0) ** change.exponent
        np.testing.assert_allclose(y / (1 - y), odds)
    assert {text.get_text() for text in ax.texts} >= {"unit 1", "unit 2"}
    plt.close("all")


def test_shares_of_units_stand_over_their_dual_norms() -> None:
    plot_unit_shares = resolve_name("implicit_bias.runs.diagnosis.figure:plot_unit_shares")
    share, limit, duals = np.array([[0.7, 0.2, 0.1], [0.6, 0.4, 0.0], [1.0, 1.02, 0.3]])
    _, ax = plt.subplots()
    plot_unit_shares(share, limit, duals, ax)
    own, theirs = ax.lines[:2]
    np.testing.assert_array_equal(own.get_data(), [duals, share])
    np.testing.assert_array_equal(theirs.get_data(), [duals, limit])
    assert ax.lines[2].get_xdata() == [1, 1] and ax.get_legend() is not None
    _, ax = plt.subplots()
    plot_unit_shares(share, None, duals, ax)
    assert len(ax.lines) == 2 and ax.get_legend() is None
    plt.close("all")


def test_margins_of_a_network_stand_beside_those_of_its_limit() -> None:
    plot_margins = resolve_name("implicit_bias.runs.diagnosis.figure:plot_margins_beside")
    own, limit = np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.5, 3.0])
    _, ax = plt.subplots()
    plot_margins(own, limit, ax)
    first, second, one = ax.lines
    np.testing.assert_array_equal(first.get_data(), [[1, 2, 3], own])
    np.testing.assert_array_equal(second.get_data(), [[1, 2, 3], limit])
    assert one.get_ydata() == [1, 1] and ax.get_legend() is not None
    ticks = ax.xaxis.get_major_locator().tick_values(1, 3)
    np.testing.assert_array_equal(ticks, np.round(ticks))
    _, ax = plt.subplots()
    plot_margins(own, None, ax)
    assert len(ax.lines) == 2 and ax.get_legend() is None
    plt.close("all")


def test_a_margin_ratio_is_drawn_where_the_network_separates() -> None:
    plot_ratio = resolve_name("implicit_bias.runs.diagnosis.figure:plot_ratio")
    u, ratio = np.array([-1.0, 0.0, 0.5, 2.0, 3.0, 4.0]), np.array([0.5, 0.5, 0.6, -0.1, 0.0, 0.9])
    _, ax = plt.subplots()
    plot_ratio(u, ratio, ax)
    seen, one = ax.lines
    np.testing.assert_array_equal(seen.get_data(), [[0.5, 4.0], [0.6, 0.9]])
    assert one.get_ydata() == [1, 1]
    plt.close("all")
