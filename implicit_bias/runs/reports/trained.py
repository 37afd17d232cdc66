"""A network as training has left it, and what its trajectory says of that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...quantities.formatting import loss_in_words
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    import torch

# By how much log(loss) rises in a run that diverged.
RISE = math.log(10.0)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network and the course of its training.

    Attributes
    ----------
    network : Module
    trajectory : Trajectory
    margins : bool
        False where scores are no margins, so that the network has nothing to separate.
    among : str
        Its trainer, in names of files, where others have trained networks beside it.
    columns : bool
        False where no table of the trajectory's columns is saved, but its path.
    """

    network: torch.nn.Module
    trajectory: Trajectory
    margins: bool = True
    among: str = ""
    columns: bool = True

    @property
    def separates(self) -> bool:
        """True if it separates its training data."""
        return bool(self.trajectory.smallest_margin[-1] > 0)


def shortfall(trajectory: Trajectory, name: str = "the network") -> str:
    """Return a sentence where a run that ended does not separate its data; empty otherwise."""
    if not trajectory.finished:
        return ""
    if diverged := divergence(trajectory):
        return f"{name} diverged {diverged}"
    lacking = unseparated(trajectory)
    return f"{name} does not separate its training data {lacking}" if lacking else ""


def held_back(trajectory: Trajectory, otherwise: str = "") -> str:
    """Return what keeps a network from its limit, as far as its course tells, or `otherwise`."""
    return unseparated(trajectory) or trajectory.stopped or otherwise


def unseparated(trajectory: Trajectory) -> str:
    """Return after how many steps a network does not separate its data, and the way out."""
    margin = float(trajectory.smallest_margin[-1])
    if not margin <= 0:
        return ""
    if margin == 0:
        way = trajectory.stopped or (
            "steps may have no effect there: give a smaller `--learning-rate` or another `--seed`"
        )
        return (
            f"after {int(trajectory.step[-1])} steps: its score of some sample is exactly 0, as "
            f"where all units are closed, and {way}"
        )
    way = trajectory.stopped or "give more `--steps`, or take another `--trainer` or `--seed`"
    return f"after {int(trajectory.step[-1])} steps (smallest margin {margin:.3g}): {way}"


def divergence(trajectory: Trajectory) -> str:
    """Return from which step on the loss stayed above that of the start, of a run that diverged.

    That is a run that ends without separating its data, at more than ten times its first loss, and
    with weights no shorter than at first: trainers that find their own rate begin anew from shorter
    ones.
    """
    rise, norm = trajectory.log_loss - trajectory.log_loss[0], trajectory.weight_norm
    if not (trajectory.smallest_margin[-1] <= 0 and rise[-1] > RISE and norm[-1] >= norm[0]):
        return ""
    since = trajectory.step[np.flatnonzero(rise <= 0)[-1] + 1]
    first, last = (loss_in_words(float(trajectory.log_loss[row])) for row in (0, -1))
    return (
        f"from step {int(since)} on: the loss rose from {first} to {last}: give a smaller "
        "`--learning-rate`, or smaller initial weights"
    )
