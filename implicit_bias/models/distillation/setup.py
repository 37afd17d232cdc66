"""The setup of a run of linear students."""

from __future__ import annotations

from dataclasses import dataclass

from ...data.arrays import Floats
from ...runs.setup import Setup
from ...training.settings import TrainingSettings
from .data import TransferTask
from .limit import DistillationLimit


@dataclass(frozen=True, eq=False, kw_only=True)
class DistillationSetup(Setup):
    """The setup of a run, its learning rates filled in, with its task, start and limit.

    Attributes
    ----------
    task : TransferTask
        Inputs, teacher and held-out inputs.
    start : (D,) or (K, D) array
        Initial end-to-end weights of the student.
    turned : bool
        True if the direction that was drawn is reversed.
    limit : DistillationLimit
        The limit from `start`.
    settings : TrainingSettings
        The settings of training, learning rates included.
    """

    task: TransferTask
    start: Floats
    turned: bool
    limit: DistillationLimit
    settings: TrainingSettings
