"""Every public door, in one walk: examples say what comes out, wrong arguments are refused by name.

Arrays may come in all that users keep numbers in: `test_intake` has what that is. The examples of a
name give the calls that are varied, so that they run once for all three.
"""

from __future__ import annotations

import inspect
import io
import warnings
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import implicit_bias as ib
from tests.test_examples import exported, is_ours
from tests.test_intake import arrays_at, faults_of_array
from tests.walk import (
    Argument,
    Call,
    Door,
    calls_in_examples,
    doors_of,
    fault,
    faults_of,
    words,
    wrong_values,
)


@pytest.mark.parametrize("path", [one for one in exported() if is_ours(one) or doors_of(one)])
def test_examples_do_what_they_say_and_wrong_arguments_are_refused_by_name(
    path, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    doors, report = doors_of(path), []
    with redirect_stdout(io.StringIO()):
        calls = calls_in_examples(path, doors, report)
    # Names of the solvers have examples that run by themselves.
    assert not report or not is_ours(path), "\n".join(report)
    wrong, without_a_call, _ = faults_of(doors, calls)
    assert wrong == []
    assert without_a_call == [], "let its example call it, or add a call to `CALLS`"
    misread = [fault for at in arrays_at(doors, calls) for fault in faults_of_array(*at)]
    assert misread == []


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


# What is checked, and what is left alone


def test_a_door_checks_by_place_and_by_name_and_shows_its_own_signature() -> None:
    assert [*inspect.signature(ib.datasets.make_circle).parameters] == ["n", "gap", "random_state"]
    for arguments, keywords, message in [
        ((0,), {}, "`n` must be at least 1"),
        ((), {"n": 2.0}, "`n` must be an integer"),
        ((True,), {}, "`n` must be an integer"),
        ((5,), {"gap": np.nan}, "`gap` must be finite"),
        ((5,), {"random_state": -1}, "`random_state` must be at least 0"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            ib.datasets.make_circle(*arguments, **keywords)
    with pytest.raises(TypeError, match="unexpected keyword argument 'count'"):
        ib.datasets.make_circle(5, count=2)
    with pytest.raises(TypeError, match="`layers` must hold numbers, got strings"):
        ib.DGN.from_weights(np.eye(2), ["a"])


def test_numbers_of_results_may_be_anything_and_those_of_choices_are_finite() -> None:
    nothing = ib.gates.GateChanges(np.array([0]), np.array([np.nan]), np.array([-1.0]))
    assert np.isnan(nothing.since_start[0])
    with pytest.raises(TypeError, match="`since_last` must hold real numbers"):
        ib.gates.GateChanges(np.array([0]), np.array([0.0]), None)
    with pytest.raises(ValueError, match="`slope` must be finite"):
        ib.autoencoders.GaussianMAE(np.nan, 1.0, 1.0, 1.0)


# What was wrong once


X, Y = np.eye(2), np.array([1.0, -1.0])
WEIGHTS = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), np.ones((1, 2))])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ib.train(ib.DeepLinear(2), X, None, None), "`y` must hold real numbers"),
        (lambda: ib.train_many([ib.DeepLinear(2)], X, None), "`y` must hold real numbers"),
        (lambda: ib.equivalence.canonical_form(WEIGHTS, tol=-1.0), "`tol` must be at least 0"),
        (lambda: ib.equivalence.canonical_form(WEIGHTS, tol=np.nan), "`tol` must be finite"),
        (lambda: ib.networks.initial_variance(widths=(-1, -1)), r"`widths\[0\]` must be at least"),
        (lambda: ib.DGN(3, widths=(3.7, 3.2)), r"`widths\[0\]` must be an integer, got 3.7"),
        (lambda: ib.kkt_distance(ib.DeepLinear(2), X + 1j, Y), "`X` must hold real numbers"),
        (lambda: ib.solve_linear_svm(X, Y, max_iterations=2.5), "`max_iterations` must be an int"),
        (
            lambda: ib.equivalence.ReLUWeights(
                (np.ones((2, 3)), np.ones((1, 5))), (np.zeros(2), np.zeros(1))
            ),
            "each of `matrices` must have as many columns",
        ),
        (lambda: ib.ShallowGLN(3, np.zeros((2, 0), dtype=int)), "`contexts` must have shape"),
        (lambda: ib.run("gln", contexts=3), "`contexts`: 3 is no power of two: take 2 or 4"),
        (lambda: ib.run("gln", learning_rate=-1), "`learning_rate`: -1 is not above 0"),
        (lambda: ib.solve_linear_svm(X, [1.0, np.inf]), "`y` has entries that are NaN or infinite"),
        (
            lambda: ib.estimators.LinearLimitClassifier().fit(X, [1.0, 1.0]),
            "got one class, 1.0, only",
        ),
    ],
)
def test_what_was_taken_or_said_wrongly_is_told(call, message) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_none_leaves_every_option_to_the_model() -> None:
    small = {"steps": 0, "n_train": 20, "n_val": 10}
    left = dict.fromkeys(("trainer", "solver", "tol", "seed", "data", "dtype", "device"))
    assert ib.run("linear", **small, **left).row()["tol"] == ib.run("linear", **small).row()["tol"]


def test_of_two_classes_no_class_is_set_against_the_rest() -> None:
    same, labels = np.ones((2, 1)), np.array([0, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ib.estimators.LinearLimitClassifier().fit(same, labels)
    assert str(caught[0].message).startswith("NOT_SEPARABLE. Predictions are ")


def test_a_network_that_is_homogeneous_at_powers_of_two_alone_is_refused() -> None:
    import torch

    class Periodic(torch.nn.Module):
        degree = 1

        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([1.0, -1.0]).double())

        def forward(self, X: torch.Tensor, gates: None = None) -> torch.Tensor:
            length = torch.linalg.vector_norm(self.w)
            return X @ self.w * (2 + torch.sin(2 * torch.pi * torch.log2(length)))

    with pytest.raises(ValueError, match=r"homogeneous of degree 1.* but tripling them"):
        ib.kkt_distance(Periodic(), X, Y, None)
