"""Theorem 2.1: networks that their function determines, and the surfaces that show them."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_bias import equivalence
from implicit_bias.equivalence import affine_pieces, check_general
from implicit_bias.runs.drawing import plot_surface
from tests.commands import home
from tests.equivalence.test_alignment import act, draw

TURNS = 2 * np.pi * np.arange(40) / 40
DISC = np.column_stack([np.cos(TURNS), np.sin(TURNS)])
SQUARE = np.array([[-2.0, -2.0], [2.0, -2.0], [2.0, 2.0], [-2.0, 2.0]])


def ball(n_inputs: int, n: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_inputs))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X * rng.uniform(size=(n, 1)) ** (1 / n_inputs)


def truncated(network: equivalence.ReLUWeights, layer: int) -> equivalence.ReLUWeights:
    """`h^{l:L}`, l from 1 on."""
    return equivalence.ReLUWeights.from_arrays(
        network.matrices[layer - 1 :], network.biases[layer - 1 :]
    )


def open_image(network: equivalence.ReLUWeights, polygon: np.ndarray) -> np.ndarray:
    """P_2: the image, by the first layer, of the inputs at which all of it is open; a polygon."""
    W, b = network.matrices[0], network.biases[0]
    for w, c in zip(W, b, strict=True):
        kept = []
        for p, q in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            at, then = p @ w + c, q @ w + c
            kept += [p] if at > 0 else []
            kept += [p + at / (at - then) * (q - p)] if (at > 0) != (then > 0) else []
        polygon = np.array(kept)
    return polygon @ W.T + b


def test_lemma_a_7_pre_activations_are_the_affine_pieces_of_their_own_patterns() -> None:
    network = draw((3, 4, 3, 2))
    for x in ball(3, 20):
        z = network.pre_activations(x[None])
        pieces = affine_pieces(network, [layer[0] >= 0 for layer in z[:-1]])
        for piece, values in zip(pieces, z, strict=True):
            np.testing.assert_allclose(piece[:, :-1] @ x + piece[:, -1], values[0], atol=1e-12)
    assert len(affine_pieces(network, [])) == 1


@pytest.mark.parametrize("sizes", [(3, 2), (2, 2, 2, 2), (4, 3, 3, 2), (5, 5, 4)])
def test_lemma_2_4_the_network_is_transparent_and_its_layers_fill_their_spaces(sizes) -> None:
    network = equivalence.identifiable_network(sizes, random_state=1)
    assert (network.n_inputs, *network.widths) == sizes
    X = ball(sizes[0])
    assert equivalence.transparent_at(network, X).all()
    # Wherever the first unit of a layer is closed the second one is open.
    for z in network.pre_activations(X)[:-1]:
        assert (z[z[:, 0] <= 0, 1] > 0).all() and (z[:, 0] <= 0).any()
        # dim X^l = d_l: outputs of a layer with all units open span its space.
        opened = z[(z > 0).all(axis=1)]
        assert np.linalg.matrix_rank(opened - opened.mean(axis=0), tol=1e-10) == z.shape[1]
    # Radii are scales: the same network of another ball.
    far = equivalence.identifiable_network(sizes, radius=7.0, random_state=1)
    assert equivalence.transparent_at(far, 7 * X).all()


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (4, 3, 2)])
def test_lemmas_a_10_and_a_11_it_is_general_and_a_network_with_a_copy_is_not(sizes) -> None:
    network = equivalence.identifiable_network(sizes, random_state=2)
    found = check_general(network)
    assert found.holds and found.full_rank and found.smallest_offset > 1e-6
    # Affine pieces of units, one for each pattern of the layers below.
    counts = [2**width - 1 for width in sizes[1:]]
    expected = sum(int(np.prod(counts[:k])) * width for k, width in enumerate((*sizes[1:], 1)))
    assert found.n_pieces == expected
    first = np.array(network.matrices[0])
    biases = [np.array(network.biases[0]), *network.biases[1:]]
    first[1], biases[0][1] = 3 * first[0], 3 * biases[0][0]
    doubled = equivalence.ReLUWeights.from_arrays([first, *network.matrices[1:]], biases)
    assert check_general(doubled).smallest_angle < 1e-7 and not check_general(doubled).holds
    with pytest.raises(ValueError, match="affine pieces, more than"):
        check_general(draw((3, 9, 9, 1)))


def test_lemma_a_12_an_optimum_of_value_0_is_found_and_no_other_network_is_refused() -> None:
    # A sum of three rectified units, one of which is open everywhere: it is least at a corner.
    W = [[1.0, 0.1], [0.2, 1.0], [-1.0, -0.8]]
    biases = [0.1, -0.05, 1.0]
    hidden = equivalence.ReLUWeights.from_arrays([W, [[1.0, 1.0, 1.0]]], [biases, [0.0]])
    grid = np.stack(np.meshgrid(*[np.linspace(-3, 3, 61)] * 2), axis=-1).reshape(-1, 2)
    corners = [np.linalg.solve(np.array(W)[[i, j]], -np.array(biases)[[i, j]])
               for i, j in ((0, 1), (0, 2), (1, 2))]  # fmt: skip
    least = hidden.scores(np.array(corners)).min()
    assert least > 0.1 and least == pytest.approx(hidden.scores(grid).min(), abs=0.1)
    for shift, general in ((0.0, False), (0.05, True), (-0.05, True)):
        network = equivalence.ReLUWeights.from_arrays(
            [W, [[1.0, 1.0, 1.0]]], [biases, [-float(least) + shift]]
        )
        found = check_general(network)
        assert (found.smallest_offset > 1e-3) == found.holds == general
        assert (network.scores(grid).min() > shift - 1e-12) and found.full_rank
    # A unit that is 0 on a whole region has an optimum of value 0 there.
    assert check_general(hidden).smallest_offset == 0


def moved(network: equivalence.ReLUWeights, by: float) -> equivalence.ReLUWeights:
    rng = np.random.default_rng(0)
    arrays = [[a * (1 + by * rng.normal(size=a.shape)) for a in part]
              for part in (network.matrices, network.biases)]  # fmt: skip
    return equivalence.ReLUWeights.from_arrays(*arrays)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3, 3), (4, 4, 4)])
def test_the_construction_closes_each_unit_where_all_others_are_open(sizes, monkeypatch) -> None:
    construction, corners = home(equivalence.identifiable_network), []

    def watched(region, below, width, rng):
        before = region.A.copy(), region.c.copy()
        W, b, found = layer(region, below, width, rng)
        corners.extend((i, x, W @ (before[0] @ x + before[1]) + b) for i, x in enumerate(found))
        return W, b, found

    layer = construction._layer
    monkeypatch.setattr(construction, "_layer", watched)
    for seed in range(10):
        equivalence.identifiable_network(sizes, random_state=seed)
    assert len(corners) == 10 * sum(sizes[1:])
    for i, x, pre_activations in corners:
        assert np.linalg.norm(x) <= 1 + 1e-9
        assert abs(pre_activations[i]) < 1e-9
        assert (np.delete(pre_activations, i) > -1e-12).all()


# A whole open set of networks is of this kind.
@pytest.mark.parametrize(("seed", "by"), [(0, 0.0), (1, 0.0), (2, 0.0), (0, 1e-4), (1, 1e-4)])
def test_lemma_2_4_the_dependency_graph_has_as_many_long_paths_as_units(seed, by) -> None:
    network = moved(equivalence.identifiable_network((2, 2, 2, 2), random_state=seed), by)
    domain = DISC
    assert equivalence.transparent_at(network, ball(2)).all()
    for n_hidden in (3, 2, 1):
        surface = equivalence.fold_surface(network, domain)
        assert surface.order <= n_hidden  # lemma 2.2
        starts = surface.path_lengths >= n_hidden - 1
        first = (surface.layer == 1) & starts
        assert set(surface.unit[first]) == {0, 1}
        # Lemma 2.3: an index is at most that of a layer, and a path of m edges leaves m layers.
        assert (surface.index <= surface.layer).all()
        assert (surface.layer <= n_hidden - surface.path_lengths).all()
        # So that the function shows the first layer: these pieces lie in its zero sets alone.
        assert (surface.layer[starts] == 1).all()
        if n_hidden > 1:
            domain, network = open_image(network, domain), truncated(network, 2)


def test_theorem_2_1_the_function_shows_the_first_layer_up_to_order_and_scale() -> None:
    network = equivalence.identifiable_network((2, 2, 2, 2), random_state=5)
    equal = act(network)[0]
    X = ball(2)
    np.testing.assert_allclose(equal.scores(X), network.scores(X), atol=1e-12)
    lines, surfaces = [], [equivalence.fold_surface(one, DISC) for one in (network, equal)]
    # Lemma A.6: the canonical representation is of the set alone.
    keys = [
        {(int(k), *sorted(map(tuple, (pair.round(8) + 0.0).tolist())))
         for k, pair in zip(surface.index, surface.segments, strict=True)}
        for surface in surfaces
    ]  # fmt: skip
    assert keys[0] == keys[1] and len(keys[0]) == len(surfaces[0].index)
    for one, surface in zip((network, equal), surfaces, strict=True):
        ends = surface.segments[surface.path_lengths == 2]
        assert len(ends) == 2
        lines.append({tuple(sorted(map(tuple, pair.round(9)))) for pair in ends})
        # On each line one row of the first layer is 0, whichever that is.
        for pair in ends:
            values = pair @ one.matrices[0].T + one.biases[0]
            assert np.abs(values).max(axis=0).min() < 1e-9
    assert lines[0] == lines[1]
    assert equivalence.align(network, equal).is_equivalent


def test_lemma_a_14_truncations_are_general_and_transparent_too() -> None:
    network = equivalence.identifiable_network((3, 3, 2, 2), random_state=0)
    X = ball(3)
    for layer in (2, 3):
        inputs = np.maximum(network.pre_activations(X)[layer - 2], 0)
        rest = truncated(network, layer)
        np.testing.assert_allclose(rest.scores(inputs), network.scores(X), atol=1e-12)
        assert check_general(rest).holds and equivalence.transparent_at(rest, inputs).all()


def test_a_surface_of_one_layer_is_its_lines_and_of_two_is_found_by_hand() -> None:
    cross = equivalence.ReLUWeights.from_arrays([np.eye(2), np.ones((1, 2))], [[0.0, 0.5], [0.0]])
    surface = equivalence.fold_surface(cross, SQUARE)
    assert (surface.order, len(surface.segments), len(surface.edges)) == (1, 2, 0)
    ends = surface.segments[np.argsort(surface.unit)]
    np.testing.assert_allclose(np.sort(ends[0, :, 1]), [-2, 2])
    np.testing.assert_allclose(ends[1][:, 1], [-0.5, -0.5])
    # relu(relu(x_1) + relu(x_2) - 1): a roof with three sides, bent at both axes.
    hidden = equivalence.ReLUWeights.from_arrays(
        [np.eye(2), [[1.0, 1.0]], [[1.0]]], [[0, 0], [-1], [0]]
    )
    surface = equivalence.fold_surface(hidden, SQUARE)
    assert sorted(zip(surface.index, surface.layer, strict=True)) == [(1, 1)] * 2 + [(2, 2)] * 3
    assert surface.path_lengths.tolist() == [1, 1, 0, 0, 0]
    expected = [{(-2, 1), (0, 1)}, {(0, 1), (1, 0)}, {(1, 0), (1, -2)}]
    sides = [set(map(tuple, (pair.round(9) + 0.0).tolist())) for pair in surface.segments[2:]]
    assert all(side in sides for side in expected)
    # Each side bends at the axes that it ends on: x_1 = 0 at (0, 1), x_2 = 0 at (1, 0).
    assert len(surface.edges) == 4


def test_a_fold_of_a_higher_layer_that_nothing_bends_has_index_one() -> None:
    # The second layer's zero set x_1 + x_2 + 5 = 4 lies where all of the first is open.
    network = equivalence.ReLUWeights.from_arrays(
        [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0]], [[1.0]]], [[5.0, 9.0], [-4.0], [0.0]]
    )
    surface = equivalence.fold_surface(network, SQUARE)
    at = surface.layer == 2
    assert surface.index[at].tolist() == [1] and surface.order == 1
    np.testing.assert_allclose(surface.segments[at].sum(axis=2), -1)


def test_pieces_of_the_surface_are_where_the_network_bends() -> None:
    network = equivalence.identifiable_network((2, 2, 2, 2), random_state=4)
    surface = equivalence.fold_surface(network, SQUARE / 3)
    folds = equivalence.fold_set(network, extent=2 / 3, n_lines=40)
    assert folds.bends.all()
    for point in folds.coordinates:
        along = surface.segments[:, 1] - surface.segments[:, 0]
        off = point - surface.segments[:, 0]
        t = np.clip((off * along).sum(axis=1) / (along**2).sum(axis=1), 0, 1)
        assert np.linalg.norm(off - t[:, None] * along, axis=1).min() < 1e-9


def test_what_has_no_surface_or_is_no_such_network_is_refused() -> None:
    network = equivalence.identifiable_network((3, 2))
    for sizes in [(2,), (2, 3), (3, 1)]:
        with pytest.raises(ValueError, match="not increasing"):
            equivalence.identifiable_network(sizes)
    with pytest.raises(ValueError, match="`radius` must be"):
        equivalence.identifiable_network((2, 2), radius=0)
    with pytest.raises(ValueError, match="two inputs, got 3"):
        equivalence.fold_surface(network, SQUARE)
    with pytest.raises(ValueError, match="convex polygon"):
        equivalence.fold_surface(network, SQUARE[[0, 2, 1, 3]])


def test_the_picture_has_every_piece_and_every_dependency() -> None:
    from matplotlib.figure import Figure

    surface = equivalence.fold_surface(
        equivalence.identifiable_network((2, 2, 2), random_state=0), DISC
    )
    ax = plot_surface(surface, Figure().subplots())
    assert len(ax.lines) == len(surface.segments) and len(ax.texts) == len(surface.edges)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["index 1", "index 2"]
