"""A network's margin in the norm that its optimiser induces, certified by its own loss weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._support.solve import GatedRows, Norm, RelativeMargins, to_numpy
from .._support.words import WeightNorm
from ..limits.exact.optimiser_norms import InducedNorm
from .scalars import network_zeta

if TYPE_CHECKING:
    import torch

Array = NDArray[np.float64]

# Loss weights exp(-b m) are tried at these multiples of b = 1, what the loss itself has: before a
# network has come far they are too even, and after momentum too uneven.
TEMPERATURES = 2.0 ** np.arange(-8, 5)


@dataclass(frozen=True, eq=False)
class OwnNorm:
    """The program in the norm that an optimiser induces on the coefficients of a network.

    Attributes
    ----------
    induced : InducedNorm
    image : GatedRows or RelativeMargins
        Margins of coefficients (H, Q), or relative ones of K classes.
    layers : pair of str
        Norms on the layers: of all but the last, and of the last.
    lower : float
        Certified lower bound of the program's optimum; 0 where it has not been solved.
    upper : float
        Certified upper bound of it; infinite where it has not been solved.
    limit : bool
        Whether it is the program of the limit that the run compares with.
    """

    induced: InducedNorm
    image: GatedRows | RelativeMargins
    layers: tuple[WeightNorm, WeightNorm]
    lower: float = 0.0
    upper: float = math.inf
    limit: bool = False

    @property
    def euclidean(self) -> bool:
        """True for gradient descent, whose KKT points are those of the Euclidean norm."""
        return self.layers == ("l2", "l2")

    def value(self, network: torch.nn.Module) -> float:
        """Return an upper bound of the norm of a network's coefficients; NaN without any."""
        zeta = network_zeta(network)
        if zeta is None:
            return math.nan
        sizes = layer_norms(network, self.layers)
        return self.induced.value_above(zeta.reshape(self.image.shape), math.prod(sizes))

    def largest_margin(self, margins: Array) -> float:
        """Return an upper bound of every margin per unit of norm, by the weights of a loss.

        Weights p of samples are multipliers: the largest margin is at most N*(A'p) / sum p.

        Parameters
        ----------
        margins : (m,) array
            Of a network on the training sample, which weigh its samples by exp(-b m); of K classes
            those of all pairs of a sample and another class.
        """
        least = math.inf
        for b in TEMPERATURES:
            weights = np.exp(-b * (margins - margins.min()))
            V = self.image.adjoint(weights)
            least = min(least, self.induced.dual_above(V) / float(weights.sum()))
        return least

    def ratio(self, margin: float, network: torch.nn.Module, lower: float | None = None) -> float:
        """Return the margin per unit of norm over the largest that there is, at least that."""
        size = self.value(network)
        return margin / size * (self.lower if lower is None else lower) if size > 0 else math.nan


def layer_norms(network: torch.nn.Module, layers: tuple[WeightNorm, WeightNorm]) -> Sequence[float]:
    """Return the norm of each layer of a network, all but the last in the first of two norms."""
    weights = [to_numpy(p.detach().double()) for p in network.parameters() if p.requires_grad]
    below, last = layers
    names = [below] * (len(weights) - 1) + [last] if len(weights) > 1 else [below]
    matrices = [w.reshape(1, -1) if w.ndim < 2 else w.reshape(len(w), -1) for w in weights]
    return [Norm.of(name).value(W) for name, W in zip(names, matrices, strict=True)]
