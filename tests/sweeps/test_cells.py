"""Cells: each run once, known by what it follows from, refused before any work."""

from __future__ import annotations

import numpy as np
import pytest

import implicit_bias as ib
from tests.commands import python

SMALL = {"n_train": 12, "steps": 0}


@pytest.fixture
def digests(tmp_path):
    """The digests of the cells of a sweep."""

    def run(model, grid, **fixed):
        return ib.sweep(model, grid, out=tmp_path / "runs", **SMALL | fixed).cells

    return run


def test_a_digest_is_the_same_in_another_process_and_however_its_choices_are_written(
    tmp_path, digests
) -> None:
    program = (
        "import implicit_bias as ib\n"
        "choices = {'steps': (0,), 'n_train': 12, 'tol': 1e-8, 'init': 'orthogonal'}\n"
        "grid = {'seed': '0:2', 'hidden_units': [2]}\n"
        f"print(*ib.sweep('gln', grid, out={str(tmp_path / 'there')!r}, **choices).cells)"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr
    here = digests("gln", {"hidden_units": np.array([2]), "seed": range(2)})
    assert done.stdout.split() == list(here)
    assert len(set(here)) == 2


def test_a_digest_is_of_the_data_and_not_of_the_folder_that_they_lie_in(tmp_path, digests) -> None:
    from tests.commands import write_mnist

    places = [tmp_path / name for name in ("here", "there", "other")]
    for place in places:
        place.mkdir()
        write_mnist(place, n=130 if place.name != "other" else 140)
    here, there, other = (
        digests("linear", {}, data="mnist", data_dir=str(place)) for place in places
    )
    assert here == there != other


def test_a_digest_changes_with_the_last_bit_of_data_of_ones_own(digests) -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.resize([1.0, -1.0], 20)
    close = X.copy()
    close[0, 0] = np.nextafter(close[0, 0], np.inf)
    own = [digests("linear", {}, X=one, y=y) for one in (X, close)]
    assert own[0] != own[1]


def test_choices_that_come_to_the_same_run_are_one_cell(tmp_path) -> None:
    grid = {"seed": [0, 1, 0], "steps": [0, (0,)]}
    done = ib.sweep("linear", grid, out=tmp_path, n_train=12)
    assert done.frame()["seed"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("grid", "fixed", "message"),
    [
        ({"seeds": [1]}, {}, "No such option: `seeds`: did you mean `seed`"),
        ({"hidden_units": [1, "many"]}, {}, "`hidden_units`: 'many' is not a whole number"),
        ({"seed": "0:x"}, {}, "`seed`: '0:x' is no range"),
        ({"seed": []}, {}, "`seed`: there is no value"),
        ({"seed": [1]}, {"seed": 2}, "`seed` is in the grid and fixed"),
        ({"depth": [2]}, {}, "`depth` is not for the model gln"),
        ({"X": [1]}, {}, "`X` is not swept"),
        ({"solver": ["interior-point", "simplex"]}, {}, "`solver` must be one of .*got 'simplex'"),
        ({"n_train": [12, 5000]}, {"n_train": None}, "must be at most 1797"),
        ({"contexts": [2, 3]}, {}, "power of two"),
        ({"device": ["cpu", "cuda:99"]}, {}, "cuda:99"),
        ({"learning_rate": ["auto", 0.1]}, {"steps": 5}, "must be None"),
    ],
)
def test_one_wrong_value_anywhere_in_the_grid_is_refused(grid, fixed, message, tmp_path) -> None:
    given = {name: value for name, value in (SMALL | fixed).items() if value is not None}
    with pytest.raises((TypeError, ValueError), match=message):
        ib.sweep("gln", grid, out=tmp_path / "runs", **given)
    assert not (tmp_path / "runs").exists()
