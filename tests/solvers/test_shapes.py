"""Shapes in letters: what fits, what is refused, and in which words."""

from __future__ import annotations

import pytest

from solvers.numerics.shapes import Axes

FITTING = [
    ("n D", (3, 2), {}, {"n": 3, "D": 2}),
    ("n", (3,), {"n": 3}, {"n": 3}),
    ("n 2", (5, 2), {}, {"n": 5}),
    ("m>=0 D", (0, 4), {"D": 4}, {"m": 0, "D": 4}),
    ("K>=2 D", (2, 1), {}, {"K": 2, "D": 1}),
    ("n n", (4, 4), {}, {"n": 4}),
    ("D | K>=2 D", (3,), {}, {"D": 3}),
    ("D | K>=2 D", (2, 3), {"D": 3}, {"D": 3, "K": 2}),
    ("n ...", (2,), {}, {"n": 2}),
    ("n ...", (2, 5, 5), {}, {"n": 2}),
    ("n _D", (2, 7), {"D": 3}, {"D": 3, "n": 2}),
    ("", (), {}, {}),
    ("=a", (4, 2), {"=a": (4, 2)}, {"=a": (4, 2)}),
    ("n .n_units", (4, 2), {".n_units": 2}, {".n_units": 2, "n": 4}),
]
REFUSED = [
    ("n D", (3,), {}, "(n, D) with n, D >= 1, got (3,)"),
    ("n D", (0, 2), {}, "(n, D) with n, D >= 1, got (0, 2)"),
    ("n J: one row of gates per row of X", (2, 4), {"n": 3},
     "(3, J) with J >= 1, got (2, 4): one row of gates per row of X"),
    ("n: one label per row of X", (49,), {"n": 50}, "(50,), got (49,): one label per row of X"),
    ("n n", (4, 3), {}, "(n, n) with n >= 1, got (4, 3)"),
    ("m>=0 D", (0, 3), {"D": 4}, "(m, 4), got (0, 3)"),
    ("D | K>=2 D", (1, 3), {"D": 3}, "(3,), or (K, 3) with K >= 2, got (1, 3)"),
    ("n ...", (), {}, "(n, ...) with n >= 1, got ()"),
    ("n _D", (2, 0), {"n": 2}, "(2, D) with D >= 1, got (2, 0)"),
    ("=a: as `a` has", (4,), {"=a": (4, 2)}, "(4, 2), got (4,): as `a` has"),
    ("n +widths", (4, 2), {"+widths": 5}, "(n, 5) with n >= 1, got (4, 2)"),
    ("n 2", (5, 3), {"n": 5}, "(5, 2), got (5, 3)"),
    ("n K>=2", (0, 1), {}, "(n, K) with n >= 1 and K >= 2, got (0, 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shape", "before", "after"), FITTING)
def test_letters_of_a_shape_that_fits_are_known_from_then_on(text, shape, before, after) -> None:
    sizes = dict(before)
    Axes(text).fit("a", shape, sizes)
    assert sizes == after


@pytest.mark.parametrize(("text", "shape", "before", "message"), REFUSED)
def test_another_shape_is_refused_in_words_and_makes_nothing_known(
    text, shape, before, message
) -> None:
    sizes = dict(before)
    with pytest.raises(ValueError) as caught:
        Axes(text).fit("a", shape, sizes)
    assert str(caught.value) == f"`a` must have shape {message}"
    assert sizes == before


def test_of_several_arrays_the_first_that_does_not_fit_is_named() -> None:
    sizes: dict[str, int] = {}
    Axes("n D").fit("X", (3, 2), sizes)
    with pytest.raises(ValueError, match=r"`y` must have shape \(3,\), got \(2,\): one a row"):
        Axes("n: one a row").fit("y", (2,), sizes)
