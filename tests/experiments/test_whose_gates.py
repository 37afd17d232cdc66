"""Gates that adapt, never learned, or have learned: who sets them, and from which weights."""

from __future__ import annotations

import math

import numpy as np

import implicit_bias as ib
from experiments.spectra import scores
from experiments.whose_gates import KINDS, arms, path_machine, relu, rows

RNG = np.random.default_rng(0)
WIDTHS = (12, 10)
X = RNG.normal(size=(40, 4))
Y = np.where(X @ np.arange(1, 5) > 0, 1.0, -1.0)
TRAIN, HELD_OUT = ib.Sample(X[:25], Y[:25], None), ib.Sample(X[25:], Y[25:], None)


def test_each_kind_has_the_gates_it_is_called_by() -> None:
    found = {kind: (network, setter) for kind, network, setter in arms(TRAIN, 1, 40, WIDTHS)}
    assert tuple(found) == KINDS
    gates = {kind: setter.gates(X).numpy() for kind, (_, setter) in found.items()}
    begun = relu(4, 1, WIDTHS).gates(X).numpy()
    np.testing.assert_array_equal(gates["own start"], begun)
    np.testing.assert_array_equal(gates["learned"], gates["adapting"])
    assert (gates["learned"] != begun).any() and (gates["another's"] != begun).mean() > 0.2


def test_a_row_has_the_machine_of_the_gates_of_its_own_kind() -> None:
    found = {row["gates"]: row for row in rows(TRAIN, HELD_OUT, 1, 40, WIDTHS)}
    learner = next(arms(TRAIN, 1, 40, WIDTHS))[2]
    gates = learner.gates(TRAIN.X).numpy(), learner.gates(HELD_OUT.X).numpy()
    expected = path_machine(TRAIN, HELD_OUT, gates, WIDTHS)
    assert not math.isnan(expected)
    assert found["adapting"]["npk_error"] == found["learned"]["npk_error"] == expected
    assert found["adapting"]["error"] == np.mean(scores(learner, X[25:], None) * Y[25:] <= 0)
    closed = np.ones((25, 22))
    closed[0] = 0
    assert math.isnan(path_machine(TRAIN, HELD_OUT, (closed, np.ones((15, 22))), WIDTHS))
