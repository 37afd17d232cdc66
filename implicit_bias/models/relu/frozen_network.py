"""Frozen-gate ReLU network: a gated first layer, linear layers above it."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from ...training.weights import as_tensor, layer_imbalance, linear_factors
from ..gln.network import GLN


class FReLU(torch.nn.Module):
    r"""ReLU network whose gates are given with the data and never change.

    .. math:: f(x) = \sum_h \mathrm{head}_h \, g_h(x) \langle w_1[h], x \rangle,
              \qquad \mathrm{head} = V_L \cdots V_1, \qquad g_h(x) \in \{0, 1\} .

    It has no biases; as a function it depends on ``zeta[h] = head[h] w1[h]`` alone.

    Parameters
    ----------
    n_inputs, n_units : int
        D and H, the constant column counted in D.
    upper_widths : sequence of int
        Widths of linear layers between the gated layer and the score; ``()`` is two layers.
    init : {"kaiming", "orthogonal", "balanced"}
        As in `GLN` with one context a unit.
    init_scale : float
        Factor on every layer.
    random_state : int or numpy Generator
        Source of the initial weights, drawn in float64 on the CPU and then converted.
    dtype, device
        Of the weights.

    Attributes
    ----------
    w1 : Parameter (H, D)
    upper : ParameterList
        V_1 (width_1, H), ..., V_L (1, width_{L-1}); ``w2`` (1, H) if there are two layers.

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Limit of training: minimum of ``sum_h ||zeta_h||`` under the margin constraints (S. Lippl,
    L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated linear
    networks", equation 22); upper linear layers do not change it.
    """

    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        *,
        upper_widths: Sequence[int] = (),
        init: str = "kaiming",
        init_scale: float = 1.0,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        gated = GLN(
            n_inputs, n_units, 1, upper_widths=upper_widths, init=init, init_scale=init_scale,
            random_state=random_state, dtype=dtype, device=device,
        )  # fmt: skip
        self.n_inputs, self.n_units = n_inputs, n_units
        self.w1 = torch.nn.Parameter(gated.w1.detach()[:, 0])
        self.upper = gated.upper

    @classmethod
    def from_weights(
        cls, w1: ArrayLike | Tensor, *upper: ArrayLike | Tensor, device: torch.device | str = "cpu"
    ) -> Self:
        """Build a network from w1 (H, D) and V_1, ..., V_L; a lone w2 may have shape (H,).

        The dtype is that of `w1`.

        Raises
        ------
        ValueError
            If the shapes do not chain from H to 1.
        """
        first = _matrix("w1", w1)
        layers = [as_tensor(V) for V in upper]
        if len(layers) == 1 and layers[0].ndim == 1:
            layers = [layers[0][None, :]]
        chain = [tuple(V.shape) for V in layers]
        widths = [first.shape[0], *(shape[0] for shape in chain if shape)]
        wanted = list(zip(widths[1:], widths[:-1], strict=True))
        if not chain or chain != wanted or widths[-1] != 1:
            raise ValueError(
                f"the upper matrices must have shapes (width_1, {widths[0]}), ..., (1, width) on "
                f"top of `w1` {tuple(first.shape)}, got {chain}: one column a unit below"
            )
        network = cls(
            first.shape[1], widths[0], upper_widths=widths[1:-1], dtype=first.dtype, device=device
        )
        with torch.no_grad():
            network.w1.copy_(first)
            for parameter, matrix in zip(network.upper, layers, strict=True):
                parameter.copy_(matrix)
        return network

    @classmethod
    def from_zeta(
        cls,
        zeta: ArrayLike | Tensor,
        *,
        upper_widths: Sequence[int] = (),
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build the balanced network: of all weights with this zeta (H, D), the shortest.

        See `GLN.from_zeta`, of which this is the case of one context a unit.
        """
        target = _matrix("zeta", zeta)
        gated = GLN.from_zeta(target[:, None], upper_widths=upper_widths)
        upper = [V.detach() for V in gated.upper]
        return cls.from_weights(gated.w1.detach()[:, 0], *upper, device=device)

    @property
    def degree(self) -> int:
        """Degree of homogeneity in all weights: the number of layers."""
        return 1 + len(self.upper)

    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, H) once and place them in the dtype and on the device of the weights.

        Raises
        ------
        ValueError
            If their shape is wrong or one of them is neither 0 nor 1.
        """
        g = as_tensor(gates)
        self._check_gates(g, g.shape[0] if g.ndim else 0)
        g = g.to(self.w1)
        if not bool(((g == 0) | (g == 1)).all()):
            raise ValueError(
                "`gates` must be exactly 0 (closed) or 1 (open): compare soft gates with a "
                "threshold first"
            )
        return g

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,) of X (n, D) under gates (n, H)."""
        if X.ndim != 2 or X.shape[1] != self.n_inputs or X.dtype != self.w1.dtype:
            raise ValueError(
                f"`X` must be a {self.w1.dtype} tensor of shape (n, {self.n_inputs}), got "
                f"{X.dtype} {tuple(X.shape)}: convert with torch.as_tensor(X, dtype=...)"
            )
        self._check_gates(gates, X.shape[0])
        # Weights first: networks trained side by side then share one product with the inputs.
        return self.head() @ (gates.T * (self.w1 @ X.T))

    def head(self) -> Tensor:
        """Return the product (H,) of the upper matrices."""
        product: Tensor = self.upper[-1]
        for layer in range(len(self.upper) - 2, -1, -1):
            product = product @ self.upper[layer]
        return product.view(self.n_units)

    def zeta(self) -> Tensor:
        """Return ``head[h] w1[h]`` (H, D)."""
        return self.head()[:, None] * self.w1

    def unit_norms(self) -> Tensor:
        """Return the norms ``||zeta[h]||`` (H,)."""
        first: Tensor = torch.linalg.vector_norm(self.w1, dim=1)
        return self.head().abs() * first

    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: Tensor) -> Tensor:
        """Return ``||v_h||`` (H,), ``v_h = sum_n coefficients_n g_h(x_n) x_n``."""
        v = (gates.to(X.dtype) * coefficients[:, None]).T @ X
        norms: Tensor = torch.linalg.vector_norm(v, dim=1)
        return norms

    def imbalance(self) -> Tensor:
        """Return ``||incoming weights||^2 - ||outgoing weights||^2`` of every hidden unit.

        Shape (H + widths above,). Gradient flow conserves it; it is 0 for balanced weights.
        """
        return layer_imbalance([self.w1, *self.upper])

    def gradient_factors(self, X: Tensor, gates: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return, a layer, what each sample's gradient is made of: (n, a) and (n, b).

        The gradient of the score f(x_n) in that layer's weights, as a matrix (a, b), is the outer
        product of the two rows n. Inner products of gradients follow without forming one.
        """
        hidden = gates * linear(X, self.w1)
        return [(gates * self.head(), X), *linear_factors(hidden, list(self.upper))]

    def _check_gates(self, gates: Tensor, n: int) -> None:
        if tuple(gates.shape) != (n, self.n_units):
            raise ValueError(
                f"`gates` must have shape ({n}, {self.n_units}), got {tuple(gates.shape)}: "
                "one gate a sample and unit"
            )


def _matrix(name: str, values: ArrayLike | Tensor) -> Tensor:
    matrix = as_tensor(values)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"`{name}` must have shape (H, D) with H, D >= 1, got {tuple(matrix.shape)}"
        )
    return matrix if matrix.is_floating_point() else matrix.to(torch.float64)
