"""Soft gates that are open, and those that the gating network's weights still change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, result
from .._support.shown import ReadOnly
from .._support.solve import Array, to_numpy

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


@door()
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
    values = np.asarray(to_numpy(gates), dtype=float)
    slopes = np.asarray(to_numpy(jacobian), dtype=float)
    if values.ndim != 2 or slopes.ndim != 3 or slopes.shape[:2] != values.shape:
        raise ValueError(
            "`gates` must have shape (n, units) and `jacobian` (n, units, weights), got "
            f"{values.shape} and {slopes.shape}: the derivatives of the same gates"
        )
    if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
        raise ValueError("`gates` and `jacobian` must be finite: look for NaN among them")
    if not (np.isfinite(active) and 0 <= sensitive < np.inf):
        raise ValueError(
            "`active` must be finite and `sensitive` finite and at least 0, got "
            f"{active} and {sensitive}"
        )
    steepest = np.abs(slopes).max(axis=2, initial=0.0)
    return GateActivity(values > active, steepest > sensitive)
