"""A network trained with weight decay beside its finite limit."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import to_numpy
from ...data.sample import Sample
from ...limits.finite.certificate import FitLimitCertificate
from ...limits.finite.limit import FitLimit
from ...measures.scalars import agreement
from ...quantities.measured import Measured, part, quantity

if TYPE_CHECKING:
    import torch

# Units whose norm is below this share of the largest count as dead.
_DEAD = 1e-6
_KNOWN = 1e-3


class DecayComparison(Measured):
    """A network trained with weight decay, compared with the optimum of its convex program."""

    TITLE = "network beside its finite limit"
    SCREEN = ("value_gap", "over_optimum", "score_distance", "agreement")

    value_gap: float = quantity()
    over_optimum: float = quantity()
    score_distance: float = quantity()
    penalty: float = quantity()
    radius: float = quantity()
    radius_used: float = quantity()
    agreement: float = quantity()
    n_dead: int = quantity()
    n_dead_predicted: int = quantity(
        "  of which the limit has", "d", doc="Dead units of the limit."
    )
    same_units: bool = part("Whether network and limit have the same dead units.")
    limit_margin_ratio: float = quantity()

    def shown(self) -> tuple[str, ...]:
        """Return names of the attributes with a line in the table: those that are known."""
        return tuple(name for name in super().shown() if _known(getattr(self, name)))


def _known(value: Any) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


def observe_decayed(limit: FitLimit, train: Sample, network: torch.nn.Module) -> dict[str, float]:
    """Measure how far a network's value is from the optimum, certified: an observer for `train`.

    Parameters
    ----------
    limit : FitLimit
    train : Sample
        The data of the limit.
    network : Module

    Returns
    -------
    dict of str to float
        "value_gap" and "over_optimum".
    """
    bounds = limit.bounds_of(network, *train)
    return {"value_gap": own_gap(bounds), "over_optimum": over_optimum(limit, bounds)}


def own_gap(bounds: FitLimitCertificate) -> float:
    """Return which share of a value is above the optimum at most, by its own slopes."""
    excess = max(bounds.objective - bounds.dual_objective, 0.0)
    return excess / bounds.objective if bounds.objective > 0 else math.nan


def over_optimum(limit: FitLimit, bounds: FitLimitCertificate) -> float:
    """Return how far a value is above the certified lower bound of the optimum, divided by that.

    NaN where the optimum is not known to a thousandth of itself, as one of 0 never is.
    """
    lower = limit.certificate.dual_objective
    known = 0 < lower and limit.objective - lower <= _KNOWN * lower
    return (bounds.objective - lower) / lower if known else math.nan


def compare_decayed(
    limit: FitLimit,
    network: torch.nn.Module,
    train: Sample,
    held_out: Sample,
    margin_ratio: float,
) -> DecayComparison:
    """Compare a network with its finite limit.

    Parameters
    ----------
    limit : FitLimit
    network : Module
    train, held_out : Sample
    margin_ratio : float
        Of the finite limit beside the max-margin limit; NaN where there is none.
    """
    bounds = limit.bounds_of(network, *train)
    zeta = to_numpy(network.zeta().detach().double())  # type: ignore[operator]
    own = replace(limit, zeta=zeta)
    scores = own.predictor(train.X, train.gates)
    norms = to_numpy(network.unit_norms().detach())  # type: ignore[operator]
    dead = norms <= _DEAD * max(float(norms.max(initial=0.0)), 1e-300)
    one_unit = len(limit.unit_norms) == 1
    predicted = ~limit.live
    size = float(np.linalg.norm(limit.scores))
    new = held_out.X, held_out.gates
    return DecayComparison(
        value_gap=max(
            own_gap(bounds), float(np.finfo(float).eps)
        ),  # not below what it is computed to
        over_optimum=over_optimum(limit, bounds),
        score_distance=float(np.linalg.norm(scores - limit.scores)) / size if size else math.nan,
        penalty=math.nan if limit.penalty is None else limit.penalty,
        radius=math.nan if limit.radius is None else limit.radius,
        radius_used=math.nan if limit.radius is None else own.size / limit.radius,
        agreement=agreement(*(to_numpy(one.predictor(*new)) for one in (own, limit))),
        n_dead=int(dead.sum()),
        n_dead_predicted=int(predicted.sum()),
        same_units=bool(one_unit or np.array_equal(dead, predicted)),
        limit_margin_ratio=margin_ratio,
    )
