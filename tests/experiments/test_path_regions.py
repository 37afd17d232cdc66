"""Regions of paths: the two of the source's first figure."""

from __future__ import annotations

import numpy as np

from experiments import path_regions


def test_the_region_jumps_when_eps_changes_its_sign() -> None:
    X = path_regions.grid()
    right, first = X[:, 0] > 0, (X > 0).all(axis=1)
    for eps in (1e-12, 0.3, 7.0):
        np.testing.assert_array_equal(path_regions.is_open(path_regions.jumping(eps), X), right)
        np.testing.assert_array_equal(path_regions.is_open(path_regions.jumping(-eps), X), first)
    rows = {row["eps"]: row for row in path_regions.rows()}
    assert rows[1e-9]["square"] == 0.5 and rows[-1e-9]["square"] == 0.25


def test_the_other_region_has_two_pieces() -> None:
    x = np.linspace(-1, 5, 601) + 1e-4
    opened = path_regions.is_open(path_regions.TWO_PIECES, np.column_stack([x, np.ones_like(x)]))
    expected = ((x >= 0.5) & (x <= 1.5)) | ((x >= 2.5) & (x <= 3.5))
    np.testing.assert_array_equal(opened, expected)
