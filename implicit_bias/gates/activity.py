"""Soft gates that are open, and those that the gating network's weights still change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.kinds import floats, tolerance
from .._support.shown import ReadOnly
from .._support.solve import Array

Mask = NDArray[np.bool_]


@result()
@dataclass(frozen=True, eq=False)
class GateActivity(ReadOnly):
    """Active and sensitive gates of samples; the two are *not* disjoint.

    Attributes
    ----------
    active : (n, units) boolean
        Above the threshold of activity.
    sensitive : (n, units) boolean
        With a derivative in some weight above the threshold of sensitivity, in magnitude.

    Examples
    --------
    >>> found = ib.gates.GateActivity(np.array([[True, True]]), np.array([[True, False]]))
    >>> found.both.tolist()
    [[True, False]]
    """

    active: Mask
    sensitive: Mask

    @property
    def both(self) -> Mask:
        """(n, units) gates that are active and sensitive."""
        return np.asarray(self.active & self.sensitive)


@door(
    gates=floats("n>=0 units>=0"),
    jacobian=floats("n units weights>=0: the derivatives of the same gates"),
    sensitive=tolerance,
)
def gate_activity(
    gates: Array, jacobian: Array, *, active: float, sensitive: float
) -> GateActivity:
    r"""Return the gates above `active`, and those with ``max |dG / dtheta|`` above `sensitive`.

    For ``G = (1 + eps) / (1 + exp(-beta q))`` the chain rule gives

    .. math:: \frac{\partial G}{\partial\theta} =
              \beta\, G \Bigl(1 - \frac{G}{1 + \varepsilon}\Bigr) \frac{\partial q}{\partial\theta},

    so that for ``active >= (1 + eps) / 2`` no gate is both if `sensitive` is at least
    ``beta active (1 - active / (1 + eps)) max |dq / dtheta|``. A published threshold lacks
    ``beta max |dq / dtheta|``: above it gates can be both.

    Parameters
    ----------
    gates : (n, units) array
        As `SoftGates.transform` returns them.
    jacobian : (n, units, weights) array
        Derivatives in the gating network's weights, as `SoftGates.jacobian` returns them.
    active, sensitive : float
        Thresholds.

    Returns
    -------
    GateActivity

    Raises
    ------
    ValueError
        If shapes disagree, an entry or a threshold is not finite, or `sensitive` is negative.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, on deep gated networks: active and sensitive gates.

    Examples
    --------
    >>> found = ib.gates.gate_activity([[0.9, 0.5]], [[[0.1], [1.0]]], active=0.6, sensitive=0.2)
    >>> found.active.tolist(), found.sensitive.tolist()
    ([[True, False]], [[False, True]])
    """
    steepest = np.abs(jacobian).max(axis=2, initial=0.0)
    return GateActivity(gates > active, steepest > sensitive)
