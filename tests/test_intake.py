"""Arrays of public doors in all that users keep numbers in: one answer, or one message.

Booleans, other byte orders, half precision, lists, data frames and tensors are made what a function
wants, so that its answer is that of the same numbers in NumPy's float64. Dates, complex numbers,
strings, ragged lists and, where they are not taken, sparse matrices are refused by name.
"""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array

import implicit_bias as ib
from tests.walk import (
    ARRAYS,
    CLASSES,
    Argument,
    Call,
    Door,
    arguments_of,
    called,
    declared,
    in_words_of_scikit_learn,
    names,
    time_limit,
)

try:
    import polars
except ImportError:  # of the frames, the one that the tests do not ask for
    polars = None

SECONDS = 20.0  # that a call may take
LONG = 0.005  # seconds of a call from which on few others like it are made


def tensor(dtype: torch.dtype) -> Callable[[Any], Any]:
    return lambda a: torch.tensor(a, dtype=dtype, requires_grad=dtype.is_floating_point)


def framed(a: Any) -> Any:
    return {1: pd.Series, 2: pd.DataFrame}[a.ndim](a)


def framed_by_polars(a: Any) -> Any:
    return {1: polars.Series, 2: polars.DataFrame}[a.ndim](a)


# What the numbers of an array are kept in; None where they cannot be.
KEPT: dict[str, Callable[[Any], Any]] = {
    ">f8": lambda a: a.astype(">f8") if a.dtype.kind == "f" else a.astype(">i4"),
    "bool": lambda a: a != 0,
    "list": lambda a: a.tolist(),
    "float16": lambda a: a.astype(np.float16) if a.dtype.kind == "f" else None,
    "float32": lambda a: a.astype(np.float32) if a.dtype.kind == "f" else None,
    "longdouble": lambda a: a.astype(np.longdouble) if a.dtype.kind == "f" else None,
    "pandas": lambda a: framed(a) if a.ndim in (1, 2) else None,
    "polars": lambda a: framed_by_polars(a) if polars and a.ndim in (1, 2) else None,
    "tensor32": lambda a: tensor(torch.float32 if a.dtype.kind == "f" else torch.int32)(a),
    "tensor64": lambda a: tensor(torch.float64 if a.dtype.kind == "f" else torch.int64)(a),
}
WRONG: dict[str, Callable[[Any], Any]] = {
    "dates": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    "complex": lambda a: a + 0j,
    "words": lambda a: np.full(a.shape, "a", dtype=object),
    "strings": lambda a: a.astype(str),
    "ragged": lambda a: [[1.0], [1.0, 2.0]],
    "sparse": lambda a: csr_array(a.astype(np.float64)) if a.ndim == 2 else None,
}
# Doors that take sparse inputs.
SPARSE = {
    "measures.compare_classifier",
    "limits.solve_limit",
    "limits.solve_path",
    "programs.Formulation.literal",
    "programs.HardMarginSVM.program",
    "solve_kernel_svm",
    "solve_linear_svm",
}


def arrays_at(doors: list[Door], calls: Mapping[str, Call]) -> list[tuple[Door, Call, Argument]]:
    """The arguments of doors that are arrays, or sequences of arrays."""
    return [
        (door, calls[door.name], argument)
        for door in doors
        if door.name in calls
        for argument in arguments_of(door, calls[door.name])
        if arrays_in(argument)
    ]


def arrays_in(argument: Argument) -> list[Any]:
    """The array of an argument, or the arrays of a sequence of them; none of any other."""
    value = argument.value
    if is_sequence(argument):
        return [np.asarray(one) for one in value]
    if not argument.words & ARRAYS and not isinstance(value, np.ndarray):
        return []
    if value is None or isinstance(value, torch.Tensor) or np.size(value) == 0:
        return []
    array = np.asarray(value)
    return [array] if array.dtype.kind in "biuf" and np.isfinite(array).all() else []


def is_sequence(argument: Argument) -> bool:
    """True of a sequence of arrays."""
    several = isinstance(argument.value, list | tuple) and bool(argument.value)
    return several and all(isinstance(one, np.ndarray) and one.ndim for one in argument.value)


def faults_of_array(door: Door, call: Call, argument: Argument) -> list[str]:
    """What is wrong at one argument of a door."""
    arrays, answers, found, call = arrays_in(argument), {}, [], briefly(call)

    def given(keep: Callable[[Any], Any]) -> Any:
        made = [keep(array) for array in arrays]
        return made if is_sequence(argument) or any(one is None for one in made) else made[0]

    def outcome(value: Any) -> Any:
        try:
            with time_limit(SECONDS):
                return called(door, call, argument, value)
        except Exception as error:
            return error

    kept, begun = dict(KEPT), time.perf_counter()
    numbers = given(lambda array: in_numpy(array, array))
    answers[repr(numbers)] = outcome(numbers)
    if time.perf_counter() - begun > LONG:
        kept = {how: kept[how] for how in (">f8", "bool", "tensor32")}
    for how, keep in kept.items():
        value = given(keep)
        if isinstance(value, list) and any(one is None for one in value):
            continue
        numbers = given(lambda array, keep=keep: in_numpy(keep(array), array))
        key = repr(numbers)
        if key not in answers:
            answers[key] = outcome(numbers)
        answer = outcome(value)
        if is_right(answer, answers[key], how, argument):
            continue
        found.append(f"{door.name}({argument.name} as {how}): {said(answer)}")
    for what, spoil in WRONG.items():
        value = given(spoil)
        if isinstance(value, list) and any(one is None for one in value):
            continue
        if what == "sparse" and door.name in SPARSE:
            continue
        if argument.name in CLASSES.get(door.name, ()):
            continue
        error = outcome(value)
        known = isinstance(error, Exception) and declared(error)
        if not known or not (
            names(str(error), own_names(argument)) or in_words_of_scikit_learn(door, error)
        ):
            found.append(f"{door.name}({argument.name} with {what}): {said(error)}")
    return found


def briefly(call: Call) -> Call:
    """The same call, of few steps where it trains."""
    if "n_steps" in call.arguments:
        call = call._replace(arguments=call.arguments | {"n_steps": 3})
    settings = call.arguments.get("settings")
    if not isinstance(settings, ib.TrainingSettings):
        return call
    _, rate = settings.schedule[0]
    short = dataclasses.replace(settings, schedule=((3, rate),))
    return call._replace(arguments=call.arguments | {"settings": short})


def own_names(argument: Argument) -> list[str]:
    # What a limit's own predictor calls its inputs.
    return [argument.name, *{"inputs": ("k_cross",)}.get(argument.name, ())]


def in_numpy(value: Any, array: Any) -> Any:
    """The same numbers in float64, or in int64 where they are whole by nature."""
    value = value.detach() if isinstance(value, torch.Tensor) else value
    return np.asarray(value).astype(np.float64 if array.dtype.kind == "f" else np.int64)


def is_right(answer: Any, expected: Any, how: str, argument: Argument) -> bool:
    """True for the answer of the same numbers in NumPy, and for an error where that has one."""
    if isinstance(expected, Exception):
        return isinstance(answer, Exception) and declared(answer)
    if isinstance(answer, Exception):  # of whole numbers and classes no booleans are taken
        return how == "bool" and declared(answer) and names(str(answer), own_names(argument))
    return alike(answer, expected)


def alike(a: Any, b: Any) -> bool:
    """True for the same numbers, up to those of single precision, in the same places."""
    if isinstance(a, torch.nn.Module):
        a, b = a.state_dict(), b.state_dict()
    if isinstance(a, np.ndarray | torch.Tensor | float | np.generic):
        first, second = (getattr(one, "detach", lambda own=one: own)() for one in (a, b))
        return bool(np.allclose(first, second, rtol=1e-3, atol=1e-4, equal_nan=True))
    if dataclasses.is_dataclass(a):
        kept = [one.name for one in dataclasses.fields(a) if one.name not in NOT_THE_SAME]
        return all(alike(getattr(a, name), getattr(b, name)) for name in kept)
    if isinstance(a, Mapping):
        same = [key for key in a if not any(word in str(key) for word in NOT_THE_SAME)]
        return set(a) == set(b) and all(alike(a[key], b[key]) for key in same)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    return type(a) is type(b)


# Fields that say how long something took, and how it was found.
NOT_THE_SAME = ("seconds", "iterations", "steps", "certificate", "message", "network")


def said(value: Any) -> str:
    text = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else "another answer"
    return " ".join(text.split())[:160]


# The table itself sees what it is made to see.


def takes_numpy_alone(X: np.ndarray) -> Any:
    return X.sum(axis=0)


def reads_single_precision_as_something_else(X: np.ndarray) -> Any:
    return float(X.dtype.itemsize)


def test_the_table_sees_raw_errors_and_other_answers() -> None:
    argument = Argument("X", frozenset({"ArrayLike"}), np.eye(2))
    for function, seen in (
        (takes_numpy_alone, "X as list): AttributeError"),
        (reads_single_precision_as_something_else, "X as float32): another answer"),
    ):
        door = Door("f", function, None)  # type: ignore[arg-type]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.walk._target", lambda *_, own=function: own)
            found = faults_of_array(door, Call(None, {"X": np.eye(2)}), argument)
        assert any(seen in one for one in found), found
        assert any("X with dates" in one for one in found)
    assert inspect.signature(ib.solve_linear_svm).parameters["X"].name == "X"
