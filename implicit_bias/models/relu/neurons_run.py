"""How near a ReLU network has come to predicted neurons, where it bends, and from which starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch

from ..._solve import Status, to_numpy
from ...data.sample import Sample
from ...drawing.folds import fold_row
from ...equivalence.reading import as_weights
from ...equivalence.weights import ReLUWeights
from ...limits.frelu import FReLULimit
from ...local_limits.limit import LocalLimit
from ...local_limits.search import local_limit
from ...measures.formatting import number, share
from ...measures.scalars import scores
from ...networks.relu import DeepReLU, ReLU
from ...reports.finding import Finding, Table
from ...runs.setup import Setup
from ...runs.starts import Start, starts_finding, train_starts
from ...training.trajectory import Trajectory
from .neurons_comparison import NeuronsBeside, beside_limit, beside_local_limit

__all__ = ["find_neurons", "find_starts"]

# The local limit of 200 weights takes a second or two, of 3000 half a minute.
SMALL = 400
LOCAL = "local limit"


def find_neurons(setup: Setup, network: DeepReLU, machine: FReLULimit, name: str) -> Finding:
    """A trained network beside the neurons of `machine` and of its local limit, and its folds."""
    beside: dict[str, NeuronsBeside] = {}
    local = None
    if isinstance(network, ReLU):
        trained, gates = as_weights(network), to_numpy(network.gates(setup.train.X))
        if machine.certificate.proves_separability():
            beside[name] = beside_limit(machine, trained, setup.train.X, gates)
        local = _local(network, setup.train)
        if local is not None and local.status is not Status.FAILED:
            beside[LOCAL] = beside_local_limit(local, trained, setup.train.X, gates)
    folds = {"network": as_weights(network), **{k: one.weights for k, one in beside.items()}}
    row = fold_row(folds, setup.train)
    table = _table(network, beside) if isinstance(network, ReLU) else None
    return Finding(
        "neurons",
        record={"neurons": {key: one.to_dict() for key, one in beside.items()}},
        tables=() if table is None else (table,),
        panels=() if row is None else (row,),
        objects={"neurons": beside} | ({} if local is None else {"local_limit": local}),
        row=_columns(beside, name, local),
    )


def _local(network: ReLU, train: Sample) -> LocalLimit | None:
    """The KKT point next to the network with its gates as they are; None if it is far to seek."""
    n_weights = sum(p.numel() for p in network.parameters())
    if n_weights > SMALL or float((train.y * scores(network, train)).min()) <= 0:
        return None
    return local_limit(network.freeze_gates(), train.X, train.y, network.gates(train.X))


def _table(network: ReLU, beside: Mapping[str, NeuronsBeside]) -> Table | None:
    if not beside:
        return None
    found = list(beside.values())
    rows = [
        ("status", *(one.status for one in found)),
        ("gap | residual (certified)", *(number(one.certificate, ".1e") for one in found)),
        (f"neurons, of {network.n_units}", *(str(one.weights.widths[0]) for one in found)),
        ("gates that they set as learned (100 %)", *(share(one.own_gates) for one in found)),
        (
            "optimal transport of the network's to them (0)",
            *(number(one.transport.distance, ".3g") for one in found),
        ),
        ("  its gap", *(number(max(one.transport.gap, 0.0), ".1g") for one in found)),
    ]
    title = "neurons of the network beside those on its gates, modulo permutations and scales"
    return Table(title, ("", *beside), tuple(rows))


def _columns(
    beside: Mapping[str, NeuronsBeside], name: str, local: LocalLimit | None
) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    if name in beside:
        found["neuron_distance"] = beside[name].transport.distance
    if local is not None:
        found |= {
            "local_status": local.status.name,
            "local_value": local.value,
            "local_residual": local.residual,
        }
    if LOCAL in beside:
        found["local_neuron_distance"] = beside[LOCAL].transport.distance
    return found


def find_starts(
    setup: Setup,
    make: Callable[[int], torch.nn.Module],
    name: str,
    network: DeepReLU,
    trajectory: Trajectory,
) -> Iterator[Finding]:
    """Further networks of the same data, and which of all came to the same one."""
    starts = [Start(network, trajectory)]
    for one in train_starts(setup, make, name):
        starts.append(one)
    starts = [_with_limit(one, setup.train) for one in starts]
    yield starts_finding(starts, {})


def _with_limit(one: Start, train: Sample) -> Start:
    local = _local(one.network, train) if isinstance(one.network, ReLU) else None
    if local is None or local.status is Status.FAILED:
        return one
    return replace(one, limit=ReLUWeights.from_arrays(local.weights.values()))
