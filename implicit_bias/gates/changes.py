"""How the gates of a ReLU network change: between two times, and along training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._shown import Shown
from .._solve import to_numpy
from ..data.arrays import Floats

__all__ = ["GateChanges", "gate_changes"]


def gate_changes(before: Any, after: Any) -> Floats:
    """(H,) share of samples on which each unit's gate differs: its mean is the share of all gates.

    Parameters
    ----------
    before, after : (n, H) arrays or tensors
        Gates of the same samples and units at two times.

    Raises
    ------
    ValueError
        If the shapes differ or there is no sample.
    """
    a, b = np.asarray(to_numpy(before)), np.asarray(to_numpy(after))
    if a.shape != b.shape or a.ndim != 2 or a.shape[0] == 0:
        raise ValueError(
            f"`before` and `after` must have one shape (n, H) with n >= 1, got {a.shape} and "
            f"{b.shape}: compare the gates of the same samples and units"
        )
    return np.asarray(np.mean(a.astype(bool) != b.astype(bool), axis=0), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class GateChanges(Shown):
    """How gates changed along training: one entry a report of the trainer, read-only.

    Attributes
    ----------
    step : (T,) int64 array
    since_start : (T,) float64 array
        Share of all gates that differ from the first report's.
    since_last : (T,) float64 array
        Share that differ from the report before: gates that flip to and fro count each time.
    """

    step: NDArray[np.int64]
    since_start: Floats
    since_last: Floats

    def __post_init__(self) -> None:
        for array in (self.step, self.since_start, self.since_last):
            array.flags.writeable = False

    def to_dict(self) -> dict[str, list[float]]:
        """Lists, ready for JSON."""
        return {name: array.tolist() for name, array in asdict(self).items()}
