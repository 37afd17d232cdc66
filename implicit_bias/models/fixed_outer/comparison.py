"""A network with a fixed outer layer beside its limits and the linear max-margin classifier."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.arrays import Floats
from ...data.sample import Sample
from ...limits.exact.linear import LinearLimit
from ...limits.relu.fixed_outer import FixedOuterLimit
from ...measures.bounded_value import value_of
from ...measures.distances import Distances
from ...measures.scalars import agreement, cosine, error_rate, scores
from ...networks.structured.fixed_outer import FixedOuterReLU
from ...quantities.measured import Measured, derived, part, quantity


class FixedOuterComparison(Measured):
    """A network beside the optimum from the labels' gates, that next to it, and the linear SVM."""

    TITLE = "network beside its limits"

    limit: FixedOuterLimit = part("From the gates of the labels.", recorded=False)
    local: FixedOuterLimit = part("Next to the network.", recorded=False)
    value: float = quantity(doc="``||W||`` over the smallest margin.")

    @derived(recorded=True)
    def margin_ratio(self) -> float:
        """Certified lower bound of all over its value; NaN where the limit is not proved best."""
        known = self.limit.status is Status.SOLVED
        return self.limit.certificate.lower_bound / self.value if known else math.nan

    @derived(recorded=True)
    def local_value(self) -> float:
        """Value of the optimum next to it; infinite where none was certified."""
        return self.local.value if self.local.status.severity == 0 else math.inf

    @derived(recorded=True)
    def local_status(self) -> str:
        """Name of its status."""
        return self.local.status.name

    @derived(recorded=True)
    def local_ratio(self) -> float:
        """`local_value / value`: 1 where training has come to it."""
        return self.local_value / self.value if math.isfinite(self.local_value) else math.nan

    zeta_cosine: float = quantity()
    third: float = quantity(
        "third singular value of W over the first (0 at rank two)", ".2g", ideal=0.0
    )
    local_rank: int = quantity("  rank of the optimum next to it", "d")
    linear_ratio: float = quantity(
        "margin of sum_h a_h w_h over the largest linear one", ".4f", doc="As a linear classifier."
    )
    limit_linear_ratio: float = quantity("  the same of the limit", ".4f")
    agreement: float = quantity()
    agreement_linear: float = quantity("held-out labels shared with the linear SVM", ".2%")
    error_limit: float = quantity()
    error_network: float = quantity()


class SpectrumObserver(Distances):
    """An observer for `train`: that of runs without a limit, and the singular values of W."""

    def __call__(self, network: Any, **known: Any) -> dict[str, Any]:
        """Measure `network`; "singular_values" (min(H, D),), descending."""
        values = np.linalg.svd(to_numpy(network.W.detach().double()), compute_uv=False)
        return super().__call__(network, **known) | {"singular_values": values}


def compare_fixed_outer(
    limit: FixedOuterLimit,
    local: FixedOuterLimit,
    linear: LinearLimit,
    network: FixedOuterReLU,
    samples: tuple[Sample, Sample],
) -> FixedOuterComparison:
    """Compare a network with both optima and the linear max-margin classifier.

    Parameters
    ----------
    limit, local : FixedOuterLimit
        From the gates of the labels, and next to the network.
    linear : LinearLimit
    network : FixedOuterReLU
    samples : (Sample, Sample)
        Training and held-out ones.
    """
    train, held_out = samples
    W, trained = to_numpy(network.W.detach().double()), scores(network, held_out)
    sizes = np.linalg.svd(W, compute_uv=False)
    predicted = np.asarray(limit.predictor(held_out.X))
    own = to_numpy(network.outer.double()) @ W

    def share(direction: Floats) -> float:
        """Return the margin of a linear classifier over the largest there is."""
        size = float(np.linalg.norm(direction))
        margin = float(np.min(train.y * (train.X @ direction))) / size if size > 0 else math.nan
        return margin * float(linear.dual_objective)

    return FixedOuterComparison(
        limit=limit,
        local=local,
        value=value_of(network, train),
        zeta_cosine=cosine(W.ravel(), limit.zeta.ravel()),
        third=float(sizes[2] / sizes[0]) if len(sizes) > 2 else 0.0,
        local_rank=local.rank,
        linear_ratio=share(own),
        limit_linear_ratio=share(limit.classifier),
        agreement=agreement(predicted, trained),
        agreement_linear=agreement(to_numpy(linear.predictor(held_out.X)), trained),
        error_limit=error_rate(held_out.y, predicted),
        error_network=error_rate(held_out.y, trained),
    )
