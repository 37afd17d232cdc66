"""Changes of the gates of a ReLU network: between two times, and along training."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.kinds import floats
from .._support.shown import ReadOnly, Shown
from .._support.solve import Array
from ..data.arrays import Floats


@door(
    before=floats("n H>=0"),
    after=floats("=before: compare the gates of the same samples and units"),
)
def gate_changes(before: Array, after: Array) -> Floats:
    """Return the share of samples on which each unit's gate differs between two times.

    Parameters
    ----------
    before, after : (n, H) arrays or tensors
        Gates of the same samples and units, 0 or 1.

    Returns
    -------
    (H,) float64 array
        Its mean is the share of all gates.

    Raises
    ------
    ValueError
        If the shapes differ or there is no sample.

    Examples
    --------
    >>> ib.gates.gate_changes([[1, 0], [1, 1]], [[1, 1], [1, 0]]).tolist()
    [0.0, 1.0]
    """
    return np.asarray(np.mean((before == 1) != (after == 1), axis=0), dtype=np.float64)


@result()
@dataclass(frozen=True, eq=False, repr=False)
class GateChanges(ReadOnly, Shown):
    """Changes of gates along training: read-only arrays, one entry a report of the trainer.

    Attributes
    ----------
    step : (T,) int64 array
        Gradient steps done.
    since_start : (T,) float64 array
        Share of all gates that differ from the first report's.
    since_last : (T,) float64 array
        Share that differ from the report before: gates that flip back and forth count each time.

    Examples
    --------
    >>> changes = ib.gates.GateChanges(np.array([0, 10]), np.array([0.0, 0.2]), np.zeros(2))
    >>> changes.to_dict()["since_start"]
    [0.0, 0.2]
    """

    step: NDArray[np.int64]
    since_start: Floats
    since_last: Floats

    def to_dict(self) -> dict[str, list[float]]:
        """Return the arrays as lists."""
        return {name: array.tolist() for name, array in asdict(self).items()}
