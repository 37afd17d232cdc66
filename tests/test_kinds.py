"""Kinds of arguments, one by one: what each check takes, and what it refuses with which message."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pytest
import torch

import implicit_bias as ib
from tests.commands import home

# The checks stand behind the doors; a module with a door of its own leads to them.
KINDS: Any = inspect.getmodule(home(ib.solve_linear_svm).anything)
NAN, INF = float("nan"), float("inf")
SQUARE = np.eye(2)


class Scored(Protocol):
    """Has scores, and a method."""

    scores: list[float]

    def transform(self) -> None: ...


class Full:
    """Has all that `Scored` lists."""

    scores = (1.0,)

    def transform(self) -> None: ...


class Half:
    """Lacks what is only annotated."""

    def transform(self) -> None: ...


class Other:
    """Lacks the method."""

    scores = (1.0,)


class Colour(Enum):
    """Of another module than any of the library."""

    RED = 1


NAMES = {"Scored": Scored, "Pair": "tuple[int, str]"}


def of(annotation: str) -> Any:
    """The check that an annotation asks for."""
    return KINDS.check_of(annotation, None, NAMES)[0]


TAKEN: list[tuple[str, Any, list[Any]]] = [
    ("count", KINDS.count(2), [2, np.int64(3)]),
    ("counts", KINDS.counts(0), [(), [0, 1], np.array([3])]),
    ("signed", KINDS.signed, [-3, 0, 7, np.int8(-1)]),
    ("number", KINDS.number, [-1, 2.5, np.float32(1), np.array(2.0)]),
    ("positive", KINDS.positive, [1e-300, 3]),
    ("tolerance", KINDS.tolerance, [0, 0.0, 2.5]),
    ("extended", KINDS.extended, [INF, -INF, 0]),
    ("any_number", KINDS.any_number, [NAN, INF, -1]),
    ("between", KINDS.between(-1, 2), [-1, 0.5, 2]),
    ("fraction", KINDS.fraction, [0, 0.5, 1 - 1e-9]),
    ("one_of", KINDS.one_of(["a", "b"]), ["a", "b"]),
    ("series", KINDS.series, [[1.0, NAN], np.array([INF]), [True, False]]),
    ("on_host", KINDS.on_host, [[1.0, NAN], torch.ones(2, requires_grad=True)]),
    ("floats", KINDS.floats(), [[1.0], SQUARE > 0, SQUARE.astype(">f4"), torch.ones(2)]),
    ("measured", KINDS.measured(), [[1.0, NAN], torch.ones(2)]),
    ("numbers", KINDS.numbers(), [[1, 2], torch.ones(2, requires_grad=True)]),
    ("weights", KINDS.weights(), [[1, 2], SQUARE.astype(np.float32)]),
    ("anything", KINDS.anything, [None, object(), NAN]),
    ("function", KINDS.function, [len, lambda: None, Full().transform]),
    ("instance", KINDS.instance("Full"), [Full(), type("Sub", (Full,), {})()]),
    ("or_none", KINDS.or_none(KINDS.number), [None, 1.0]),
    ("sequence", KINDS.sequence(KINDS.number), [(), [1, 2.0], SQUARE[0], iter([1]), {1.0}]),
    ("mapping", KINDS.mapping, [{}, {"a": 1}]),
    ("arrays", KINDS.arrays, [SQUARE, [SQUARE, np.ones(3)], (SQUARE,)]),
    ("fixed", of("tuple[int, str]"), [(1, "a"), [0, ""]]),
    ("fixed, or None", of("tuple[int | None, str]"), [(None, "a"), (2, "a")]),
    ("alias", of("Pair"), [(1, "a")]),
    ("tuple of any length", of("tuple[int, ...]"), [(), (1, 2, 3)]),
    ("mapping of numbers", of("Mapping[str, float]"), [{}, {"a": 1.0}]),
    ("mapping of anything", of("dict"), [{"a": None}]),
    ("protocol", of("Scored"), [Full()]),
    ("literal", of("Literal['x', 'y']"), ["x", "y"]),
    ("either", of("float | str"), [1.0, "a"]),
    ("flag", of("bool"), [True, np.True_]),
    ("tensor", of("Tensor"), [torch.ones(2)]),
    ("device", of("torch.device"), ["cpu", torch.device("cpu")]),
    ("dtype", of("torch.dtype"), [torch.float32]),
    ("module", of("Module"), [torch.nn.Linear(1, 1)]),
]

REFUSED: list[tuple[str, Any, list[tuple[Any, type[Exception], str]]]] = [
    ("count", KINDS.count(2), [
        (1, ValueError, "`a` must be at least 2, got 1"),
        (True, TypeError, "`a` must be an integer, got True"),
        (2.0, TypeError, "`a` must be an integer, got 2.0"),
    ]),
    ("counts", KINDS.counts(0), [
        ([1, -1], ValueError, r"`a\[1\]` must be at least 0, got -1"),
        (3, TypeError, "`a` must be a sequence of integers, got 3"),
    ]),
    ("signed", KINDS.signed, [
        (-2.5, TypeError, "`a` must be an integer, got -2.5"),
        ("3", TypeError, "`a` must be an integer, got '3'"),
        (True, TypeError, "`a` must be an integer, got True"),
    ]),
    ("number", KINDS.number, [
        (NAN, ValueError, "`a` must be finite, got nan"),
        (True, TypeError, "`a` must be a number, got True"),
        (1j, TypeError, "`a` must be a number"),
    ]),
    ("positive", KINDS.positive, [(0, ValueError, "`a` must be positive and finite, got 0")]),
    ("tolerance", KINDS.tolerance, [
        (-1e-9, ValueError, "`a` must be at least 0, got -1e-09"),
        (INF, ValueError, "`a` must be finite, got inf"),
        ("0", TypeError, "`a` must be a number, got '0'"),
    ]),
    ("extended", KINDS.extended, [
        (NAN, ValueError, "`a` must be a number, got nan"),
        ("inf", TypeError, "`a` must be a number, got 'inf'"),
    ]),
    ("any_number", KINDS.any_number, [(None, TypeError, "`a` must be a number, got None")]),
    ("fraction", KINDS.fraction, [
        (1.0, ValueError, r"`a` must .*1"),
        (-0.1, ValueError, r"`a` must .*-0.1"),
        (NAN, ValueError, "`a` must be finite, got nan"),
        ("0", TypeError, "`a` must be a number, got '0'"),
    ]),
    ("between", KINDS.between(-1, 2), [
        (-1.001, ValueError, r"`a` must lie in \[-1, 2\], got -1.001"),
        (2.001, ValueError, r"`a` must lie in \[-1, 2\], got 2.001"),
        (NAN, ValueError, "`a` must be finite, got nan"),
        ("1", TypeError, "`a` must be a number, got '1'"),
    ]),
    ("one_of", KINDS.one_of(["a", "b"]), [
        ("c", ValueError, "`a` must be one of 'a', 'b', got 'c'"),
        (Colour.RED, TypeError, "`a` must be one of 'a', 'b', got <Colour.RED"),
    ]),
    ("series", KINDS.series, [
        ([1j], TypeError, "`a` must hold real numbers, got dtype complex128"),
        (["x"], TypeError, "`a` must hold numbers, got strings"),
    ]),
    ("on_host", KINDS.on_host, [([1j], TypeError, "`a` must hold real numbers, got dtype")]),
    *(
        (name, kind(), [
            ([1j], TypeError, "`a` must hold real numbers, got dtype complex128"),
            (None, TypeError, "`a` must hold real numbers, got None"),
        ])
        for name, kind in (
            ("floats", KINDS.floats), ("measured", KINDS.measured),
            ("numbers", KINDS.numbers), ("weights", KINDS.weights),
        )
    ),
    ("function", KINDS.function, [
        (3, TypeError, "`a` must be a function, got 3"),
        (Full, TypeError, "`a` must be a function, got the class Full"),
    ]),
    ("instance", KINDS.instance("Full"), [
        (Half(), TypeError, "`a` must be a Full, got "),
        (Full, TypeError, "`a` must be a Full, got the class Full"),
    ]),
    ("or_none", KINDS.or_none(KINDS.number), [("x", TypeError, "`a` must be a number, got 'x'")]),
    ("sequence", KINDS.sequence(KINDS.number), [
        ("12", TypeError, "`a` must be a sequence, got '12'"),
        (b"12", TypeError, "`a` must be a sequence, got b'12'"),
        ({1: 2}, TypeError, "`a` must be a sequence, got {1: 2}"),
        (3, TypeError, "`a` must be a sequence, got 3"),
        (list, TypeError, "`a` must be a sequence, got the class list"),
        (np.array(3.0), TypeError, "`a` must be a sequence"),
        ([1, "x"], TypeError, r"`a\[1\]` must be a number, got 'x'"),
    ]),
    ("mapping", KINDS.mapping, [([("a", 1)], TypeError, "`a` must be a mapping, got ")]),
    ("arrays", KINDS.arrays, [
        ([SQUARE, SQUARE * NAN], ValueError, r"`a\[1\]` has entries that are NaN"),
        ((SQUARE, ["x"]), TypeError, r"`a\[1\]` must hold numbers, got strings"),
        (SQUARE / 1j, TypeError, "`a` must hold real numbers, got dtype complex128"),
        (None, TypeError, "`a` must hold real numbers, got None"),
    ]),
    ("fixed", of("tuple[int, str]"), [
        ((1,), TypeError, "`a` must be a tuple of 2, got "),
        ((1, "a", 2), TypeError, "`a` must be a tuple of 2, got "),
        ("1a", TypeError, "`a` must be a tuple of 2, got '1a'"),
        ((-1, "a"), ValueError, r"`a\[0\]` must be at least 0, got -1"),
        ((1, 2), TypeError, r"`a\[1\]` must be a string, got 2"),
        ((None, "a"), TypeError, r"`a\[0\]` must be an integer, got None"),
    ]),
    ("fixed, or None", of("tuple[int | None, str]"), [
        ((0.5, "a"), TypeError, r"`a\[0\]` must be an integer, got 0.5"),
        ((1, None), TypeError, r"`a\[1\]` must be a string, got None"),
    ]),
    ("alias", of("Pair"), [((1, 2), TypeError, r"`a\[1\]` must be a string, got 2")]),
    ("tuple of any length", of("tuple[int, ...]"), [
        ((1, -2), ValueError, r"`a\[1\]` must be at least 0, got -2"),
    ]),
    ("mapping of numbers", of("Mapping[str, float]"), [
        ([1.0], TypeError, "`a` must be a mapping, got "),
        ({"k": "x"}, TypeError, r"`a\['k'\]` must be a number, got 'x'"),
        ({"j": 1.0, "k": NAN}, ValueError, r"`a\['k'\]` must be finite, got nan"),
    ]),
    ("mapping of anything", of("dict"), [(3, TypeError, "`a` must be a mapping, got 3")]),
    ("protocol", of("Scored"), [
        (Half(), TypeError, "`a` must be a Scored with transform, scores, got "),
        (Other(), TypeError, "`a` must be a Scored with transform, scores, got "),
        (Full, TypeError, "`a` must be a Scored with transform, scores, got the class Full"),
    ]),
    ("literal", of("Literal['x', 'y']"), [
        ("z", ValueError, "`a` must be one of 'x', 'y', got 'z'"),
    ]),
    ("either", of("float | str"), [
        (None, TypeError, "`a` must be a number or a string, got None"),
        (NAN, ValueError, "`a` must be finite, got nan"),
    ]),
    ("flag", of("bool"), [(1, TypeError, "`a` must be True or False, got 1")]),
    ("tensor", of("Tensor"), [
        (SQUARE, TypeError, "`a` must be a torch tensor, got an array of shape"),
        (torch.ones(1) * 1j, TypeError, "`a` must be a tensor of real numbers, got "),
    ]),
    ("device", of("torch.device"), [(0, TypeError, "`a` must be a torch device, got 0")]),
    ("dtype", of("torch.dtype"), [
        (torch.int64, TypeError, "`a` must be a floating-point dtype of torch, got torch.int64"),
        ("float32", TypeError, "`a` must be a floating-point dtype of torch, got 'float32'"),
    ]),
    ("module", of("Module"), [(len, TypeError, "`a` must be a torch.nn.Module, got ")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "value"), [(check, one) for _, check, values in TAKEN for one in values]
)
def test_what_is_right_passes(check: Any, value: Any) -> None:
    check("a", value)


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [(check, *case) for _, check, cases in REFUSED for case in cases],
)
def test_what_is_wrong_is_refused_by_name(check, value, error, message) -> None:
    with pytest.raises(error, match=f"^{message}") as caught:
        check("a", value)
    assert caught.type is error


@pytest.mark.parametrize(
    ("check", "value", "expected"),
    [
        (KINDS.floats(), torch.ones(2, requires_grad=True), np.ones(2)),
        (KINDS.floats(), [True, False], np.array([1.0, 0.0])),
        (KINDS.numbers(), torch.ones(2, dtype=torch.float32), torch.ones(2, dtype=torch.float64)),
        (KINDS.numbers(), np.arange(2, dtype=">i2"), np.arange(2.0)),
        (KINDS.weights(), np.ones(2, dtype=np.float32), np.ones(2, dtype=np.float32)),
        (KINDS.weights(), [1, 2], np.array([1.0, 2.0])),
        (KINDS.series, np.ones(2, dtype=np.float16), np.ones(2)),
        (of("NDArray[np.int64]"), torch.arange(2), np.arange(2)),
        (of("NDArray[np.float64]"), [1, 2], np.array([1.0, 2.0])),
        (of("Floats"), [1, 2], np.array([1.0, 2.0])),
        (of("Sequence[ArrayLike]"), [[1], [2.5]], [np.array([1]), np.array([2.5])]),
        (of("Sequence[float]"), torch.ones(2), [1.0, 1.0]),
        (of("Mapping[str, Floats]"), {"a": [1]}, {"a": np.array([1.0])}),
        (of("Gates"), [[0, 1], [1, 0]], np.array([[0, 1], [1, 0]])),
        (of("Gates"), [[[0, 1]], [[1]]], [np.array([[0, 1]]), np.array([[1]])]),
    ],
)
def test_what_a_function_is_given_is_what_it_wants(check, value, expected) -> None:
    def kinds(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: kinds(own) for key, own in one.items()}
        return (
            [*map(kinds, one)] if isinstance(one, list) else (type(one), getattr(one, "dtype", 0))
        )

    made = check("a", value)
    assert kinds(made) == kinds(expected)
    assert str(made) == str(expected)


def test_what_is_an_array_of_the_kind_that_is_wanted_is_handed_on_itself() -> None:
    for check in (KINDS.floats(), KINDS.numbers(), KINDS.weights(), of("Floats"), of("ArrayLike")):
        assert check("a", SQUARE) is SQUARE


def test_every_kind_is_in_both_tables() -> None:
    helpers = {
        "RESULTS", "ArrayKind", "Check", "axes_of", "check_of", "is_a", "named_error",
        "require_sizes", "that", "threads", "whole_number",
    }  # fmt: skip
    public = {name for name in vars(KINDS) if not name.startswith("_")}
    kinds = {
        name for name in public if getattr(vars(KINDS)[name], "__module__", "") == KINDS.__name__
    } - helpers
    assert kinds <= {name for name, *_ in TAKEN}
    assert kinds - {"anything"} <= {name for name, *_ in REFUSED}


@pytest.mark.parametrize(
    ("annotation", "optional"),
    [("int", False), ("int | None", True), (int, False), ("Optional[int]", True), ("None", True)],
)
def test_an_annotation_says_whether_none_will_do(annotation, optional) -> None:
    assert KINDS.check_of(annotation)[1] is optional


def test_numbers_of_results_have_kinds_of_their_own() -> None:
    for annotation, value in (("int", -1), ("float", NAN), ("Array", np.array([NAN]))):
        KINDS.check_of(annotation, KINDS.RESULTS)[0]("a", value)
        with pytest.raises(ValueError, match=r"^`a` "):
            KINDS.check_of(annotation)[0]("a", value)
    with pytest.raises(TypeError, match=r"`a` must be an integer, got 0\.5"):
        KINDS.check_of("int", KINDS.RESULTS)[0]("a", 0.5)
