"""The codes of six classes: closed forms, the rows that are committed, and one network."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.depth_codes import N_CLASSES, codes, cost, row
from tests.experiments.test_tables_of_pages import assert_has, rows

# (number and size of equal singular values) of each code at least margin 1.
VALUES = {
    "simplex": (5, 1.0),
    "octahedron": (3, 2.0),
    "hexagon": (2, 3 / (1 - np.cos(np.pi / 3))),
}


@pytest.mark.parametrize("name", VALUES)
def test_codes_have_margin_one_and_the_costs_of_their_singular_values(name: str) -> None:
    scores = codes()[name]
    margins = np.diag(scores)[:, None] - scores
    assert margins[~np.eye(N_CLASSES, dtype=bool)].min() == pytest.approx(1)
    number, value = VALUES[name]
    for depth in (1, 2, 4):
        found = cost(np.linalg.svd(scores, compute_uv=False), depth)
        # Values of 0 are known to rounding, of which a root is taken.
        assert found == pytest.approx(number ** (depth / 2) * value, rel=1e-5)


def test_rows_and_page_say_the_same_and_nothing_is_below_what_is_proved() -> None:
    frame = rows("depth_codes")
    for depth, here in frame.groupby("depth"):
        if depth <= 2:  # the simplex solves the convex programs
            assert (here.cost >= here.simplex * (1 - 1e-6)).all()
        # Of any depth the nuclear norm, K - 1 at least, bounds the cost.
        assert (here.cost >= (N_CLASSES - 1) * (1 - 1e-6)).all() or depth == 1
        order = [*VALUES, "other"]
        ends = here.code.value_counts()
        ends = ", ".join(f"{name} {ends[name]}" for name in order if name in ends)
        line = [str(depth), *(f"{here[name].iloc[0]:.4g}" for name in VALUES), ends]
        assert_has("classes.md", line)


def test_three_layers_leave_the_simplex_for_the_octahedron() -> None:
    found = row(3, 0)
    assert found["code"] == "octahedron" and found["rank"] == 3
    assert found["cost"] == pytest.approx(found["octahedron"], rel=1e-3)
    assert found["cost"] < found["simplex"]
