"""A trained two-layer ReLU network beside the certified local optimum next to it."""

from __future__ import annotations

import math

from ..._support.doors import result
from ..._support.solve import Status
from ...data.sample import Sample
from ...limits.relu.limit import ReLULocalLimit
from ...measures.scalars import agreement, cosine, error_rate, scores
from ...networks.relu import ReLU
from ...quantities.measured import Measured, derived, part, quantity

NAME = "local limit"
"""The name of the local optimum in tables and records."""

# Relative difference of values up to which the limits of two steps are one.
SAME = 1e-6


@result()
class ReLULimitComparison(Measured):
    """A network and the local optimum next to it, certified in the cones of its units.

    The value is half the squared norm of the weights, balanced, over the smallest margin; smaller
    is better. NaN stands for what is not known.
    """

    limit: ReLULocalLimit = part("The local optimum.", recorded=False)
    value: float = quantity(doc="Value of the network; infinite if it does not separate the data.")

    @derived(recorded=True)
    def local_value(self) -> float:
        """Value of the local optimum; infinite where none was found."""
        return self.limit.value if self.found else math.inf

    @derived(recorded=True)
    def local_status(self) -> str:
        """Name of its status: whether it is proved optimal in its cones, or of all widths."""
        return self.limit.status.name

    @derived(recorded=True)
    def local_ratio(self) -> float:
        """`local_value / value`: 1 where training has come to it."""
        return self.local_value / self.value if math.isfinite(self.local_value) else math.nan

    @derived(recorded=True)
    def local_gap(self) -> float:
        """Relative duality gap of its proof."""
        return self.limit.gap

    @derived(recorded=True)
    def local_turn(self) -> float:
        """Angle in degrees by which every unit may turn without leaving its cone."""
        return self.limit.certificate.smallest_turn

    @derived("  units, those to spare", recorded=True)
    def units(self) -> str:
        """Units of the local optimum, and how many the network has beyond these."""
        return f"{len(self.limit.units)}, {self.limit.n_spare}"

    @derived("  kinks at support samples, of own and other label", recorded=True)
    def kinks(self) -> str:
        """Pairs of a unit and a support sample on its kink, by their labels."""
        return f"{self.limit.kinks_helping}, {self.limit.kinks_opposing}"

    @derived("  best direction of a further unit, dual", ".6g", recorded=True)
    def escape_dual(self) -> float:
        """Dual function at the best direction that was found: above 1 a dead unit may help."""
        return self.limit.escape_dual

    @derived(recorded=True)
    def local_bound_ratio(self) -> float:
        """`lower bound of all widths / local_value`; NaN where no bound was computed."""
        least = self.limit.certificate.lower_bound
        return least / self.local_value if least > 0 and self.found else math.nan

    half_step: int | None = quantity("  of an earlier network, at step", "d", doc="Its step.")
    half_value: float | None = quantity(
        "  value of the local limit then", ".8g", doc="Value of the local optimum next to it."
    )

    @derived("  it is the same", {True: "yes", False: "no"}.__getitem__, recorded=True)
    def half_same(self) -> bool | None:
        """Whether both values agree to a millionth; None where there is no earlier network."""
        if self.half_value is None:
            return None
        return abs(self.half_value - self.local_value) <= SAME * self.local_value

    local_score_cosine: float = quantity()
    local_agreement: float = quantity()
    local_error: float = quantity()
    error_network: float = quantity(column="error_network", shown=False)

    @derived("  group lassos", "d", recorded=True)
    def solves(self) -> int:
        """Group lassos that its programs took."""
        return self.limit.solves

    @derived("  seconds", ".3g")
    def seconds(self) -> float:
        """Seconds that it took."""
        return self.limit.seconds

    @property
    def found(self) -> bool:
        """True if the local optimum is certified."""
        return self.limit.status is not Status.FAILED


def compare_with_relu_limit(
    limit: ReLULocalLimit,
    network: ReLU,
    held_out: Sample,
    earlier: tuple[int, ReLULocalLimit] | None = None,
) -> ReLULimitComparison:
    """Compare a network with the local optimum next to it.

    Parameters
    ----------
    limit : ReLULocalLimit
        `relu_local_limit(network, X, y)`.
    network : ReLU
    held_out : Sample
    earlier : (int, ReLULocalLimit), optional
        Step of an earlier checkpoint, and the local optimum next to it.
    """
    trained, y = scores(network, held_out), held_out.y
    predicted = (
        limit.predictor(held_out.X) if limit.status is not Status.FAILED and len(y) else None
    )
    return ReLULimitComparison(
        limit=limit,
        value=limit.start_value,
        half_step=None if earlier is None else earlier[0],
        # Where nothing was found there is neither the same optimum nor another.
        half_value=(
            None if earlier is None or earlier[1].status is Status.FAILED else earlier[1].value
        ),
        local_score_cosine=math.nan if predicted is None else cosine(predicted, trained),
        local_agreement=math.nan if predicted is None else agreement(predicted, trained),
        local_error=math.nan if predicted is None else error_rate(y, predicted),
        error_network=error_rate(y, trained) if len(y) else math.nan,
    )
