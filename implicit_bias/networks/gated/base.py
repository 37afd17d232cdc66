"""Base of networks with one gated layer below linear ones."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import require_sizes
from ..._support.words import InitName
from ..weights import (
    LayeredNetwork,
    Start,
    Starting,
    as_tensor,
    balanced_gated,
    copy_weights,
    draw_gated,
    end_to_end,
    upper_layers,
)


class GatedLayers(LayeredNetwork):
    r"""Weights of a gated layer (H, ..., D) and of linear layers on it: ``head = V_L \cdots V_1``.

    As functions such networks depend on ``zeta[h] = head[h] w1[h]`` alone, one for every output.
    They have no biases, so they are homogeneous of degree `degree` in the weights; a bias is a
    constant column of X.

    Parameters
    ----------
    sizes : mapping of str to int
        n_inputs D, n_units H, and the sizes of axes between them in `w1`, by the arguments' names.
    upper_widths : sequence of int
        Widths of linear layers between the gated layer and the score; ``()`` is two layers.
    n_outputs : int
        K, the scores of a sample; from 2 on they are (n, K).
    inits : sequence of str
        Values that `init` may have, the default first: "orthogonal" and "kaiming" fill each layer's
        matrix by itself, the gated one as (H ..., D). "balanced" is a Gaussian gated layer with
        upper layers that make ``|head[h]| = ||w1[h]||`` and ``V_{l+1}^T V_{l+1} = V_l V_l^T`` hold
        exactly.
    **start : Starting
        `init`, `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    w1 : Parameter (H, ..., D)
    upper : ParameterList
        V_1 (width_1, H), ..., V_L (K, width_{L-1}); ``w2`` (K, H) if there are two layers.
    axes : tuple of str
        Letters for the axes of `w1`, one a size.
    """

    axes: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        sizes: Mapping[str, int],
        upper_widths: Sequence[int],
        inits: Sequence[InitName],
        *,
        n_outputs: int = 1,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        above = {f"upper_widths[{i}]": width for i, width in enumerate(upper_widths)}
        above["n_outputs"] = n_outputs
        self.n_inputs, *shape = sizes.values()
        self.n_units, self.n_outputs = shape[0], n_outputs
        gated = (*shape, self.n_inputs)
        chain = pairwise([self.n_units, *upper_widths, n_outputs])
        begin = Start.checked({**sizes, **above}, inits, gated, *chain, **start)
        self.w1, *upper = begin.parameters(
            lambda rng: draw_gated(begin.init, gated, upper_widths, rng, n_outputs)
        )
        self.upper = torch.nn.ParameterList(upper)

    @classmethod
    @door()
    def from_weights(
        cls, w1: ArrayLike | Tensor, *upper: ArrayLike | Tensor, device: torch.device | str = "cpu"
    ) -> Self:
        """Build a network from w1 (H, ..., D) and V_1, ..., V_L; a lone w2 may have shape (H,).

        The dtype is that of `w1`, the number of outputs that of the rows of V_L.

        Raises
        ------
        ValueError
            If the shapes do not chain from H.
        """
        first = cls._gated("w1", w1)
        layers = upper_layers(upper, first)
        *shape, n_inputs = first.shape
        model: Any = cls  # whose sizes are arguments of their own
        *widths, n_outputs = [len(V) for V in layers]
        network: Self = model(
            n_inputs,
            *shape,
            upper_widths=widths,
            n_outputs=n_outputs,
            dtype=first.dtype,
            device=device,
        )
        copy_weights(network.layers, [first, *layers])
        return network

    @classmethod
    @door()
    def from_zeta(
        cls,
        zeta: ArrayLike | Tensor,
        *,
        upper_widths: Sequence[int] = (),
        device: torch.device | str = "cpu",
    ) -> Self:
        r"""Build the balanced network: of all weights with this zeta (H, ..., D), the shortest.

        With L upper matrices its squared weight norm is
        :math:`(L + 1) (\sum_h \|\zeta_h\|)^{2/(L+1)}`; two layers: :math:`2 \sum_h \|\zeta_h\|`.

        References
        ----------
        S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized
        gated linear networks", proposition B.8, for two layers.
        """
        given = cls._gated("zeta", zeta)
        sizes = {f"upper_widths[{i}]": width for i, width in enumerate(upper_widths)}
        chain = pairwise([len(given), *upper_widths, 1])
        require_sizes("weights", {"zeta": given.numel(), **sizes}, *chain)
        layers = balanced_gated(given, upper_widths)
        return cls.from_weights(*layers, device=device)

    @classmethod
    def _gated(cls, name: str, values: ArrayLike | Tensor) -> Tensor:
        layer = as_tensor(values)
        if layer.ndim != len(cls.axes) or 0 in layer.shape:
            raise ValueError(
                f"`{name}` must have shape ({', '.join(cls.axes)}), none of them 0, got "
                f"{tuple(layer.shape)}"
            )
        return layer if layer.is_floating_point() else layer.to(torch.float64)

    @property
    def layers(self) -> list[Tensor]:  # type: ignore[override]
        """Return w1 and the upper matrices."""
        return [self.w1, *self.upper]

    def head(self) -> Tensor:
        """Return the product (H,) of the upper matrices, (K, H) of K outputs."""
        product = end_to_end(list(self.upper))
        return product if self.n_outputs > 1 else product.view(-1)

    def zeta(self) -> Tensor:
        """Return ``head[h] w1[h]`` (H, ..., D), (H, K, ..., D) of K outputs."""
        head, further = self.head(), [1] * (self.w1.ndim - 1)
        if self.n_outputs == 1:
            return head.view(-1, *further) * self.w1
        return head.T.reshape(self.n_units, self.n_outputs, *further) * self.w1[:, None]

    def unit_norms(self) -> Tensor:
        """Return the Frobenius norms ``||zeta[h]||`` (H,), those of all outputs together."""
        first: Tensor = torch.linalg.vector_norm(self.w1.flatten(1), dim=1)
        head = self.head()
        if self.n_outputs == 1:
            return head.abs() * first
        norms: Tensor = torch.linalg.vector_norm(head, dim=0)
        return norms * first
