"""Linear networks of any depth, as functions of their end-to-end vector."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ...training.weights import (
    as_tensor,
    layer_imbalance,
    linear_factors,
    rank_one_chain,
    torch_generator,
)


class DeepLinear(torch.nn.Module):
    r"""Linear network ``f(x) = W_L ... W_1 x`` without biases, homogeneous of degree L.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    hidden_widths : sequence of int
        Widths between the layers; ``()`` is one layer, the plain linear predictor.
    init : {"orthogonal", "kaiming", "balanced"}
        The first two as in `torch.nn.init` on each matrix. "balanced" is Gaussian with
        ``W_{l+1}^T W_{l+1} = W_l W_l^T`` exactly.
    init_scale : float
        Factor on every layer; small values start near the saddle at zero.
    random_state : int or numpy Generator
        Source of the initial weights, drawn in float64 on the CPU and then converted: one seed
        gives the same network in every dtype and on every device.
    dtype, device
        Of the weights.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, D), ..., W_L (1, width_{L-1}).

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    The end-to-end vector converges in direction to the hard-margin SVM, whatever the depth
    (Z. Ji, M. Telgarsky, "Gradient descent aligns the layers of deep linear networks").
    """

    def __init__(
        self,
        n_inputs: int,
        *,
        hidden_widths: Sequence[int] = (),
        init: str = "orthogonal",
        init_scale: float = 1.0,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs}
        sizes |= {f"hidden_widths[{i}]": width for i, width in enumerate(hidden_widths)}
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"`{name}` must be at least 1, got {size}")
        if init not in INITIALISATIONS:
            raise ValueError(f"`init` must be one of {sorted(INITIALISATIONS)}, got {init!r}")
        if not 0 < init_scale < math.inf:
            raise ValueError(f"`init_scale` must be positive and finite, got {init_scale}")
        self.n_inputs = n_inputs
        widths = [n_inputs, *hidden_widths, 1]
        matrices = INITIALISATIONS[init](widths, torch_generator(random_state))
        self.layers = torch.nn.ParameterList(
            torch.nn.Parameter((init_scale * W).to(device=device, dtype=dtype)) for W in matrices
        )

    @classmethod
    def from_weights(cls, *layers: ArrayLike | Tensor, device: torch.device | str = "cpu") -> Self:
        """Build a network from W_1 (width_1, D), ..., W_L (1, width_{L-1}), in W_1's dtype.

        Raises
        ------
        ValueError
            If the shapes do not chain to one score.
        """
        matrices = [as_tensor(W) for W in layers]
        chain = [tuple(W.shape) for W in matrices]
        chained = bool(chain) and all(len(shape) == 2 for shape in chain) and chain[-1][0] == 1
        if not chained or any(b[1] != a[0] for a, b in itertools.pairwise(chain)):
            raise ValueError(
                "the layers must have shapes (width_1, D), (width_2, width_1), ..., (1, width), "
                f"got {chain}"
            )
        network = cls(
            chain[0][1],
            hidden_widths=[shape[0] for shape in chain[:-1]],
            dtype=matrices[0].dtype,
            device=device,
        )
        with torch.no_grad():
            for parameter, matrix in zip(network.layers, matrices, strict=True):
                parameter.copy_(matrix)
        return network

    @classmethod
    def from_zeta(
        cls,
        zeta: ArrayLike | Tensor,
        *,
        hidden_widths: Sequence[int] = (),
        device: torch.device | str = "cpu",
    ) -> Self:
        r"""Build the balanced network with the end-to-end vector zeta (D,).

        Its squared weight norm :math:`L \|\zeta\|^{2/L}` is the least of all.
        """
        target = as_tensor(zeta)
        norm = target.norm()
        size = norm ** (1 / (1 + len(hidden_widths)))
        first = target * (size / norm) if norm > 0 else target
        units = [
            torch.full((w,), w**-0.5, dtype=target.dtype, device=target.device)
            for w in (*hidden_widths, 1)
        ]
        return cls.from_weights(*rank_one_chain(first, units), device=device)

    @property
    def degree(self) -> int:
        """Degree of homogeneity in all weights: the number of layers."""
        return len(self.layers)

    def forward(self, X: Tensor, gates: object = None) -> Tensor:
        """Return the scores (n,) of X (n, D); `gates` are not looked at."""
        if X.ndim != 2 or X.shape[1] != self.n_inputs or X.dtype != self.layers[0].dtype:
            raise ValueError(
                f"`X` must be a {self.layers[0].dtype} tensor of shape (n, {self.n_inputs}), got "
                f"{X.dtype} {tuple(X.shape)}: convert with torch.as_tensor(X, dtype=...)"
            )
        return X @ self.zeta()

    def zeta(self) -> Tensor:
        """Return the end-to-end vector (D,), multiplied from the top: vectors all the way."""
        product: Tensor = self.layers[-1]
        for layer in range(len(self.layers) - 2, -1, -1):
            product = product @ self.layers[layer]
        return product.view(self.n_inputs)

    def unit_norms(self) -> Tensor:
        """Return the norm of the end-to-end vector (1,): one unit."""
        norm: Tensor = torch.linalg.vector_norm(self.zeta())
        return norm.view(1)

    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``||sum_n coefficients_n x_n||`` (1,)."""
        norm: Tensor = torch.linalg.vector_norm(coefficients @ X)
        return norm.view(1)

    def imbalance(self) -> Tensor:
        """Return ``||incoming weights||^2 - ||outgoing weights||^2`` of every hidden unit.

        Shape (sum of hidden widths,). Gradient flow conserves it; it is 0 for balanced weights.
        """
        return layer_imbalance(list(self.layers))

    def gradient_factors(
        self, X: Tensor, gates: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Return, a layer, what each sample's gradient is made of: (n, a) and (n, b).

        The gradient of the score f(x_n) in that layer's weights, as a matrix (a, b), is the outer
        product of the two rows n. Inner products of gradients follow without forming one.
        """
        return linear_factors(X, list(self.layers))


def _orthogonal(widths: list[int], rng: torch.Generator) -> list[Tensor]:
    return _layerwise(torch.nn.init.orthogonal_, widths, rng)


def _kaiming(widths: list[int], rng: torch.Generator) -> list[Tensor]:
    return _layerwise(torch.nn.init.kaiming_normal_, widths, rng)


def _balanced(widths: list[int], rng: torch.Generator) -> list[Tensor]:
    first = torch.randn(widths[0], generator=rng, dtype=torch.float64) / math.sqrt(widths[0])
    draws = [torch.randn(w, generator=rng, dtype=torch.float64) for w in widths[1:-1]]
    units = [draw / draw.norm() for draw in draws] + [torch.ones(1, dtype=torch.float64)]
    return rank_one_chain(first, units)


INITIALISATIONS: Mapping[str, Callable[[list[int], torch.Generator], list[Tensor]]] = (
    MappingProxyType({"orthogonal": _orthogonal, "kaiming": _kaiming, "balanced": _balanced})
)


def _layerwise(
    fill: Callable[..., Tensor], widths: list[int], rng: torch.Generator
) -> list[Tensor]:
    shapes = zip(widths[1:], widths[:-1], strict=True)
    return [fill(torch.empty(shape, dtype=torch.float64), generator=rng) for shape in shapes]
