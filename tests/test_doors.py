"""Every public door refuses wrong arguments by a message that names them, before any long work."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from implicit_bias._doors import door, parameters, result
from implicit_bias._kinds import count
from tests.test_examples import exported
from tests.walk import Argument, Call, Door, doors_of, fault, faults_of, words, wrong_values


@pytest.mark.parametrize("path", [path for path in exported() if doors_of(path)])
def test_wrong_arguments_are_refused_by_name(path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, without_a_call, _ = faults_of(path)
    assert wrong == []
    assert without_a_call == [], "let its example call it, or add a call to `CALLS`"


# The walk itself sees what it is made to see.


def accepts_all(n: int) -> int:
    return 1


def fails_in_the_depth(n: int) -> Any:
    return n.no_such_attribute  # type: ignore[attr-defined]


def names_nothing(n: int) -> None:
    raise ValueError("this is wrong")


def does_not_end(n: int) -> None:
    while n != 1:
        pass


def is_right(n: int) -> None:
    raise TypeError("`n` must be an integer")


@pytest.mark.parametrize(
    ("function", "seen"),
    [
        (accepts_all, "accepted"),
        (fails_in_the_depth, "AttributeError"),
        (names_nothing, "nameless"),
        (does_not_end, "does not end"),
        (is_right, None),
    ],
)
def test_the_walk_tells_refusals_from_faults(function, seen, monkeypatch) -> None:
    monkeypatch.setattr("tests.walk.SECONDS", 0.2)
    monkeypatch.setattr("tests.walk._target", lambda *_: function)
    argument = Argument("n", words("int"), 1)
    found = fault(Door("f", function, None), Call(None, {"n": 1}), argument, "x")
    assert found is None if seen is None else found is not None and seen in found


def test_wrong_values_follow_from_the_annotation() -> None:
    of_counts = wrong_values(Argument("n", words("int"), 3))
    assert {"nonsense", 2.5, -1, True} <= {one for one in of_counts if one.__hash__}
    assert None in of_counts
    assert None not in wrong_values(Argument("n", words("int | None"), 3))
    arrays = wrong_values(Argument("X", words("Array"), np.ones((2, 3))))
    spoiled = [one for one in arrays if isinstance(one, np.ndarray)]
    assert any(np.isnan(one).any() for one in spoiled)
    assert any(np.iscomplexobj(one) for one in spoiled)
    assert {one.shape for one in spoiled} >= {(0, 3), (1, 1, 2, 3)}


# What decorators check


@door(n=count(1))
def draw(n: int, rate: float = 0.5, *names: str, seed: int | None = None) -> int:
    """Draw."""
    return n


def test_a_door_checks_by_place_and_by_name_and_leaves_the_rest_alone() -> None:
    assert draw(2, 0.1, "a", "b", seed=None) == 2
    assert inspect.signature(draw).parameters.keys() == {"n", "rate", "names", "seed"}
    for arguments, keywords, message in [
        ((0,), {}, "`n` must be at least 1"),
        ((), {"n": 2.0}, "`n` must be an integer"),
        ((True,), {}, "`n` must be an integer"),
        ((1, None), {}, "`rate` must be a number"),
        ((1, np.nan), {}, "`rate` must be finite"),
        ((1, 0.5, "a", 3), {}, "`names` must be a string"),
        ((1,), {"seed": -1}, "`seed` must be at least 0"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            draw(*arguments, **keywords)
    with pytest.raises(TypeError, match="unexpected keyword argument 'count'"):
        draw(1, count=2)
    with pytest.raises(LookupError, match="has no argument m"):
        door(m=count(1))(lambda n: n)(1)


def test_fields_of_choices_are_finite_and_those_of_results_may_be_anything() -> None:
    class Made:
        def __init__(self, value: float) -> None:
            self.value = value

    assert np.isnan(result()(type("Found", (Made,), {}))(np.nan).value)
    with pytest.raises(ValueError, match="`value` must be finite"):
        parameters()(type("Chosen", (Made,), {}))(np.nan)
    with pytest.raises(TypeError, match="`value` must be a number"):
        result()(type("Found", (Made,), {}))("x")
