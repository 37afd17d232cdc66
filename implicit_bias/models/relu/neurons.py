"""A ReLU network beside predicted neurons, its folds, and the networks of several starts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...limits.exact.frelu import FReLULimit
from ...limits.relu.limit import ReLULocalLimit
from ...measures.equivalence.reading import as_weights
from ...measures.equivalence.weights import ReLUWeights
from ...networks.relu import ReLU
from ...quantities.measured import side_by_side
from ...quantities.said import Table
from ...runs.drawing.folds import fold_row
from ...runs.reports.finding import Finding
from ...runs.setup import SampleSetup
from ...runs.stages import Found
from ...runs.starts import Start, starts_finding, train_starts
from .learning import ReLUSetup
from .limit_comparison import NAME
from .local_limit import limit_of
from .machines import RELU_SVMS
from .neurons_comparison import NeuronComparison, compare_with_limit, compare_with_local_limit

if TYPE_CHECKING:
    import torch


def find_neurons(setup: ReLUSetup, machine: FReLULimit, local: ReLULocalLimit | None) -> Finding:
    """The trained network beside the neurons of SVM-LC and of its local limit, and its folds."""
    network, name = setup.network, RELU_SVMS["lc"]
    beside: dict[str, NeuronComparison] = {}
    columns: dict[str, Any] = {}
    if isinstance(network, ReLU):
        trained, X = as_weights(network), setup.train.X
        if machine.certificate.proves_separability():
            gates = to_numpy(network.gates(X))
            beside[name] = compare_with_limit(machine, trained, X, gates)
            columns["neuron_distance"] = beside[name].neuron_distance
        if local is not None and local.status is not Status.FAILED:
            beside[NAME] = compare_with_local_limit(local, trained, X)
            columns["local_neuron_distance"] = beside[NAME].neuron_distance
    folds = {"network": as_weights(network), **{k: one.weights for k, one in beside.items()}}
    row = fold_row(folds, setup.train)
    title = "neurons of the network beside those on its gates, modulo permutations and scales"
    lines = tuple(side_by_side([*beside.values()])) if beside else ()
    return Finding.said(
        "neurons",
        record={"neurons": {key: one.to_dict() for key, one in beside.items()}},
        tables=(Table(title, ("", *beside), lines),) if beside else (),
        panels=() if row is None else (row,),
        objects={"neurons": beside},
        row=columns,
    )


def find_starts(setup: ReLUSetup, found: Found) -> Iterator[Finding]:
    """Further networks of the same data, the local limits that all are next to, and the least."""
    starts = [
        Start(setup.network, found["trajectory"]),
        *train_starts(setup, setup.make, setup.name),
    ]
    limits = [found.get("local_limit"), *(_limit(setup, one.network) for one in starts[1:])]
    known = [_with_limit(one, limit) for one, limit in zip(starts, limits, strict=True)]
    values = [math.nan if one is None else one.value for one in limits]
    if all(math.isnan(value) for value in values):
        yield starts_finding(known, {})
        return
    grouped = starts_finding(known, {"value of its limit": values})
    least = float(np.nanmin(values))
    yield grouped.but(row={**grouped.views.row, "best_local_value": least})


def _limit(setup: SampleSetup, network: torch.nn.Module) -> ReLULocalLimit | None:
    return limit_of(setup, network) if isinstance(network, ReLU) else None


def _with_limit(one: Start, limit: ReLULocalLimit | None) -> Start:
    if limit is None or limit.status is Status.FAILED:
        return one
    weights = [layer.detach().numpy() for layer in limit.network.layers]
    return replace(one, limit=ReLUWeights.from_arrays(weights, slope=limit.slope))
