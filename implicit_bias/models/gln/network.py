"""Gated linear network: a gated first layer, linear layers above it."""

from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

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


class GLN(torch.nn.Module):
    r"""Gated linear network: unit h acts linearly on x with the weights of its context on x.

    .. math:: f(x) = \sum_h \mathrm{head}_h \langle w_1[h, c_h(x)], x \rangle,
              \qquad \mathrm{head} = V_L \cdots V_1 .

    It has no biases, so it is homogeneous of degree `degree` in its weights; a bias is a constant
    column of X. As a function it depends on ``zeta[h, c] = head[h] w1[h, c]`` alone.

    Parameters
    ----------
    n_inputs, n_units, n_contexts : int
        D, H and C, the constant column counted in D.
    upper_widths : sequence of int
        Widths of linear layers between the gated layer and the score; ``()`` is two layers.
    init : {"orthogonal", "kaiming", "balanced"}
        The first two as in `torch.nn.init` on each layer's matrix, (H C, D) for the gated one.
        "balanced" is a Gaussian gated layer with upper layers that make
        ``|head's share of unit h| = ||w1[h]||`` and ``V_{l+1}^T V_{l+1} = V_l V_l^T`` hold exactly.
    init_scale : float
        Factor on every layer.
    random_state : int or numpy Generator
        Source of the initial weights, drawn in float64 on the CPU and then converted: one seed
        gives the same network in every dtype and on every device.
    dtype, device
        Of the weights.

    Attributes
    ----------
    w1 : Parameter (H, C, D)
    upper : ParameterList
        V_1 (width_1, H), ..., V_L (1, width_{L-1}); ``w2`` (1, H) if there are two layers.

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    References
    ----------
    Theorem for two layers: minimum of ``sum_h ||zeta_h||_F`` under the margin constraints
    (S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", equations 14-20); the same limit holds for any number of upper layers.
    """

    def __init__(
        self,
        n_inputs: int,
        n_units: int,
        n_contexts: int,
        *,
        upper_widths: Sequence[int] = (),
        init: str = "orthogonal",
        init_scale: float = 1.0,
        random_state: int | np.random.Generator = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, "n_units": n_units, "n_contexts": n_contexts}
        sizes |= {f"upper_widths[{i}]": width for i, width in enumerate(upper_widths)}
        check_start(sizes, init_scale, init=init, inits=INITS, device=device)
        self.n_inputs, self.n_units, self.n_contexts = n_inputs, n_units, n_contexts
        rng = torch_generator(random_state)
        w1, upper = draw_gated(init, (n_units, n_contexts, n_inputs), upper_widths, rng)
        layers = [(init_scale * V).to(device=device, dtype=dtype) for V in (w1, *upper)]
        self.w1 = torch.nn.Parameter(layers[0])
        self.upper = torch.nn.ParameterList([torch.nn.Parameter(V) for V in layers[1:]])

    @classmethod
    def from_weights(
        cls, w1: ArrayLike | Tensor, *upper: ArrayLike | Tensor, device: torch.device | str = "cpu"
    ) -> Self:
        """Build a network from w1 (H, C, D) and V_1, ..., V_L; a lone w2 may have shape (H,).

        The dtype is that of `w1`.

        Raises
        ------
        ValueError
            If the shapes do not chain from H to 1.
        """
        first = as_tensor(w1)
        if first.ndim != 3:
            raise ValueError(f"`w1` must have shape (H, C, D), got {tuple(first.shape)}")
        layers = upper_layers(upper, first)
        n_units, n_contexts, n_inputs = first.shape
        network = cls(
            n_inputs, n_units, n_contexts, upper_widths=[len(V) for V in layers[:-1]],
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
        r"""Build the balanced network: of all weights with this zeta (H, C, D), the shortest.

        With L upper matrices its squared weight norm is
        :math:`(L + 1) (\sum_h \|\zeta_h\|)^{2/(L+1)}`; two layers: :math:`2 \sum_h \|\zeta_h\|`.

        References
        ----------
        Lippl, Abbott and Chung, proposition B.8, for two layers.
        """
        w1, *upper = balanced_gated(as_tensor(zeta), upper_widths)
        return cls.from_weights(w1, *upper, device=device)

    @property
    def degree(self) -> int:
        """Degree of homogeneity in all weights: the number of layers."""
        return 1 + len(self.upper)

    def prepare(self, contexts: ArrayLike | Tensor) -> Tensor:
        """Check contexts (n, H) once and place them as int64 on the network's device.

        `forward` leaves the range to the gather it does, so that it never has to wait for a GPU.

        Raises
        ------
        TypeError
            If the contexts are not integers.
        ValueError
            If their shape or range is wrong.
        """
        c = as_tensor(contexts)
        self._check_contexts(c, c.shape[0] if c.ndim else 0)
        if c.numel() and not (0 <= int(c.min()) and int(c.max()) < self.n_contexts):
            raise ValueError(
                f"`contexts` must lie in 0..{self.n_contexts - 1}, got values from "
                f"{int(c.min())} to {int(c.max())}: gating and network must agree on n_contexts"
            )
        return c.to(device=self.w1.device, dtype=torch.int64)

    def forward(self, X: Tensor, contexts: Tensor) -> Tensor:
        """Return the scores (n,) of X (n, D) in integer contexts (n, H)."""
        check_inputs(X, self.w1, self.n_inputs)
        self._check_contexts(contexts, X.shape[0])
        return self.head() @ self._hidden(X, contexts)

    def head(self) -> Tensor:
        """Return the product (H,) of the upper matrices."""
        return end_to_end(list(self.upper))

    def zeta(self) -> Tensor:
        """Return ``head[h] w1[h, c]`` (H, C, D)."""
        return self.head()[:, None, None] * self.w1

    def unit_norms(self) -> Tensor:
        """Return the Frobenius norms ``||zeta[h]||`` (H,)."""
        first: Tensor = torch.linalg.vector_norm(self.w1, dim=(1, 2))
        return self.head().abs() * first

    def dual_norms(self, coefficients: Tensor, X: Tensor, contexts: Tensor) -> Tensor:
        """Return ``||v_h||_F`` (H,), ``v_h[c] = sum of coefficients_n x_n over c[n, h] = c``."""
        weighted = coefficients[:, None] * X
        norms = []
        for unit_contexts in contexts.to(torch.int64).T:
            v = weighted.new_zeros(self.n_contexts, self.n_inputs)
            norms.append(v.index_add(0, unit_contexts, weighted).norm())
        return torch.stack(norms)

    def imbalance(self) -> Tensor:
        """Of every gated unit and those above, (H + widths above,): see `HasImbalance`."""
        return layer_imbalance([self.w1.flatten(1), *self.upper])

    def gradient_factors(self, X: Tensor, contexts: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each layer's factors of the gradients: see `HasGradientFactors`."""
        one_hot = torch.nn.functional.one_hot(contexts.to(torch.int64), self.n_contexts).to(X)
        outer = (one_hot * self.head()[:, None]).flatten(1)
        return [(outer, X), *linear_factors(self._hidden(X, contexts).T, list(self.upper))]

    def _hidden(self, X: Tensor, contexts: Tensor) -> Tensor:
        # Weights first: networks trained side by side then share one product with the inputs. Row
        # h * C + c of that product belongs to w1[h, c].
        every = (self.w1.flatten(0, 1) @ X.T).view(self.n_units, self.n_contexts, len(X))
        return every.gather(1, contexts.T.to(torch.int64).unsqueeze(1)).squeeze(1)

    def _check_contexts(self, contexts: Tensor, n: int) -> None:
        if tuple(contexts.shape) != (n, self.n_units):
            raise ValueError(
                f"`contexts` must have shape ({n}, {self.n_units}), got {tuple(contexts.shape)}: "
                "one context a sample and unit"
            )
        if contexts.is_floating_point() or contexts.dtype == torch.bool:
            raise TypeError(f"`contexts` must be integers, got {contexts.dtype}")
