"""Decision maps: colours are the scorer's values, lines where they belong, one scale for all."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from implicit_bias import GLN, HyperplaneContexts, HyperplaneGates, ReLU, Sample, solve_gln_svm
from implicit_bias.datasets import make_quadrants
from implicit_bias.models.relu import relu_lines
from implicit_bias.runs.drawing import (
    DecisionMap,
    gating_lines,
    is_planar,
    map_row,
    plane_snapshots,
    plot_decision_map,
    plot_decision_maps,
)
from implicit_bias.training import NetworkSnapshots

X = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -0.5], [-0.5, 1.0]])
Y = np.array([1.0, -1.0, 1.0, -1.0])
NORMAL = np.array([2.0, -1.0])


def linear(inputs: np.ndarray) -> np.ndarray:
    return inputs[:, :2] @ NORMAL


PLAIN = DecisionMap("plain", linear)


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


def pixels(ax: Axes) -> tuple[np.ndarray, np.ndarray]:
    """Values of the image, and the points of the plane that its pixels stand for."""
    image = ax.images[0]
    values = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    assert image.origin == "lower"
    n_rows, n_columns = values.shape
    x1 = left + (np.arange(n_columns) + 0.5) * (right - left) / n_columns
    x2 = bottom + (np.arange(n_rows) + 0.5) * (top - bottom) / n_rows
    return values, np.stack(np.meshgrid(x1, x2), axis=-1)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_colours_are_the_scores_at_the_centres_of_the_pixels(ax, kind) -> None:
    scorer = DecisionMap("", lambda inputs: kind(linear(inputs)), norm=4.0)
    drawn = plot_decision_map(ax, scorer, kind(X), kind(Y), resolution=40)
    assert drawn is ax
    values, points = pixels(ax)
    np.testing.assert_allclose(values, points @ NORMAL / 4, atol=1e-12)
    assert np.all((values > 0) == (2 * points[..., 0] > points[..., 1]))
    # Positive is blue and negative red, as far out on either side.
    image = ax.images[0]
    assert image.get_clim() == (-np.abs(values).max(), np.abs(values).max())
    red, _, blue, _ = image.to_rgba(values)[values > 0.5].T
    assert np.all(blue > red)


def test_a_constant_column_is_part_of_every_input(ax) -> None:
    seen = []

    def scorer(inputs: np.ndarray) -> np.ndarray:
        seen.append(inputs)
        return linear(inputs)

    constant = np.column_stack([X, np.full(4, 3.0)])
    plot_decision_map(ax, DecisionMap("", scorer), constant, Y, resolution=5)
    assert seen[0].shape == (25, 3)
    assert np.all(seen[0][:, 2] == 3)


def test_the_zero_level_is_the_line_where_the_score_vanishes(ax) -> None:
    plot_decision_map(ax, PLAIN, X, Y, resolution=50)
    (zero,) = ax.collections[0].get_paths()
    np.testing.assert_allclose(zero.vertices @ NORMAL, 0, atol=1e-9)
    assert np.ptp(zero.vertices[:, 1]) > 2.2  # of the square's 2.32


def test_samples_of_each_class_lie_on_top_with_a_marker_of_their_own(ax) -> None:
    plot_decision_map(ax, PLAIN, X, Y)
    positive, negative = ax.collections[-2:]
    np.testing.assert_array_equal(positive.get_offsets(), X[Y > 0])
    np.testing.assert_array_equal(negative.get_offsets(), X[Y < 0])
    assert positive.get_zorder() > ax.images[0].get_zorder()
    assert [c.get_label() for c in (positive, negative)] == ["y = +1", "y = -1"]
    left, right = ax.get_xlim()
    assert left < X[:, 0].min() < X[:, 0].max() < right


def test_hyperplanes_are_lines_through_their_points(ax) -> None:
    planes = np.array([[1.0, 0, 0.5], [0, -2, 1], [3, 4, 5], [0, 0, 1]])
    plot_decision_map(ax, DecisionMap("", linear, hyperplanes=planes), X, Y)
    assert len(ax.lines) == 3  # the last one is no line
    for line, (a, b, c) in zip(ax.lines, planes, strict=False):
        for x1, x2 in (line.get_xy1(), line.get_xy2()):
            assert a * x1 + b * x2 == pytest.approx(c)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones((4, 4))}, "points of the plane"),
        ({"X": np.column_stack([X, X[:, 0]])}, "points of the plane"),
        ({"y": Y[:3]}, r"`y` must have shape \(4,\)"),
        ({"resolution": 1}, "`resolution` must be at least 2"),
        ({"shown": DecisionMap("", lambda inputs: inputs)}, "one score for each of 40401"),
    ],
)
def test_what_is_no_map_is_refused(ax, arguments, message) -> None:
    given = {"shown": PLAIN, "X": X, "y": Y} | arguments
    with pytest.raises(ValueError, match=message):
        plot_decision_map(ax, **given)
    with pytest.raises(ValueError, match="`norm` must be positive"):
        DecisionMap("", linear, norm=0.0)


@pytest.mark.parametrize(
    ("inputs", "planar"),
    [(X, True), (np.column_stack([X, np.ones(4)]), True), (np.ones((3, 1)), False),
     (np.arange(12.0).reshape(4, 3), False), (np.ones(3), False)],
)  # fmt: skip
def test_what_is_planar(inputs, planar) -> None:
    assert is_planar(inputs) is planar


def test_maps_share_the_scale_on_which_the_first_one_has_margin_1() -> None:
    margin = float(np.min(Y * linear(X)))
    axes = list(Figure().subplots(1, 2))
    maps = [
        DecisionMap("limit", linear, norm=5.0),
        DecisionMap("later", lambda inputs: 100 * linear(inputs), norm=1000.0),
    ]
    assert plot_decision_maps(axes, maps, X, Y, resolution=30) == axes
    first, second = (pixels(ax)[0] for ax in axes)
    np.testing.assert_allclose(first, linear(pixels(axes[0])[1].reshape(-1, 2)).reshape(30, 30)
                               / margin, rtol=1e-12)  # fmt: skip
    np.testing.assert_allclose(second, first * 0.1 * 5, rtol=1e-12)
    assert axes[0].images[0].get_clim() == axes[1].images[0].get_clim()
    assert [ax.get_title() for ax in axes] == ["limit", "later"]
    assert "pyplot" not in vars(matplotlib) or not matplotlib.pyplot.get_fignums()


def test_a_first_map_that_does_not_separate_and_too_few_axes_are_refused() -> None:
    axes = list(Figure().subplots(1, 2))
    wrong = DecisionMap("wrong", lambda inputs: -linear(inputs))
    with pytest.raises(ValueError, match="'wrong', must classify every sample"):
        plot_decision_maps(axes, [wrong, wrong], X, Y)
    with pytest.raises(ValueError, match="one a map, got 2 for 1"):
        plot_decision_maps(axes, [wrong], X, Y)


def test_lines_of_a_gating_and_of_a_relu_network_are_where_its_gates_change() -> None:
    inputs, _ = make_quadrants(50)
    for gating in (HyperplaneContexts(3, 4), HyperplaneGates(5)):
        gating.fit(inputs)
        lines = gating_lines(gating, inputs)
        n_lines = 6 if isinstance(gating, HyperplaneContexts) else 5
        assert lines.shape == (n_lines, 3)
        for a, b, c in lines:
            foot = np.array([a, b]) * c / (a * a + b * b)
            step = 1e-6 * np.array([a, b]) / np.hypot(a, b)
            sides = np.array([[*(foot - step), 1.0], [*(foot + step), 1.0]])
            before, after = gating.transform(sides)
            assert np.sum(before != after) == 1
    assert gating_lines(None, inputs) is None
    network = ReLU(3, 4)
    for (a, b, c), w in zip(relu_lines(network, inputs), network.w1.detach().numpy(), strict=True):
        foot = np.array([a, b]) * c / (a * a + b * b)
        assert w @ np.array([*foot, 1.0]) == pytest.approx(0, abs=1e-12)


def test_the_row_of_a_run_shows_the_limit_and_then_the_network_per_unit_of_norm() -> None:
    inputs, y = make_quadrants(60, random_state=2)
    gating = HyperplaneContexts(2, 2, cutoffs="axes").fit(inputs)
    contexts = gating.transform(inputs)
    limit = solve_gln_svm(inputs, y, contexts).require()
    # The limit itself, as a network of another size: both maps must be one.
    network = GLN.from_zeta(7.0 * limit.zeta)
    snapshots = NetworkSnapshots(network, [])
    snapshots.take(12)
    row = map_row(
        limit, snapshots, Sample(inputs, y, contexts), gating.transform,
        limit_title="the limit", lines=lambda at: gating_lines(gating, inputs),
    )  # fmt: skip
    assert row.n == 2
    axes = list(Figure().subplots(1, 2))
    row.draw(axes)
    assert [ax.get_title() for ax in axes] == ["the limit", "network after 12 steps"]
    first, second = (pixels(ax)[0] for ax in axes)
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)
    assert all(len(ax.lines) == 2 for ax in axes)


def test_only_a_plane_gets_snapshots() -> None:
    assert plane_snapshots(ReLU(5, 2), np.random.default_rng(0).normal(size=(9, 5)), 10) is None
    assert plane_snapshots(ReLU(2, 2), X, 10) is not None
