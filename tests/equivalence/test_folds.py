"""Zero sets of units bend a transparent network everywhere, and another one where it shows them."""

import numpy as np
import pytest

from implicit_bias import Sample
from implicit_bias.equivalence import ReLUWeights, fold_set, plane_of, transparent_at
from implicit_bias.runs.drawing import fold_row, plot_folds

# relu(relu(x_1) + relu(x_2) - 1): it bends where the sum is 1, and on x_1 = 0 or x_2 = 0 only
# where the other one is above 1.
HIDDEN = ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]], [[1.0]]], [[0, 0], [-1], [0]])


def transparent_network(seed) -> ReLUWeights:
    """2-2-2-1, general; pre-activations of each layer have a positive sum wherever ||x|| < 3."""
    rng = np.random.default_rng(seed)
    w, p = (x / np.linalg.norm(x) for x in rng.normal(size=(2, 2)))
    return ReLUWeights.from_arrays(
        [[w, -w + 0.3 * p], [[1.0, -1.0], [-0.8, 1.1]], [[1.0, -2.0]]],
        [[0.5, 0.5], [0.2, 0.3], [0.1]],
    )


@pytest.mark.parametrize("seed", range(3))
def test_lemma_2_1_all_zero_sets_of_a_transparent_network_bend_it(seed) -> None:
    folds = fold_set(transparent_network(seed), extent=2.0)
    assert folds.transparent == 1
    assert folds.bends.all()
    # Every unit is met, 50 lines in either direction at least once each or nearly so.
    assert all(bent == crossed >= 40 for _, _, bent, crossed in folds.counts())


def unit_network(network, layer, unit, *, rectified) -> ReLUWeights:
    """The pre-activation of a unit, layers counted from 1, or its activation, as a network."""
    rows = [network.matrices[layer - 1][[unit]], network.biases[layer - 1][[unit]]]
    matrices, biases = [*network.matrices[: layer - 1]], [*network.biases[: layer - 1]]
    further = [[[[1.0]], [0.0]]] if rectified else []
    for W, b in [rows, *further]:
        matrices, biases = [*matrices, W], [*biases, b]
    return ReLUWeights.from_arrays(matrices, biases)


def bends(network) -> set[tuple[float, float]]:
    folds = fold_set(network, extent=2.0, n_lines=30)
    return set(map(tuple, folds.coordinates[folds.bends].round(9).tolist()))


@pytest.mark.parametrize("seed", range(2))
def test_lemmas_a_8_and_a_13_units_bend_where_activations_below_do(seed) -> None:
    network = transparent_network(seed) if seed else HIDDEN
    below = set[tuple[float, float]]()
    for unit in range(2):
        # F(relu(h)) is F(h) where h > 0, and where h = 0 is crossed; of the first layer F(h) = {}.
        own = fold_set(unit_network(network, 1, unit, rectified=True), extent=2.0, n_lines=30)
        assert own.bends.all() and set(own.layer) == {0}
        below |= bends(unit_network(network, 1, unit, rectified=True))
    for unit in range(network.widths[1]):
        before = bends(unit_network(network, 2, unit, rectified=False))
        assert before == below
        after = bends(unit_network(network, 2, unit, rectified=True))
        points = np.array(sorted(before))
        z = network.pre_activations(points)[1][:, unit]
        kept = set(map(tuple, points[z > 1e-9].tolist()))
        crossed = after - before
        assert after - crossed == kept and kept < before
        values = network.pre_activations(np.array(sorted(crossed)))[1][:, unit]
        np.testing.assert_allclose(values, 0, atol=1e-8)


def test_lemma_a_9_a_sum_bends_nowhere_else_than_its_terms() -> None:
    network = transparent_network(0)
    terms = [bends(unit_network(network, 2, unit, rectified=True)) for unit in range(2)]
    assert bends(network) == terms[0] | terms[1]
    # Of a network that is not general it may bend less: relu(z) - relu(-z) = z.
    first = network.matrices[0][[0]]
    trade = ReLUWeights.from_arrays([np.vstack([first, -first]), [[1.0, -1.0]]])
    assert bends(trade) == set() != bends(unit_network(trade, 1, 0, rectified=True))


def test_a_closed_layer_hides_the_zero_sets_below_it() -> None:
    folds = fold_set(HIDDEN, extent=2.0, n_lines=80)
    first = folds.layer == 0
    other = folds.coordinates[np.arange(len(first)), 1 - folds.unit * first]
    np.testing.assert_array_equal(folds.bends[first], other[first] > 1)
    assert folds.bends[~first].all()
    # Not transparent below x_1 + x_2 = 1 in the upper right quarter, below 1 in the two beside it,
    # and in the lower left one.
    assert folds.transparent == pytest.approx(1 - (0.5 + 2 + 2 + 4) / 16, abs=0.01)
    assert folds.counts()[2][2] == folds.counts()[2][3] > 0


def test_crossings_lie_on_zero_sets_and_bends_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    network = ReLUWeights.from_arrays(
        [rng.normal(size=s) for s in [(5, 3), (4, 5), (1, 4)]],
        [rng.normal(size=5), rng.normal(size=4), [0.0]],
    )
    folds = fold_set(network, plane=(np.ones(3), np.eye(3)[:2]), extent=2.0, n_lines=20)
    z = network.pre_activations(folds.points)
    for layer in range(2):
        here = folds.layer == layer
        assert np.abs(z[layer][here, folds.unit[here]]).max() < 1e-12
    step = 1e-5
    second = [
        network.scores(folds.points + step * e)
        + network.scores(folds.points - step * e)
        - 2 * network.scores(folds.points)
        for e in np.eye(3)[:2]
    ]
    bent = np.abs(np.column_stack(second)).max(axis=1) > 1e-9
    np.testing.assert_array_equal(folds.bends, bent)
    assert 0 < bent.sum() < len(bent)


def test_transparency_is_decided_sample_by_sample() -> None:
    X = np.array([[2.0, -1.0], [0.4, 0.4], [-1.0, -1.0], [0.5, 0.5]])
    np.testing.assert_array_equal(transparent_at(HIDDEN, X), [True, False, False, True])


def test_the_picture_shows_hidden_crossings_apart() -> None:
    from matplotlib.figure import Figure

    folds = fold_set(HIDDEN, extent=2.0)
    ax = plot_folds(folds, Figure().subplots())
    drawn = sum(len(line.get_xdata()) for line in ax.lines)
    assert drawn == len(folds.bends)
    assert len(ax.lines) == 3
    assert len(plot_folds(fold_set(transparent_network(0)), Figure().subplots()).lines) == 2


def test_a_plane_is_needed_for_more_inputs_than_two() -> None:
    network = ReLUWeights.from_arrays([np.ones((2, 3)), np.ones((1, 2))])
    with pytest.raises(ValueError, match="3 inputs: give `plane`"):
        fold_set(network)
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(2, 3\)"):
        fold_set(network, plane=(np.zeros(2), np.ones((2, 3))))
    with pytest.raises(ValueError, match="`extent` must be positive"):
        fold_set(HIDDEN, extent=0.0)


def test_no_crossing_at_the_very_end_of_a_line_is_an_error() -> None:
    edge = ReLUWeights.from_arrays([[[1.0, 0.0]], [[1.0]]], [[-np.nextafter(1, 0)], [0]])
    assert not fold_set(edge, extent=1.0, n_lines=2).bends.any()


def test_zero_sets_that_lie_on_each_other_bend_or_cancel_together() -> None:
    rng = np.random.default_rng(0)
    w = rng.normal(size=(1, 2))
    parallel = ReLUWeights.from_arrays([w * [[1.0], [0.3], [1 / 3]], np.ones((1, 3))])
    folds = fold_set(parallel, n_lines=60)
    assert len(folds.bends) > 90 and folds.bends.all()
    # relu(z) - relu(-z) = z, whose slope is the same on both sides.
    opposite = ReLUWeights.from_arrays([w * [[0.7], [-1 / 3]], [[1 / 0.7, -3.0]]])
    assert not fold_set(opposite, n_lines=60).bends.any()


def test_the_plane_is_that_of_the_samples_or_of_their_principal_components() -> None:
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(20, 2)) * [3.0, 1.0]
    basis = np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    noise = 1e-3 * rng.normal(size=(20, 6))
    X = 1.0 + flat @ basis + noise
    plane = plane_of(X)
    assert plane is not None
    # The two directions are the ones that the samples were drawn in.
    np.testing.assert_allclose(np.linalg.norm(plane.basis @ basis.T, axis=0), 1, atol=1e-4)
    back = plane.origin + plane.coordinates(X) @ plane.basis
    assert np.abs(back - X).max() < 6e-3
    constant = np.column_stack([flat, np.full(20, 2.0)])
    own = plane_of(constant)
    assert own is not None
    np.testing.assert_array_equal(own.coordinates(constant), flat)
    assert own.origin.tolist() == [0, 0, 2]
    line = np.column_stack([flat[:, 0], np.ones(20)])
    assert plane_of(line) is None and plane_of(X[:, :1]) is None


def test_a_row_of_pictures_has_each_networks_bends_and_the_samples() -> None:
    from matplotlib.colors import rgb_to_hsv, to_rgb

    from implicit_bias.runs.drawing import compose

    X, y = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -1.0]]), np.array([1.0, -1.0, -1.0])
    row = fold_row({"one": HIDDEN, "other": transparent_network(0)}, Sample(X, y, None))
    assert row is not None
    axes = compose([row], title="").axes
    assert [ax.get_title() for ax in axes] == ["one: where it bends", "other: where it bends"]
    drawn = np.concatenate([c.get_offsets() for c in axes[1].collections])
    np.testing.assert_array_equal(drawn, X)
    assert axes[0].get_xlim() == pytest.approx((-1.1, 1.1))
    for ax in axes:
        # Samples lie on top, in other colours than zero sets, and the legend explains both.
        folds, samples = ax.lines, ax.collections
        assert max(line.get_zorder() for line in folds) < min(c.get_zorder() for c in samples)
        legend = ax.get_legend()
        assert legend is not None
        names = [text.get_text() for text in legend.get_texts()]
        assert names[:3] == ["y = +1", "y = -1", "zero set of layer 1"]
        hues = [rgb_to_hsv(to_rgb(line.get_color())) for line in folds if line.get_marker() == "."]
        for drawn_samples in samples:
            (face,) = drawn_samples.get_facecolor()
            hue = rgb_to_hsv(face[:3])
            # Bright, or two classes of small markers look alike.
            assert hue[2] > 0.7
            # Far apart in hue, or much lighter.
            assert all(abs(one[0] - hue[0]) > 0.08 or one[2] > hue[2] + 0.4 for one in hues)
    assert fold_row({"one": HIDDEN}, Sample(X * [1, 0], y, None)) is None
