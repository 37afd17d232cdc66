"""What a run of DLGNs puts beside the network: its local limit, kernel machines, bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..._solve import Status, to_numpy
from ...data.arrays import Floats
from ...data.sample import Sample
from ...kernels.margin import solve_kernel_svm
from ...kernels.overlap import neural_path_kernel
from ...limits.limit import Limit
from ...local_limits.depth3 import depth3_kernel
from ...local_limits.limit import LocalLimit
from ...local_limits.search import local_limit
from ...measures.scalars import error_rate, scores
from ...networks.dgn import DGN
from ...reports.finding import Assumption, Finding
from .comparison import Beside, DLGNComparison, beside_scores, distinct, network_value
from .depth3 import MOST_GATES, Depth3Interval, certify_depth3

__all__ = ["along_the_ones", "compare_dlgn", "find_local_limit", "of_the_limit", "one_input"]

OVERLAP = "overlap kernel"
# Of the ratio of certified values: a hundred times the gap of the limit.
GLOBAL = 1e-6


def find_local_limit(network: DGN, sample: Sample, *, constant: bool) -> LocalLimit | None:
    """The point that a network is heading to, among distinct samples; None if none was found.

    Behind constant experts it is a network of one input, `sqrt(D)`: see `along_the_ones`.
    """
    if constant:
        network, sample = along_the_ones(network), one_input(sample)
    local = local_limit(network, *distinct(sample))
    return None if local.status is Status.FAILED else local


def along_the_ones(network: DGN) -> DGN:
    """The network of one input `sqrt(D)` with the scores of one of D ones.

    Gradients of the first layer's rows are along the ones, so that at every KKT point rows are,
    and only what lies along them ever grows. Its values are those of the network without the rest.
    """
    first, *above = (layer.detach() for layer in network.layers)
    along = first.sum(dim=1, keepdim=True) / first.shape[1] ** 0.5
    return DGN.from_weights(along, *above, device=along.device)


def one_input(sample: Sample) -> Sample:
    """A sample of D ones as one of the input `sqrt(D)`."""
    X = np.full((len(sample.X), 1), math.sqrt(sample.X.shape[1]))
    return Sample(X, sample.y, sample.gates)


def compare_dlgn(
    network: torch.nn.Module,
    limit: Limit,
    local: LocalLimit | None,
    samples: tuple[Sample, Sample],
    *,
    widths: Sequence[int],
    name: str,
    constant: bool,
    tol: float,
) -> DLGNComparison:
    """Set a network beside its limit or bound, its local limit and its kernel machines.

    Parameters
    ----------
    network : Module
        With frozen gates; separates the training sample.
    limit : Limit
        The limit itself with one hidden layer, the path lasso with more.
    local : LocalLimit or None
    samples : pair of Sample
        Training and held-out, inputs as the value network sees them.
    widths : sequence of int
    name : str
        Of the program.
    constant : bool
        Whether experts are.
    tol : float
        Gap of the kernel machines.
    """
    train, held_out = samples
    value, lower = network_value(network, train), limit.dual_objective
    local_value = math.nan if local is None else local.value
    return DLGNComparison(
        exact=len(widths) == 1,
        value=value,
        lower=lower,
        upper=limit.objective,
        local_value=local_value,
        margin_ratio=lower / value,
        local_ratio=local_value / value,
        local_bound_ratio=lower / local_value,
        machine_value=(
            _machine_value(local, one_input(train) if constant else train)
            if len(widths) == 2
            else math.nan
        ),
        interval=_interval(train, widths) if constant and len(widths) == 2 else None,
        beside=_beside(network, limit, samples, widths=widths, name=name, tol=tol)
        | _beside_local(network, local, one_input(held_out) if constant else held_out, held_out),
        error_network=error_rate(held_out.y, scores(network, held_out)),
    )


def of_the_limit(
    alone: Finding, limit: Limit, local: LocalLimit | None, comparison: DLGNComparison, name: str
) -> Finding:
    """The finding about the limit, with the network and its local limit beside it."""
    record = {"comparison": comparison.to_dict()}
    certificates = dict(alone.certificates)
    objects = {**alone.objects, "comparison": comparison}
    if local is not None:
        record["local_limit"] = local.to_dict()
        objects["local_limit"] = local
        certificates["local limit"] = {
            "status": local.status.name, "seconds": local.seconds, "n_samples": len(local.active)
        }  # fmt: skip
    return replace(
        alone,
        record={**alone.record, **record},
        assumptions=(*alone.assumptions, *_assumptions(comparison, local)),
        certificates=certificates,
        objects=objects,
        row={**alone.row, **_columns(comparison, local, name)},
    )


def _machine_value(local: LocalLimit | None, train: Sample) -> float:
    """Least norm at the local limit's own layer weights: its value, if it is a KKT point."""
    if local is None:
        return math.nan
    kernel = depth3_kernel(local.network)(train.X, train.gates)
    machine = solve_kernel_svm(kernel, train.y)
    return machine.objective if machine.certificate.proves_separability() else math.nan


def _interval(train: Sample, widths: Sequence[int]) -> Depth3Interval | None:
    gates = np.asarray(train.gates)
    layers = np.split(gates, [int(widths[0])], axis=1)
    if min(np.unique(layer, axis=1).shape[1] for layer in layers) > MOST_GATES:
        return None
    one = distinct(train)
    return certify_depth3(one.y, one.gates, widths=widths, n_inputs=train.X.shape[1])


def _beside(
    network: torch.nn.Module,
    limit: Limit,
    samples: tuple[Sample, Sample],
    *,
    widths: Sequence[int],
    name: str,
    tol: float,
) -> dict[str, Beside]:
    train, held_out = samples
    own, y = scores(network, held_out), held_out.y
    X, gates = held_out.X, held_out.gates
    predicted = to_numpy(limit.predictor(X, gates))
    found = {name: beside_scores(limit.status.name, limit.gap, predicted, own, y)}
    kernel = neural_path_kernel(train.X, train.gates, widths=widths)
    machine = solve_kernel_svm(kernel, train.y, tol=tol)
    if machine.certificate.proves_separability():
        cross = _cross(held_out, train, widths)
        of_machine = machine.predictor(cross)
        found[OVERLAP] = beside_scores(machine.status.name, machine.gap, of_machine, own, y)
    return found


def _beside_local(
    network: torch.nn.Module, local: LocalLimit | None, seen: Sample, held_out: Sample
) -> dict[str, Beside]:
    """The local limit, which sees its own inputs."""
    if local is None:
        return {}
    found, own = local.predictor(seen.X, seen.gates), scores(network, held_out)
    status, residual = local.status.name, local.residual
    return {"local limit": beside_scores(status, residual, found, own, held_out.y)}


def _cross(held_out: Sample, train: Sample, widths: Sequence[int]) -> Floats:
    inputs = (held_out.X, held_out.gates, train.X, train.gates)
    return neural_path_kernel(*inputs, widths=widths)


def _assumptions(comparison: DLGNComparison, local: LocalLimit | None) -> tuple[Assumption, ...]:
    frozen = Assumption("gates do not depend on the weights that go on (by construction)", True)
    one = Assumption(
        "there is one hidden layer, whose limit a theorem names; with more the program is a bound",
        comparison.exact,
    )
    optimum = Assumption(
        "the point next to the network is a strict local optimum, up to rotations of units "
        "(certified in floating point)",
        None if local is None else {
            Status.LOCAL_OPTIMUM: True, Status.SADDLE: False
        }.get(local.status),
    )  # fmt: skip
    if not comparison.exact or local is None:
        return frozen, one, optimum
    reached = comparison.local_bound_ratio >= 1 - GLOBAL
    best = Assumption(
        "the network is heading to the limit, not to a point with units that are wrongly dead "
        f"(limit / local limit is {comparison.local_bound_ratio:.6f}, certified)",
        reached,
    )
    return frozen, one, optimum, best


def _columns(comparison: DLGNComparison, local: LocalLimit | None, name: str) -> dict[str, Any]:
    """Of the program as the limit, like the exit code; of the local limit by names of its own."""
    of_limit = comparison.beside[name]
    found: dict[str, Any] = {
        "margin_ratio": comparison.margin_ratio,
        "score_cosine": of_limit.score_cosine,
        "agreement": of_limit.agreement,
        "error_limit": of_limit.error,
        "error_network": comparison.error_network,
    }
    if local is None:
        return found
    own = comparison.beside["local limit"]
    return found | {
        "local_status": local.status.name,
        "local_value": local.value,
        "local_residual": local.residual,
        "local_curvature": float(local.curvature[0]) if len(local.curvature) else None,
        "local_ratio": comparison.local_ratio,
        "local_bound_ratio": comparison.local_bound_ratio,
        "local_score_cosine": own.score_cosine,
        "local_agreement": own.agreement,
        "local_error": own.error,
    }
