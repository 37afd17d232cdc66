"""Declared quantities: what a class of them says of itself, and how far its values are off."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

from implicit_bias.quantities import (
    TABLE,
    Measured,
    Quantity,
    by_name,
    derived,
    distance_from_ideal,
    lines,
    part,
    quantity,
    side_by_side,
    spread,
    stacked,
)


class Inner(Measured, eq=True):
    """A part."""

    share: float = quantity("share of a part", ".1%", ideal=1.0)


class Outer(Measured):
    """A whole.

    Notes
    -----
    Of two parts.
    """

    margin_ratio: float = quantity()
    own_gap: float = quantity(column="gap", doc="Its own gap.")

    @derived("twice", "g", recorded=True)
    def doubled(self) -> float:
        """Twice the ratio."""
        return 2 * self.margin_ratio

    weights: np.ndarray = part("(n,) weights.", recorded=False)
    cosines: np.ndarray = quantity("cosines", spread, ideal=1.0)
    largest_dual_norm: float | None = quantity(default=None)
    inner: Inner = part("A part.", default=Inner(0.25))

    @derived()
    def n_dead(self) -> int:
        """As many as weights."""
        return len(self.weights)


@pytest.fixture
def outer() -> Outer:
    return Outer(0.9, math.nan, weights=np.zeros(3), cosines=np.array([1.0, 0.5]))


def test_record_table_and_row_are_read_from_the_declarations(outer) -> None:
    assert outer.to_dict() == {
        "margin_ratio": 0.9,
        "own_gap": pytest.approx(math.nan, nan_ok=True),
        "doubled": 1.8,
        "cosines": [1.0, 0.5],
        "largest_dual_norm": None,
        "inner": {"share": 0.25},
    }
    json.dumps(outer.to_dict())
    # None has no line, NaN a dash.
    assert outer.rows() == [
        ("margin ratio (ideal 1)", "0.9000"),
        ("  duality gap (ideal 0)", "-"),
        ("twice", "1.8"),
        ("cosines (ideal 1)", "0.7500 (0.5000 to 1.0000)"),
        ("dead units of the network", "3"),
    ]
    assert outer.cells() == {
        "margin_ratio": 0.9,
        "gap": pytest.approx(math.nan, nan_ok=True),
        "largest_dual_norm": None,
        "n_dead": 3,
    }
    assert str(outer).splitlines()[0].split("  ")[0] == "margin ratio (ideal 1)"
    assert "margin ratio (ideal 1)" in outer._repr_html_()


def test_a_class_is_a_frozen_dataclass_with_its_attributes_in_its_docstring(outer) -> None:
    assert dataclasses.replace(outer, margin_ratio=0.5).doubled == 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        outer.margin_ratio = 1.0
    assert pickle.loads(pickle.dumps(Inner(0.5))) == Inner(0.5) != Inner(0.25)
    text = Outer.__doc__
    assert text.startswith(
        "A whole.\n\nAttributes\n----------\nmargin_ratio : float\n    Margin of"
    )
    assert "own_gap : float\n    Its own gap.\n" in text
    assert text.endswith("    A part.\n\nNotes\n-----\nOf two parts.")


def test_a_field_must_be_declared() -> None:
    with pytest.raises(TypeError, match="`no_such` is not declared"):

        class Unknown(Measured):
            no_such: float = quantity()

    with pytest.raises(TypeError, match="Bare: loose not declared"):

        class Bare(Measured):
            loose: float

    with pytest.raises(ValueError, match="one declared twice"):
        by_name((Quantity("one", "a"), Quantity("one", "b")))


def test_results_stand_side_by_side_or_one_below_the_other(outer) -> None:
    two = {"first": outer, "second": None}
    assert side_by_side(list(two.values()), "doubled", "largest_dual_norm") == [
        ("twice", "1.8", "-"),
        ("largest dual norm of a unit (at most 1)", "-", "-"),
    ]
    columns, rows = stacked(two, "margin_ratio", "doubled")
    assert columns == ("", "margin ratio (ideal 1)", "twice")
    assert rows == [("first", "0.9000", "1.8"), ("second", "-", "-")]


@pytest.mark.parametrize(
    ("quantity", "value", "far"),
    [
        (Quantity("q", "q", ideal=1.0), 0.75, 0.25),
        (Quantity("q", "q", ideal=1.0), np.array([1.0, np.nan, 1.5]), 0.5),
        (Quantity("q", "q", at_most=1.0), 0.5, 0.0),
        (Quantity("q", "q", at_most=1.0), 1.5, 0.5),
        (Quantity("q", "q", ideal=0.0), math.inf, math.inf),
        (Quantity("q", "q", ideal=0.0), math.nan, math.nan),
        (Quantity("q", "q", at_most=0.0), math.nan, math.nan),
        (Quantity("q", "q", ideal=0.0), None, math.nan),
        (Quantity("q", "q"), 3.0, math.nan),
    ],
)
def test_the_distance_from_the_ideal_value(quantity, value, far) -> None:
    assert distance_from_ideal(quantity, value) == pytest.approx(far, nan_ok=True)


def test_what_is_furthest_from_its_ideal_comes_first(outer) -> None:
    assert list(outer.distances_from_ideal().items()) == [
        ("cosines", 0.5),
        ("margin_ratio", pytest.approx(0.1)),
    ]


def test_cells_of_a_row_have_lines_by_the_table() -> None:
    found = lines(
        {"gap": 1e-9, "agreement": 0.5, "n_support": None}, "agreement", "n_support", "gap"
    )
    assert found == [("agreement on held-out labels (ideal 100%)", "50.00%"),
                     ("  duality gap (ideal 0)", "1.00e-09")]  # fmt: skip
    assert TABLE["gap"].sentence.endswith("no farther from the optimum.")
    assert Quantity("q", "  part of it", ideal=0.0).sentence == "Part of it (ideal 0)."
