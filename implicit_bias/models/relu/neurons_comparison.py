"""The neurons of a trained two-layer network beside those that a limit names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._solve import to_numpy
from ...data.arrays import Floats
from ...equivalence.measure import MeasureDistance, measure_distance
from ...equivalence.weights import ReLUWeights
from ...limits.limit import UnitsLimit
from ...local_limits.limit import LocalLimit

__all__ = ["NeuronsBeside", "beside_limit", "beside_local_limit"]


@dataclass(frozen=True, eq=False)
class NeuronsBeside:
    """Neurons that a limit names, and how far those of a network are from them.

    Attributes
    ----------
    status : str
        Of the limit.
    certificate : float
        Its duality gap, or the residual of its first-order conditions.
    weights : ReLUWeights
        The neurons; those of 0 are left out.
    own_gates : float
        Share of samples and neurons at which the neuron is open where its gate was learned to be:
        only with all of them is the limit that of a ReLU network.
    transport : MeasureDistance
        From the neurons of the network; modulo permutations, scales, splits and a factor.
    """

    status: str
    certificate: float
    weights: ReLUWeights
    own_gates: float
    transport: MeasureDistance

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays."""
        return {
            "status": self.status,
            "certificate": self.certificate,
            "n_neurons": self.weights.widths[0],
            "own_gates": self.own_gates,
            "transport": self.transport.to_dict(),
        }


def beside_limit(
    limit: UnitsLimit, trained: ReLUWeights, X: ArrayLike, gates: ArrayLike
) -> NeuronsBeside:
    """The live units of a group lasso on a network's gates, as its neurons.

    A coefficient zeta_h is output weight times neuron; the sign of the output weight, which
    gradient flow of a balanced network keeps, is that of the trained one.

    Parameters
    ----------
    limit : UnitsLimit
        That separates, on the `gates`.
    trained : ReLUWeights
        Of the network with these gates, unit by unit.
    X : (n, D) array
    gates : (n, H) array
        Of its units, in {0, 1}.
    """
    live = to_numpy(limit.live)
    signs = np.where(trained.matrices[1][0, live] < 0, -1.0, 1.0)
    zeta, roots = limit.balanced_weights()
    W = signs[:, None] * to_numpy(zeta)[live]
    a = signs * to_numpy(roots)[live]
    weights = ReLUWeights.from_arrays([W, a[None]])
    own = _own_gates(weights, X, np.asarray(gates)[:, live])
    transport = measure_distance(trained, weights)
    return NeuronsBeside(limit.status.name, limit.gap, weights, own, transport)


def beside_local_limit(
    limit: LocalLimit, trained: ReLUWeights, X: ArrayLike, gates: ArrayLike
) -> NeuronsBeside:
    """The neurons of the KKT point next to a network whose gates are frozen as they are.

    Parameters
    ----------
    limit : LocalLimit
        Of an `FReLU` of two layers.
    trained, X, gates
        As in `beside_limit`.
    """
    W, a = (np.asarray(array) for array in limit.weights.values())
    sizes = np.abs(a[0]) * np.linalg.norm(W, axis=1)
    live = sizes > _NOTHING * sizes.max()
    weights = ReLUWeights.from_arrays([W[live], a[:, live]])
    own = _own_gates(weights, X, np.asarray(gates)[:, live])
    transport = measure_distance(trained, weights)
    return NeuronsBeside(limit.status.name, limit.residual, weights, own, transport)


# Neurons of a local limit, whose residual is 1e-10 and less, that are 0 to rounding.
_NOTHING = 1e-9


def _own_gates(weights: ReLUWeights, X: ArrayLike, gates: Floats) -> float:
    return float(np.mean((weights.pre_activations(X)[0] >= 0) == (gates > 0)))
