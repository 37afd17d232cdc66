"""The neurons of a trained two-layer network beside those that a limit names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..._support.solve import to_numpy
from ...data.arrays import Floats
from ...limits.limit import UnitsLimit
from ...limits.relu.limit import ReLULocalLimit
from ...measures.equivalence.measure import MeasureDistance, measure_distance
from ...measures.equivalence.weights import ReLUWeights
from ...quantities.measured import Measured, derived, part, quantity


class NeuronComparison(Measured):
    """Neurons that a limit names, and how far those of a network are from them.

    The transport is modulo permutations, scales, splits and a factor.
    """

    status: str = quantity(doc="Name of the status of the limit.")
    certificate: float = quantity()
    weights: ReLUWeights = part("The neurons; those of 0 are left out.", recorded=False)

    @derived("neurons", "d", recorded=True)
    def n_neurons(self) -> int:
        """Neurons that are not 0."""
        return self.weights.widths[0]

    own_gates: float = quantity(
        "gates that they set as learned",
        ".2%",
        ideal=1.0,
        doc="Share of samples and neurons at which the neuron is open where its gate was learned "
        "to be: only with all of them is the limit that of a ReLU network.",
    )
    transport: MeasureDistance = part("Optimal transport from the neurons of the network.")

    @derived()
    def neuron_distance(self) -> float:
        """Cost of that transport."""
        return self.transport.distance

    @derived("  its gap", ".1g")
    def gap(self) -> float:
        """Cost above its certified lower bound."""
        return self.transport.gap

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays."""
        return super().to_dict() | {"transport": self.transport.to_dict()}


def compare_with_limit(
    limit: UnitsLimit, trained: ReLUWeights, X: ArrayLike, gates: ArrayLike
) -> NeuronComparison:
    """Compare a network's neurons with the live units of a group lasso on its gates.

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
        Of its units: 1 where they are open.
    """
    live = to_numpy(limit.live)
    signs = np.where(trained.matrices[1][0, live] < 0, -1.0, 1.0)
    zeta, roots = limit.balanced_weights()
    W = signs[:, None] * to_numpy(zeta)[live]
    a = signs * to_numpy(roots)[live]
    return _compare(limit, (W, a[None]), trained, X, gates, live)


def compare_with_local_limit(
    limit: ReLULocalLimit, trained: ReLUWeights, X: ArrayLike
) -> NeuronComparison:
    """Compare a network's neurons with those of the certified local optimum next to it.

    That is a ReLU network, so that its neurons set their gates themselves.

    Parameters
    ----------
    limit : ReLULocalLimit
        That was found.
    trained : ReLUWeights
    X : (n, D) array
    """
    roots = np.sqrt(np.linalg.norm(limit.units, axis=1))
    neurons = limit.units / roots[:, None], (limit.signs * roots)[None]
    gates = np.asarray(X) @ limit.units.T >= 0
    every = np.ones(len(roots), dtype=bool)
    return _compare(limit, neurons, trained, X, gates, every)


def _compare(
    limit: UnitsLimit | ReLULocalLimit,
    neurons: tuple[Floats, Floats],
    trained: ReLUWeights,
    X: ArrayLike,
    gates: ArrayLike,
    live: Any,
) -> NeuronComparison:
    weights = ReLUWeights.from_arrays(neurons, slope=trained.slope)
    opened = weights.pre_activations(X)[0] >= 0
    return NeuronComparison(
        status=limit.status.name,
        certificate=limit.gap,
        weights=weights,
        own_gates=float(np.mean(opened == (np.asarray(gates)[:, live] == 1))),
        transport=measure_distance(trained, weights),
    )
