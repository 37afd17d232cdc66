"""ReLU networks near zero: two balanced layers, and a deeper residual network."""

import itertools
import math
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.doors import door
from .._support.kinds import count, fraction, weights
from .protocols import check_inputs, check_start
from .weights import as_tensor, copy_weights, gated_dual_norms


class BalancedReLU(torch.nn.Module):
    r"""Two-layer ReLU network without biases, balanced and small at initialisation.

    .. math:: f(x) = \sum_j a_j \, \mathrm{relu}(\langle w_j, x \rangle), \qquad
              \|w_j\| = |a_j| = \lambda .

    Directions are uniform on the sphere and signs of a are fair coins. Gradient flow keeps
    :math:`a_j^2 - \|w_j\|^2`, so the network stays balanced and the signs of a stay.

    Parameters
    ----------
    n_inputs, n_units : int
        D and the width p.
    slope : float
        Of a neuron where it is inactive, in [0, 1): above 0 it is leaky.
    init_scale : float
        lambda; the theorem needs it small.
    random_state : int or numpy Generator
        Source of the initial weights, drawn in float64 on the CPU and then converted.
    dtype : torch.dtype
    device : torch.device or str
        Dtype and device of the weights.

    Attributes
    ----------
    W : Parameter (p, D)
        Neurons w_j, one a row.
    a : Parameter (p,)
        Weights of the neurons in the score.
    slope : float

    Raises
    ------
    ValueError
        If a size is not positive, or `slope` or `init_scale` is out of range.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equation (3.2) and section 3.1.

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.BalancedReLU(3, n_units=5)
    >>> network(torch.ones(2, 3).double()).shape, bool(network.imbalance().abs().max() < 1e-15)
    (torch.Size([2]), True)
    """

    degree = 2
    slope: float = 0.0  # of networks in older files

    @door(slope=fraction)
    def __init__(
        self,
        n_inputs: int,
        n_units: int = 100,
        *,
        slope: float = 0.0,
        init_scale: float = 0.01,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_units": n_units}
        check_start(sizes, init_scale, (n_units, n_inputs), device=device)
        rng = np.random.default_rng(random_state)
        W = rng.normal(size=(n_units, n_inputs))
        W *= init_scale / np.linalg.norm(W, axis=1, keepdims=True)
        a = init_scale * rng.choice([-1.0, 1.0], size=n_units)
        self.slope = float(slope)
        self.W = _parameter(W, dtype, device)
        self.a = _parameter(a, dtype, device)

    @classmethod
    @door(W=weights("p D"), a=weights("p"), slope=fraction)
    def from_weights(
        cls,
        W: ArrayLike | Tensor,
        a: ArrayLike | Tensor,
        *,
        slope: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build a network from W (p, D) and a (p,), balanced or not, in the dtype of `W`.

        Raises
        ------
        ValueError
            If the shapes do not fit, or `slope` is out of range.
        """
        first, second = as_tensor(W), as_tensor(a)
        width, n_inputs = first.shape
        network = cls(n_inputs, width, slope=slope, dtype=first.dtype, device=device)
        copy_weights([network.W, network.a], [first, second])
        return network

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` are not used."""
        check_inputs(X, self.W, self.W.shape[1])
        return self._activation(X @ self.W.T) @ self.a

    def first_layer(self) -> Tensor:
        """Return the neurons (p, D), one a row."""
        return self.W

    def output_weights(self) -> Tensor:
        """Return the weight (p,) of each neuron in the score."""
        return self.a

    def zeta(self) -> Tensor:
        """Return ``sum_j a_j w_j`` over the positive and over the negative a_j: (2, D).

        On data of which each neuron is active on one class, the network is these two linear maps.
        """
        products = self.a[:, None] * self.W
        positive = (self.a > 0)[:, None]
        zeros = torch.zeros_like(products)
        parts = [torch.where(part, products, zeros).sum(0) for part in (positive, ~positive)]
        return torch.stack(parts)

    def unit_norms(self) -> Tensor:
        """Return ``|a_j| ||w_j||`` (p,)."""
        norms: Tensor = self.W.norm(dim=1)
        return self.a.abs() * norms

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``||sum_n coefficients_n g_j(x_n) x_n||`` (p,), present gates."""
        return gated_dual_norms(self._slopes(X @ self.W.T), coefficients, X)

    @door()
    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return the gates (n, p): boolean, whether ``<w_j, x_n> > 0``; of leaky units slope or 1.

        They are what products with the neurons are multiplied by.
        """
        inputs = torch.as_tensor(X).to(self.W)
        check_inputs(inputs, self.W, self.W.shape[1])
        with torch.no_grad():
            return self._slopes(inputs @ self.W.T)

    def _activation(self, z: Tensor) -> Tensor:
        return torch.where(z > 0, z, self.slope * z) if self.slope else torch.relu(z)

    def _slopes(self, z: Tensor) -> Tensor:
        return torch.where(z > 0, torch.ones_like(z), self.slope) if self.slope else z > 0

    def extra_repr(self) -> str:
        """Return what the network is beside its weights."""
        return f"slope={self.slope}" if self.slope else ""

    def imbalance(self) -> Tensor:
        """Return ``||w_j||^2 - a_j^2`` (p,), which gradient flow conserves; 0 at the start."""
        return self.W.square().sum(1) - self.a.square()

    @door()
    def gradient_factors(self, X: Tensor, gates: object = None) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        hidden = X @ self.W.T
        outer = self._slopes(hidden) * self.a
        return [(outer, X), (X.new_ones(len(X), 1), self._activation(hidden))]


class ResidualReLU(torch.nn.Module):
    r"""ReLU network with skip connections, whose layers are observed to approach rank two.

    .. math:: h_1 = W_1 x, \qquad h_l = h_{l-1} + W_l \mathrm{relu}(h_{l-1}), \qquad
              f(x) = W_L \mathrm{relu}(h_{L-1}) .

    Not homogeneous in its weights, for the skips carry none: no theorem covers it.

    Parameters
    ----------
    n_inputs, n_units : int
        D and the width p.
    n_layers : int
        L, at least 2; with 2 it is the two-layer network.
    init_scale : float
        Factor on weights drawn like those of `torch.nn.Linear`, uniform in
        ``+- 1 / sqrt(fan_in)``.
    random_state : int or numpy Generator
        Source of the initial weights, drawn in float64 on the CPU and then converted.
    dtype : torch.dtype
    device : torch.device or str
        Dtype and device of the weights.

    Attributes
    ----------
    layers : ParameterList
        W_1 (p, D), W_2, ..., W_{L-1} (p, p), W_L (1, p).

    Raises
    ------
    ValueError
        If a size is too small or `init_scale` is not positive and finite.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equation (3.30).

    Examples
    --------
    >>> network = ib.networks.ResidualReLU(3, n_units=5, n_layers=3)
    >>> [tuple(layer.shape) for layer in network.layers]
    [(5, 3), (5, 5), (1, 5)]
    """

    @door(n_layers=count(2))
    def __init__(
        self,
        n_inputs: int,
        n_units: int = 100,
        *,
        n_layers: int = 4,
        init_scale: float = 0.05,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_units": n_units, "n_layers": n_layers}
        shapes = (n_units, n_inputs), (n_layers - 2, n_units, n_units)
        check_start(sizes, init_scale, *shapes, device=device)
        rng = np.random.default_rng(random_state)
        widths = [n_inputs, *[n_units] * (n_layers - 1), 1]
        self.layers = torch.nn.ParameterList(
            _parameter(init_scale * rng.uniform(-1, 1, (m, k)) / math.sqrt(k), dtype, device)
            for k, m in itertools.pairwise(widths)
        )

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` are not used."""
        first, *middle, last = self.layers
        check_inputs(X, first, first.shape[1])
        hidden = X @ first.T
        for V in middle:
            hidden = hidden + torch.relu(hidden) @ V.T
        scores: Tensor = torch.relu(hidden) @ last[0]
        return scores

    def first_layer(self) -> Tensor:
        """Return W_1 (p, D)."""
        first: Tensor = self.layers[0]
        return first


def _parameter(
    values: np.ndarray, dtype: torch.dtype, device: torch.device | str
) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.as_tensor(values).to(device=device, dtype=dtype))
