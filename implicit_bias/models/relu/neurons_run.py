"""A ReLU network beside predicted neurons, its folds, and the networks of several starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from ..._solve import to_numpy
from ...data.sample import Sample
from ...drawing.folds import fold_row
from ...equivalence.reading import as_weights
from ...equivalence.weights import ReLUWeights
from ...limits.frelu import FReLULimit
from ...measures.bounded_value import BoundedValue, measure_bounded_value
from ...networks.relu import DeepReLU, ReLU
from ...quantities.measured import side_by_side
from ...reports.bounds import LOCAL, local_columns
from ...reports.finding import Finding, Table
from ...runs.setup import SampleSetup
from ...runs.starts import Start, starts_finding, train_starts
from ...training.trajectory import Trajectory
from .neurons_comparison import NeuronComparison, compare_with_limit, compare_with_local_limit

__all__ = ["find_neurons", "find_starts"]

# Weights of a network whose local limit is looked for: it takes seconds.
SMALL = 400


def find_neurons(setup: SampleSetup, network: DeepReLU, machine: FReLULimit, name: str) -> Finding:
    """A trained network beside the neurons of `machine` and of its local limit, and its folds."""
    beside: dict[str, NeuronComparison] = {}
    columns: dict[str, Any] = {}
    value: BoundedValue | None = None
    if isinstance(network, ReLU):
        trained, frozen = as_weights(network), _frozen(network, setup.train)
        inputs = setup.train.X, to_numpy(frozen[1].gates)
        if machine.certificate.proves_separability():
            beside[name] = compare_with_limit(machine, trained, *inputs)
            columns["neuron_distance"] = beside[name].neuron_distance
        value = measure_bounded_value(network, setup.train, search=frozen, max_weights=SMALL)
        columns |= local_columns(value)
        if value.limit is not None:
            beside[LOCAL] = compare_with_local_limit(value.limit, trained, *inputs)
            columns["local_neuron_distance"] = beside[LOCAL].neuron_distance
    folds = {"network": as_weights(network), **{k: one.weights for k, one in beside.items()}}
    row = fold_row(folds, setup.train)
    local = None if value is None else value.local
    return Finding(
        "neurons",
        record={"neurons": {key: one.to_dict() for key, one in beside.items()}},
        tables=(_table(beside),) if beside else (),
        panels=() if row is None else (row,),
        objects={"neurons": beside} | ({} if local is None else {"local_limit": local}),
        row=columns,
    )


def _frozen(network: ReLU, train: Sample) -> tuple[torch.nn.Module, Sample]:
    """A copy with the gates as they are, and the sample behind these."""
    return network.freeze_gates(), Sample(train.X, train.y, network.gates(train.X))


def _table(beside: Mapping[str, NeuronComparison]) -> Table:
    title = "neurons of the network beside those on its gates, modulo permutations and scales"
    return Table(title, ("", *beside), tuple(side_by_side(list(beside.values()))))


def find_starts(
    setup: SampleSetup,
    make: Callable[[int], torch.nn.Module],
    name: str,
    network: DeepReLU,
    trajectory: Trajectory,
) -> Iterator[Finding]:
    """Further networks of the same data, and which of all came to the same one."""
    starts = [Start(network, trajectory), *train_starts(setup, make, name)]
    yield starts_finding([_with_limit(one, setup.train) for one in starts], {})


def _with_limit(one: Start, train: Sample) -> Start:
    if not isinstance(one.network, ReLU):
        return one
    frozen = _frozen(one.network, train)
    local = measure_bounded_value(one.network, train, search=frozen, max_weights=SMALL).limit
    return one if local is None else replace(
        one, limit=ReLUWeights.from_arrays(local.weights.values())
    )  # fmt: skip
