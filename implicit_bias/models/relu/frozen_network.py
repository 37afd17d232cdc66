"""Frozen-gate ReLU network: a gated first layer, linear layers above it."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from ...training.network import check_inputs, check_start
from ...training.weights import (
    INITS,
    as_tensor,
    balanced_gated,
    copy_weights,
    draw_gated,
    end_to_end,
    layer_imbalance,
    linear_factors,
    torch_generator,
    upper_layers,
)


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
        The first and the second as in `torch.nn.init` on each matrix. "balanced" is a Gaussian
        gated layer with upper layers that make ``|head's share of unit h| = ||w1[h]||`` and
        ``V_{l+1}^T V_{l+1} = V_l V_l^T`` hold exactly.
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
        sizes = {"n_inputs": n_inputs, "n_units": n_units}
        sizes |= {f"upper_widths[{i}]": width for i, width in enumerate(upper_widths)}
        check_start(sizes, init_scale, init=init, inits=INITS, device=device)
        self.n_inputs, self.n_units = n_inputs, n_units
        rng = torch_generator(random_state)
        w1, upper = draw_gated(init, (n_units, 1, n_inputs), upper_widths, rng)
        layers = [(init_scale * V).to(device=device, dtype=dtype) for V in (w1[:, 0], *upper)]
        self.w1 = torch.nn.Parameter(layers[0])
        self.upper = torch.nn.ParameterList([torch.nn.Parameter(V) for V in layers[1:]])

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
        layers = upper_layers(upper, first)
        network = cls(
            first.shape[1], len(first), upper_widths=[len(V) for V in layers[:-1]],
            dtype=first.dtype, device=device,
        )  # fmt: skip
        copy_weights([network.w1, *network.upper], [first, *layers])
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

        It is that of a gated linear network with one context a unit.
        """
        w1, *upper = balanced_gated(_matrix("zeta", zeta)[:, None], upper_widths)
        return cls.from_weights(w1[:, 0], *upper, device=device)

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
        check_inputs(X, self.w1, self.n_inputs)
        self._check_gates(gates, X.shape[0])
        # Weights first: networks trained side by side then share one product with the inputs.
        return self.head() @ (gates.T * (self.w1 @ X.T))

    def head(self) -> Tensor:
        """Return the product (H,) of the upper matrices."""
        return end_to_end(list(self.upper))

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
        """Of every gated unit and those above, (H + widths above,): see `HasImbalance`."""
        return layer_imbalance([self.w1, *self.upper])

    def gradient_factors(self, X: Tensor, gates: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each layer's factors of the gradients: see `HasGradientFactors`."""
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
