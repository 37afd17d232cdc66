"""A deep gated network beside its local limit, the bound of all networks, and three machines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._shown import Shown
from ..._solve import Status, to_numpy
from ...data.sample import Sample
from ...limits.aligned import network_value
from ...local_limits.limit import LocalLimit, same_limit
from ...measures.kkt import kkt_distance
from ...measures.scalars import agreement, cosine, error_rate, placed_scores
from ...training.data import GatedData, place_data

if TYPE_CHECKING:
    import torch

    from ...limits.path_limit import PathLimit
    from ...training.trajectory import Trajectory

__all__ = [
    "DGNComparison",
    "Earlier",
    "Predicted",
    "Values",
    "alike",
    "compare_dgn",
    "compare_scores",
    "distances_from",
    "flat_weights",
    "held_out_scores",
    "limits_reached",
    "lowest_curvature",
    "value_of",
]

Array = NDArray[np.float64]

# Relative: multipliers and values of limits that are one, as `same_limit` has it of scores.
ORBIT = 1e-6
# Curvatures that count as zero modes, as `LocalLimit` counts them.
ZERO = 1e-7


@dataclass(frozen=True)
class Predicted:
    """A classifier beside the network, on held-out data; NaN where those have no gates.

    Attributes
    ----------
    status : str
    certificate : float
        Relative gap of a convex program, residual of the first-order conditions of a local limit.
    score_cosine, agreement, error : float
        Cosine of its scores with the network's, share of equal labels, its error.
    """

    status: str
    certificate: float
    score_cosine: float
    agreement: float
    error: float


@dataclass(frozen=True, repr=False)
class DGNComparison(Shown):
    """A network beside its own local limit, and beside all networks with its gates.

    Attributes
    ----------
    value : float
        ``(||w||^2 / L)^(L/2)`` over the smallest margin; smaller is better.
    bound : float
        Certified lower bound of that of every network with these gates.
    bound_ratio : float
        `bound / value`: 1 only if no network with these gates is better.
    local_value, local_ratio : float
        Value of the local limit; over that of the network.
    local_bound_ratio : float
        `bound / local_value`: the limit is at most 1 over this times the best of all networks.
    weight_cosine : float
        Between the weights of network and local limit.
    distance : float
        Of the weights at smallest margin 1 from those of the local limit, as a share of these.
    earlier_step, earlier_distance, earlier_same : int, float, bool; or None, NaN, None
        The same at an earlier step, and whether the local limit computed from there is this one.
    error_network : float
        On held-out data.
    predicted : mapping of str to Predicted
        The local limit, path lasso, and hard-margin SVMs of two kernels.
    """

    value: float
    bound: float
    bound_ratio: float
    local_value: float
    local_ratio: float
    local_bound_ratio: float
    weight_cosine: float
    distance: float
    earlier_step: int | None
    earlier_distance: float
    earlier_same: bool | None
    error_network: float
    predicted: Mapping[str, Predicted]

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values, nested."""
        return asdict(self)


@dataclass(frozen=True)
class Earlier:
    """A run before its end, beside the local limit of its end.

    Attributes
    ----------
    step : int
    distance : float
        Of the weights then from the local limit of the end, both at smallest margin 1.
    same : bool
        Whether the local limit computed from the weights then is that of the end.
    """

    step: int
    distance: float
    same: bool


class Values:
    """An observer for `train`: value, distance from the KKT conditions, and the weights."""

    def __init__(self, train: Sample) -> None:
        self._train = train

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        """Numbers are NaN while the network does not separate its data."""
        value, residual = value_of(network, self._train), math.nan
        if math.isfinite(value):
            residual = kkt_distance(network, *self._train).residual
        return {"value": value, "kkt_residual": residual, "weights": flat_weights(network)}


def value_of(network: torch.nn.Module, train: Sample) -> float:
    """``(||w||^2 / L)^(L/2)`` over the smallest margin; NaN where that is not positive."""
    margins = to_numpy(train.y) * placed_scores(network, place_data(network, *train))
    squares = sum(float(p.detach().double().square().sum()) for p in network.parameters())
    degree = network.degree
    assert isinstance(degree, int)
    value = network_value(squares, margins, degree)
    return value if math.isfinite(value) else math.nan


def compare_dgn(
    network: torch.nn.Module,
    local: LocalLimit,
    bound: PathLimit,
    predicted: Mapping[str, Predicted],
    error_network: float,
    earlier: Earlier | None,
) -> DGNComparison:
    """Compare a network that separates its training data.

    Parameters
    ----------
    local : LocalLimit
        Computed from its weights.
    bound : PathLimit
        On its gates.
    predicted : mapping of str to Predicted
    error_network : float
    earlier : Earlier or None
        Of the same run.
    """
    weights, limiting = flat_weights(network), flat_weights(local.network)
    lower = float(bound.dual_objective)
    return DGNComparison(
        value=local.start_value,
        bound=lower,
        bound_ratio=lower / local.start_value,
        local_value=local.value,
        local_ratio=local.value / local.start_value,
        local_bound_ratio=lower / local.value,
        weight_cosine=cosine(weights, limiting),
        distance=local.distance,
        earlier_step=None if earlier is None else earlier.step,
        earlier_distance=math.nan if earlier is None else earlier.distance,
        earlier_same=None if earlier is None else earlier.same,
        error_network=error_network,
        predicted=predicted,
    )


def flat_weights(network: torch.nn.Module) -> Array:
    """(P,) all weights, in their order."""
    return np.concatenate([to_numpy(w.double()).ravel() for w in network.parameters()])


def distances_from(trajectory: Trajectory, local: LocalLimit) -> Array:
    """(T,) distances of the weights at checkpoints from a local limit, all at smallest margin 1.

    As shares of the norm of the limit; NaN where the network does not separate.
    """
    weights, limiting = trajectory.observed["weights"], flat_weights(local.network)
    degree = len(list(local.network.parameters()))
    squares = np.sum(weights**2, axis=1)
    # The value at smallest margin 1 is (||w||^2 / L)^(L/2).
    norms = np.sqrt(degree * trajectory.observed["value"] ** (2 / degree))
    unit = weights / np.sqrt(squares)[:, None]
    found: Array = np.linalg.norm(norms[:, None] * unit - limiting, axis=1)
    return found / float(np.linalg.norm(limiting))


def compare_scores(
    status: str, certificate: float, scores: Array | None, trained: Array | None, y: Array
) -> Predicted:
    """A classifier with scores (m,) on held-out data, or none, beside those of the network."""
    if scores is None or trained is None or len(y) == 0:
        return Predicted(status, certificate, math.nan, math.nan, math.nan)
    return Predicted(
        status,
        certificate,
        score_cosine=cosine(scores, trained),
        agreement=agreement(scores, trained),
        error=error_rate(y, scores),
    )


def alike(a: LocalLimit, b: LocalLimit) -> bool:
    """Whether two local limits are one, up to rotations of units that no active sample sees.

    Along those the value stays, and so do active samples and multipliers; scores of other samples,
    whose gates tell these units apart, do not. `same_limit` asks for all scores.
    """
    if same_limit(a, b):
        return True
    if Status.FAILED in (a.status, b.status) or not min(a.n_zero_modes, b.n_zero_modes):
        return False
    largest = float(a.multipliers.max())
    close = float(np.abs(a.multipliers - b.multipliers).max()) <= ORBIT * largest
    return close and abs(a.value - b.value) <= ORBIT * a.value


def lowest_curvature(limit: LocalLimit) -> float:
    """The lowest but for zero modes; NaN if it was not looked at."""
    beyond = limit.curvature[np.abs(limit.curvature) > ZERO]
    return float(beyond[0]) if len(beyond) else math.nan


def limits_reached(limits: Sequence[LocalLimit | None]) -> list[int | None]:
    """By number, from 1 on, which limit each start has: the same number where they are `alike`."""
    known: list[LocalLimit] = []
    found: list[int | None] = []
    for limit in limits:
        if limit is None or limit.status is Status.FAILED:
            found.append(None)
            continue
        same = [i for i, other in enumerate(known) if alike(limit, other)]
        if not same:
            known.append(limit)
        found.append(same[0] + 1 if same else len(known))
    return found


def held_out_scores(network: torch.nn.Module, sample: Sample | None) -> Array | None:
    """Scores of a network on held-out data, if these have gates."""
    if sample is None:
        return None
    data: GatedData = place_data(network, *sample)
    return placed_scores(network, data)
