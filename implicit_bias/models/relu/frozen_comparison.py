"""A network whose gates were frozen on the way, beside its limit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..._shown import Shown
from ...data.sample import Sample
from ...limits.frelu import FReLULimit
from ...measures.distances import Distances
from ...measures.scalars import scores
from .comparison import MachineComparison, compare_machine

if TYPE_CHECKING:
    import torch

__all__ = ["FrozenComparison", "compare_frozen"]


@dataclass(frozen=True, repr=False)
class FrozenComparison(Shown):
    """A network whose gates were frozen on the way, beside SVM-FReLU on these gates.

    Unlike the four machines this one is the limit of the network that it stands beside: of the
    one that went on with the gates of step `freeze_at`, not of the ReLU network.

    Attributes
    ----------
    freeze_at : int
    machine : MachineComparison
    error_network : float
        Share of held-out samples on the wrong side.
    zeta_cosine : float
        Cosine between the coefficients.
    kkt_cosine, kkt_residual, kkt_complementarity : float
        Distance of the weights from a KKT point, stationarity and complementarity; NaN while the
        network does not separate.
    """

    freeze_at: int
    machine: MachineComparison
    error_network: float
    zeta_cosine: float
    kkt_cosine: float
    kkt_residual: float
    kkt_complementarity: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values, nested."""
        return asdict(self)


def compare_frozen(
    limit: FReLULimit,
    network: torch.nn.Module,
    train: Sample,
    held_out: Sample,
    *,
    freeze_at: int,
) -> FrozenComparison:
    """Compare a network that went on with frozen gates with the limit on these gates.

    Parameters
    ----------
    limit : FReLULimit
        Solved on `train`.
    network : Module
        The one with frozen gates, as it ended.
    train, held_out : Sample
        Data with the gates as they were frozen.
    freeze_at : int
        The step of that, for the record.

    Raises
    ------
    ValueError
        If there are no held-out samples or widths do not fit.
    """
    separates = limit.certificate.proves_separability()
    distances = Distances(limit if separates else None, train, held_out)
    found = distances(network)
    return FrozenComparison(
        freeze_at=freeze_at,
        machine=compare_machine(
            limit,
            distances.predicted_scores() if separates else None,
            scores(network, held_out),
            held_out.y,
            found.get("margin_ratio", math.nan),
        ),
        error_network=found["error_network"],
        zeta_cosine=found.get("zeta_cosine", math.nan),
        kkt_cosine=found["kkt_cosine"],
        kkt_residual=found["kkt_residual"],
        kkt_complementarity=found["kkt_complementarity"],
    )
