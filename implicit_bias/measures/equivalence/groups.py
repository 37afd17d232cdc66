"""Grouping of trained networks that are equal up to symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse.csgraph import connected_components

from ..._support.doors import door, result
from ..._support.solve import require_tolerance
from ...quantities.measured import plain
from .alignment import align
from .canonical import canonical_form
from .measure import measure_distance
from .reading import as_weights
from .weights import Array, Indices, ReLUWeights

if TYPE_CHECKING:
    import torch


@result()
@dataclass(frozen=True, eq=False, repr=False)
class NetworkGroups:
    """Groups of equal networks, with all pairwise distances.

    Attributes
    ----------
    labels : (m,) integer array
        The group of each network; 0 is that of the first.
    distances : (m, m) array
        Distances of all pairs; infinite where sizes differ and weights are compared.
    by : {"neurons", "weights"}
        Whose distance it is: `measure_distance`, or `align` of directions, an upper bound.
    tol : float
        Networks of a group are joined by a chain of distances up to it.

    Examples
    --------
    >>> weights = ib.equivalence.ReLUWeights.from_arrays([np.eye(2), [[1.0, 1.0]]])
    >>> groups = ib.equivalence.group_networks([weights, weights])
    >>> groups.n_groups, groups.by
    (1, 'neurons')
    """

    labels: Indices
    distances: Array
    by: Literal["neurons", "weights"]
    tol: float

    @property
    def n_groups(self) -> int:
        """Number of different networks."""
        return int(self.labels.max()) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON (infinities stay floats)."""
        within, between = self.spread()
        return {
            **plain(vars(self)),
            "n_groups": self.n_groups,
            "within": within,
            "between": between,
        }

    def __repr__(self) -> str:
        within, between = self.spread()
        return (
            f"NetworkGroups({self.n_groups} of {len(self.labels)} networks differ, by {self.by}: "
            f"labels {self.labels.tolist()}; largest distance within a group {within:.3g}, "
            f"smallest between two {between:.3g})"
        )

    def spread(self) -> tuple[float, float]:
        """Return the largest distance within a group and the smallest between two (or infinity)."""
        same = np.equal.outer(self.labels, self.labels)
        apart = self.distances[~same]
        return float(self.distances[same].max()), float(apart.min()) if apart.size else np.inf


@door()
def group_networks(
    networks: Sequence[ReLUWeights | torch.nn.Module], *, tol: float = 1e-2
) -> NetworkGroups:
    """Group networks, of several seeds say, that are equal up to a positive factor.

    Two-layer networks of one output are compared as measures of neurons, so that their widths may
    differ. If one is deeper, all are aligned: weight matching may miss that two are the same, and
    never joins two that are not.

    Parameters
    ----------
    networks : sequence of ReLUWeights or Module
    tol : float
        Distance up to which two count as the same, in (0, 1). Training comes to its limit slowly:
        a look at `distances` shows whether there is a gap between small and large ones.

    Returns
    -------
    NetworkGroups

    Raises
    ------
    TypeError, ValueError
        If there are none, one is no ReLU network or constant, inputs differ, a deeper one has
        biases, or `tol` is out of range.

    Examples
    --------
    >>> networks = [ib.ReLU(3, 4, random_state=seed) for seed in (0, 1, 0)]
    >>> ib.equivalence.group_networks(networks).labels.tolist()
    [0, 1, 0]
    """
    if len(networks) == 0:
        raise ValueError("`networks` must hold a network at least, got none")
    require_tolerance(tol)
    read = [as_weights(network) for network in networks]
    shallow = all(len(w.matrices) == 2 and len(w.matrices[1]) == 1 for w in read)
    far = _neurons_apart if shallow else _weights_apart
    distances = np.zeros((len(read), len(read)))
    for i, j in combinations(range(len(read)), 2):
        distances[i, j] = distances[j, i] = far(read[i], read[j])
    _, labels = connected_components(distances <= tol, directed=False)
    first = np.unique(labels, return_index=True)[1]
    ranks = np.argsort(np.argsort(first))
    by: Literal["neurons", "weights"] = "neurons" if shallow else "weights"
    return NetworkGroups(ranks[labels].astype(np.int64), distances, by, tol)


def _neurons_apart(a: ReLUWeights, b: ReLUWeights) -> float:
    return measure_distance(a, b).distance


def _weights_apart(a: ReLUWeights, b: ReLUWeights) -> float:
    sizes = [(w.n_inputs, canonical_form(w).weights.widths, len(w.matrices[-1])) for w in (a, b)]
    return align(a, b, direction=True).distance if sizes[0] == sizes[1] else np.inf
