"""A convolution of more than two layers beside the stationary point next to it."""

from __future__ import annotations

import math

import numpy as np

from ..._support.solve import Status, to_numpy
from ...data.sample import Sample
from ...limits.convolution.stationary import ConvolutionPoint
from ...measures.bounded_value import value_of
from ...measures.scalars import agreement, cosine, error_rate, scores
from ...networks.structured.convolution import LinearConvolution
from ...quantities.measured import Measured, derived, part, quantity
from ...quantities.said import Side


class ConvolutionComparison(Measured):
    """A network, the certified point next to it, and the convex bound of all.

    The value is ``(||w||^2 / L)^(L/2)`` over the smallest margin; smaller is better.
    """

    TITLE = "network beside the point next to it"
    point: ConvolutionPoint = part("The point.", recorded=False)
    value: float = quantity(doc="Value of the network; NaN if it does not separate the data.")

    @derived(recorded=True)
    def local_value(self) -> float:
        """Value of the point; infinite where none was found."""
        found = self.point.status in (Status.LOCAL_OPTIMUM, Status.GLOBAL_OPTIMUM)
        return self.point.value if found else math.inf

    @derived(recorded=True)
    def local_status(self) -> str:
        """Name of its status."""
        return self.point.status.name

    @derived(recorded=True)
    def local_residual(self) -> float:
        """Relative residual of its first-order conditions."""
        return self.point.residual

    @derived(recorded=True)
    def local_ratio(self) -> float:
        """`local_value / value`: 1 where training has come to it."""
        return self.local_value / self.value if math.isfinite(self.local_value) else math.nan

    @derived(recorded=True)
    def bound_ratio(self) -> float:
        """Certified lower bound of all values over that of the network."""
        return self.point.certificate.lower_bound / self.value

    zeta_cosine: float = quantity()
    agreement: float = quantity()
    error_limit: float = quantity()
    error_network: float = quantity()

    def beside(self, name: str) -> tuple[Side, ...]:
        """Return the point, called so, and the network as columns of the first screen."""
        ratio = self.bound_ratio / self.local_ratio
        point = {"value": self.local_value, "local_residual": self.local_residual,
                 "local_ratio": 1.0, "bound_ratio": ratio, "error": self.error_limit}  # fmt: skip
        network = {"value": self.value, "local_ratio": self.local_ratio,
                   "bound_ratio": self.bound_ratio, "zeta_cosine": self.zeta_cosine,
                   "agreement": self.agreement, "error": self.error_network}  # fmt: skip
        known = (Side(name, point, predicted=True),) if math.isfinite(self.local_value) else ()
        return (*known, Side("network", network))


def compare_convolution(
    point: ConvolutionPoint, network: LinearConvolution, train: Sample, held_out: Sample
) -> ConvolutionComparison:
    """Compare a network with the point next to it.

    Parameters
    ----------
    point : ConvolutionPoint
    network : LinearConvolution
    train, held_out : Sample
    """
    trained, predicted = scores(network, held_out), np.asarray(point.predictor(held_out.X))
    return ConvolutionComparison(
        point=point,
        value=value_of(network, train),
        zeta_cosine=cosine(to_numpy(network.zeta().double()), point.zeta),
        agreement=agreement(predicted, trained),
        error_limit=error_rate(held_out.y, predicted),
        error_network=error_rate(held_out.y, trained),
    )
