"""Deep gated linear network: contexts choose the weights of every unit of every hidden layer."""

from collections.abc import Sequence
from typing import Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..protocols import check_contexts
from ..weights import Starting, as_tensor, copy_weights
from .dgn import GatedStack, chained


class DeepGLN(GatedStack):
    r"""Deep gated linear network: each hidden unit has one weight vector for each of its contexts.

    .. math:: z_l[i] = \langle W_l[i, c_{l,i}(x)], z_{l-1} \rangle, \qquad f(x) = W_L z_{L-1}

    Unlike in `GLN`, whose layers above the first are linear, contexts act in every hidden layer.
    It is homogeneous of degree L in its weights.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    widths : sequence of int
        Units of the L - 1 hidden layers, first to last.
    n_contexts : int
        C, the contexts of every unit.
    **start : Starting
        `init`: "sign" (default), "gaussian", "kaiming", "orthogonal" or "balanced", as `DGN` has
        them with open gates, since one weight vector a unit is used for each sample; `init_scale`,
        `random_state`, `dtype`, `device`.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, C, D), ..., W_{L-1} (width_{L-1}, C, width_{L-2}), W_L (1, width_{L-1}).

    Raises
    ------
    ValueError
        If a size is not positive, `init` is unknown or `init_scale` is not positive and finite.

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.DeepGLN(3, widths=(4, 2), n_contexts=2)
    >>> contexts = torch.tensor([[0, 1, 0, 1, 1, 0]])
    >>> network(torch.ones(1, 3).double(), contexts).shape, network.degree
    (torch.Size([1]), 3)
    """

    gates_name = "context"

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        n_contexts: int,
        **start: Unpack[Starting],
    ) -> None:
        self.n_contexts = n_contexts
        further = {"n_contexts": n_contexts}
        super().__init__(n_inputs, widths=widths, gate_rate=1.0, further=further, **start)

    @classmethod
    @door()
    def from_weights(cls, *layers: ArrayLike | Tensor, device: torch.device | str = "cpu") -> Self:
        """Build a network from W_1 (width_1, C, D) to W_L (1, width_{L-1}), in W_1's dtype.

        Raises
        ------
        ValueError
            If the shapes do not chain to one score, there is no hidden layer, or layers differ in
            the number of their contexts.
        """
        given = chained(layers, 3)
        n_contexts = {layer.shape[1] for layer in given[:-1]}
        if len(n_contexts) != 1:
            raise ValueError(
                "the hidden layers must have one number of contexts, got "
                f"{[tuple(layer.shape) for layer in given]}: repeat the weights of those with fewer"
            )
        widths = [len(layer) for layer in given[:-1]]
        network = cls(
            given[0].shape[-1],
            widths=widths,
            n_contexts=n_contexts.pop(),
            dtype=given[0].dtype,
            device=device,
        )
        copy_weights(network.layers, given)
        return network

    @door()
    def prepare(self, contexts: ArrayLike | Tensor) -> Tensor:
        """Check contexts (n, sum of widths) once and place them as int64 beside the weights.

        Raises
        ------
        TypeError
            If the contexts are not integers.
        ValueError
            If their shape or range is wrong.
        """
        c = as_tensor(contexts)
        self._check_shape(c, c.shape[0] if c.ndim else 0)
        check_contexts(c, self.n_contexts)
        return c.to(device=self.layers[0].device, dtype=torch.int64)

    def _shape(self, width: int, below: int) -> tuple[int, ...]:
        return width, self.n_contexts, below

    def _through(self, weight: Tensor, below: Tensor, part: Tensor) -> Tensor:
        # Row i * C + c of the product belongs to weight[i, c].
        every = (weight.flatten(0, 1) @ below).view(*weight.shape[:2], -1)
        return every.gather(1, part.T.to(torch.int64).unsqueeze(1)).squeeze(1)

    def _open(self, part: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(part.to(torch.int64), self.n_contexts)
