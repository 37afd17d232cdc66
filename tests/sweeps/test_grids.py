"""Grids: products, pairs, draws and functions come to the cells that they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import implicit_bias as ib

SMALL = {"n_train": 12, "steps": 0}
drawn, product, zipped = ib.sweeps.drawn, ib.sweeps.product, ib.sweeps.zipped


@pytest.fixture
def choices(tmp_path):
    """The options of the cells of a sweep, a tuple each."""

    def swept(grid, names, model="gln", **fixed):
        frame = ib.sweep(model, grid, out=tmp_path / "runs", **SMALL | fixed).frame()
        return list(frame[list(names)].itertuples(index=False, name=None))

    return swept


def test_products_and_pairs_and_their_products(choices) -> None:
    pairs = zipped({"hidden_units": [1, 2, 3], "contexts": [2, 4, 2]})
    found = choices(pairs * {"seed": "0:2"}, ("hidden_units", "contexts", "seed"))
    assert found == [(*pair, seed) for pair in ((1, 2), (2, 4), (3, 2)) for seed in (0, 1)]
    found = choices({"seed": "0:2"} * pairs, ("seed", "hidden_units", "contexts"))
    assert found == [(seed, *pair) for seed in (0, 1) for pair in ((1, 2), (2, 4), (3, 2))]
    two = {"hidden_units": [1, 2], "seed": [5, 7]}
    assert choices(product(two), two) == list(itertools.product(*two.values()))


def test_a_function_of_the_cell_knows_what_it_chooses_and_what_all_share(choices) -> None:
    grid = {"hidden_units": [1, 2], "n_val": lambda cell: cell["n_train"] + cell["hidden_units"]}
    assert choices(grid, ("hidden_units", "n_val")) == [(1, 13), (2, 14)]
    pairs = zipped({"hidden_units": [1, 2], "seed": lambda cell: 10 * cell["hidden_units"]})
    assert choices(pairs, ("hidden_units", "seed")) == [(1, 10), (2, 20)]
    draws = drawn({"hidden_units": [3], "seed": lambda cell: cell["hidden_units"]}, count=2)
    assert choices(draws, ("hidden_units", "seed")) == [(3, 3)]


def test_draws_are_of_their_distributions_and_each_by_itself(choices) -> None:
    ranges = {"init_scale": stats.uniform(2.0, 1.0), "hidden_units": stats.randint(1, 5)}
    found = choices(drawn(ranges, count=12), ranges)
    assert len(set(found)) == 12 and {units for _, units in found} <= {1, 2, 3, 4}
    assert all(2 <= scale <= 3 for scale, _ in found)
    again = choices(drawn({"hidden_units": range(1, 5), **ranges}, count=12), ranges)
    assert again == found
    alone = choices(drawn({"init_scale": ranges["init_scale"]}, count=12), ["init_scale"])
    assert [scale for (scale,) in alone] == [scale for scale, _ in found]
    other = choices(drawn(ranges, count=12, random_state=1), ranges)
    assert not set(other) & set(found)


def test_draws_from_a_list_have_every_entry(choices) -> None:
    grid = drawn({"hidden_units": "1:4"}, count=30) * {"seed": [0]}
    assert {units for (units,) in choices(grid, ["hidden_units"])} == {1, 2, 3}


def test_a_distribution_of_ones_own_has_rvs_alone(choices) -> None:
    class Always:
        def rvs(self, size, random_state):
            assert isinstance(random_state, np.random.Generator)
            return np.full(size, 3)

    assert choices(drawn({"hidden_units": Always()}, count=5), ["hidden_units"]) == [(3,)]


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        (lambda: zipped({"seed": [1, 2], "hidden_units": [1]}), ValueError,
         "as many values each, got `seed` 2, `hidden_units` 1"),
        (lambda: zipped({"seed": [1]}) * {"seed": [2]}, ValueError, "`seed` is in the grid twice"),
        (lambda: {"init_scale": stats.norm()}, TypeError, "`init_scale`: a distribution"),
        (lambda: drawn({"seed": [1]}, count=0), ValueError, "`count` must be .*1.*got 0"),
        (lambda: drawn({"seed": [1]}, count=2.0), TypeError, "`count`"),
        (lambda: drawn({"seed": [1]}, count=2, random_state=-1), ValueError, "`random_state`"),
        (lambda: drawn({"hidden_units": stats.uniform()}, count=2), TypeError, "`hidden_units`"),
        (lambda: {"seed": lambda cell: "many"}, TypeError, "`seed`: 'many' is not a whole number"),
        (lambda: [{"seed": 1}], TypeError, "`grid` must be a Grid or a Mapping"),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_be_is_refused(tmp_path, grid, error, message) -> None:
    with pytest.raises(error, match=message):
        ib.sweep("gln", grid(), out=tmp_path / "runs", **SMALL)
    assert not (tmp_path / "runs").exists()
