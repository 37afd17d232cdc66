"""The loss from which descent's labels agree with the limit's, by the flow of its margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...data.sample import Sample
from ...limits.limit import Limit
from ...measures.distances import Distances
from ...measures.growth.margin_flow import margin_flow
from ...quantities.formatting import rounded
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    import torch

# Labels agree from this share on.
LEVEL = 0.99
# A step solves for n multipliers: 500 samples take a hundredth of a second each, 2000 a second.
MOST_SAMPLES = 500
# In log log(1/loss): twice that of `margin_flow`, whose labels err by 1 in 1000 then.
STEP, UNTIL = 0.2, 1e6


@dataclass(frozen=True)
class AgreementAhead:
    """The log(1/loss) from which the labels of descent agree with the limit's.

    Attributes
    ----------
    level : float
        Share of held-out labels that is wanted.
    log_inverse_loss : float
        NaN where `reason` says why it is not known; infinite beyond `until`.
    until : float
        The largest log(1/loss) that was looked at.
    reason : str
    measured : bool
        True if the run itself came to it: labels agree at each of its checkpoints from there on,
        so that they do so there at the latest, and the flow predicts that they stay.
    """

    level: float
    log_inverse_loss: float
    until: float
    reason: str = ""
    measured: bool = False

    def row(self) -> tuple[str, str]:
        """Return a line of a table of text."""
        label = f"labels agree with the limit's to {self.level:.0%}"
        flow = "by the flow of the smallest margin"
        if self.reason:
            return label, f"not known: {self.reason}"
        if math.isinf(self.log_inverse_loss):
            return label, f"not up to log(1/loss) {self.until:.0e}, {flow}"
        found = rounded(self.log_inverse_loss)
        if self.measured:
            return label, f"from log(1/loss) {found} on at the latest, measured along the run"
        return label, f"from log(1/loss) about {found} on, {flow}"


def agreement_ahead(
    network: torch.nn.Module, train: Sample, held_out: Sample, limit: Limit, trajectory: Trajectory
) -> AgreementAhead:
    """Follow descent from a trained network until its held-out labels stay those of the limit.

    A network whose labels agree already has come to that on its way, with `agreement` observed
    along `trajectory`. There is a reason instead of a number where there are too many samples for a
    run to wait, or where the flow cannot begin: the network does not separate yet.
    """
    if len(train.y) > MOST_SAMPLES:
        reason = f"with more than {MOST_SAMPLES} samples call `margin_flow` on the network"
        return AgreementAhead(LEVEL, math.nan, UNTIL, reason)
    observer = Distances(limit, train, held_out, kkt=False)
    try:
        flow = margin_flow(network, *train, until=UNTIL, step=STEP, observer=observer)
    except (ValueError, FloatingPointError) as error:
        return AgreementAhead(LEVEL, math.nan, UNTIL, str(error))
    until, begins = float(flow.log_inverse_loss[-1]), float(flow.log_inverse_loss[0])
    ahead = flow.first("agreement", LEVEL)
    if ahead > begins:
        return AgreementAhead(LEVEL, ahead, until)
    reached = -float(trajectory.log_loss[_since(trajectory)])
    return AgreementAhead(LEVEL, min(reached, begins), until, measured=True)


def _since(trajectory: Trajectory) -> int:
    """Return the checkpoint from which labels agree at every one; the last if it is of another."""
    apart = np.flatnonzero(~(trajectory.observed["agreement"] >= LEVEL))
    first = int(apart[-1]) + 1 if len(apart) else 0
    return min(first, len(trajectory.step) - 1)
