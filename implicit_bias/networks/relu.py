"""ReLU networks without biases."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Self, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import linear

from .._support.doors import door
from .._support.kinds import count, fraction, require_sizes
from .gated.frelu import FReLU
from .protocols import check_inputs
from .weights import (
    LayeredNetwork,
    Start,
    Starting,
    balanced_units,
    check_hidden,
    copy_weights,
    draw_matrices,
    gated_dual_norms,
)


class DeepReLU(LayeredNetwork):
    r"""ReLU network of one or more hidden layers.

    .. math:: f(x) = W_{L+1} \operatorname{relu}(W_L \cdots \operatorname{relu}(W_1 x))

    It has no biases, so it is homogeneous of degree L + 1 in its weights; a bias is a constant
    column of X. It sets its gates itself: functions that take gates get None for it. With a slope
    its units are leaky: `z` where it is not negative, else `slope z`.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    widths : sequence of int
        Units of the hidden layers, first to last.
    slope : float
        Of the activation where it is closed, in [0, 1): 0 is the ReLU, others are leaky.
    **start : Starting
        `init`: "kaiming" (default), Kaiming-normal for the fan-in, "orthogonal", or "balanced":
        every hidden unit's incoming and outgoing weights have equal norms, which gradient flow
        conserves, and rows of W_1 have norms near 1; `init_scale`, `random_state`, `dtype`,
        `device`.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, D), ..., W_{L+1} (1, width_L).
    slope : float

    Raises
    ------
    ValueError
        If a size is not positive, there is no hidden layer, `slope` is out of range, `init` is
        unknown or `init_scale` is not positive and finite.

    Examples
    --------
    >>> import torch
    >>> network = ib.networks.DeepReLU(3, widths=(4, 2))
    >>> network(torch.ones(5, 3).double()).shape, network.gates(np.ones((5, 3))).shape
    (torch.Size([5]), torch.Size([5, 6]))
    """

    slope: float = 0.0  # of networks in older files

    @door(slope=fraction)
    def __init__(
        self,
        n_inputs: int,
        widths: Sequence[int],
        *,
        slope: float = 0.0,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        check_hidden(widths)
        sizes = {"n_inputs": n_inputs} | {f"widths[{i}]": w for i, w in enumerate(widths)}
        shapes = [(above, below) for below, above in pairwise([n_inputs, *widths, 1])]
        begin = Start.checked(sizes, ("kaiming", "orthogonal", "balanced"), *shapes, **start)
        drawn = begin.parameters(lambda rng: _draw(begin.init, shapes, rng))
        self.n_inputs, self.slope = n_inputs, float(slope)
        self.layers = torch.nn.ParameterList(drawn)

    @property
    def w1(self) -> Tensor:
        """The first layer's weights W_1 (width_1, D)."""
        first: Tensor = self.layers[0]
        return first

    def forward(self, X: Tensor, gates: None = None) -> Tensor:
        """Return the scores (n,) of X (n, D)."""
        if gates is not None:
            raise ValueError(
                "`gates` must be None for a ReLU network, which sets its own: a network with "
                "given gates is FReLU"
            )
        check_inputs(X, self.w1, self.n_inputs)
        hidden = X
        for index in range(len(self.layers) - 1):
            hidden = activation(linear(hidden, self.layers[index]), self.slope)
        return hidden @ self.head()

    def head(self) -> Tensor:
        """Return the last layer's weights (width_L,)."""
        last: Tensor = self.layers[-1]
        return last.view(-1)

    @door()
    def features(self, X: ArrayLike | Tensor) -> Tensor:
        """Return the last hidden layer's activations (n, width_L), detached."""
        return activation(self._pre_activations(X)[-1], self.slope)

    @door()
    def gates(self, X: ArrayLike | Tensor) -> Tensor:
        """Return the gates (n, sum of widths) of the hidden units, layer after layer.

        Boolean, whether a unit is open; of leaky units 1 where it is, else `slope`: what the
        pre-activation is multiplied by. A unit with pre-activation exactly 0 counts as open, which
        does not change the function.
        """
        return torch.cat([gates_of(z, self.slope) for z in self._pre_activations(X)], dim=1)

    @door()
    def gradient_factors(
        self, X: Tensor, gates: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        before = self._pre_activations(X)
        inner = [X, *(activation(z, self.slope) for z in before)]
        outer = [X.new_ones(len(X), 1)]
        for z, layer in zip(reversed(before), reversed(self.layers), strict=False):
            outer.append(gates_of(z, self.slope) * (outer[-1] @ layer))
        return list(zip(reversed(outer), inner, strict=True))

    def _pre_activations(self, X: ArrayLike | Tensor) -> list[Tensor]:
        # In the finer of both dtypes, so that data in float64 are not rounded to float32 weights.
        inputs = X if isinstance(X, Tensor) else torch.tensor(np.asarray(X))
        dtype = torch.promote_types(inputs.dtype, self.w1.dtype)
        hidden = inputs.to(device=self.w1.device, dtype=dtype)
        if hidden.ndim != 2 or hidden.shape[1] != self.n_inputs:
            raise ValueError(f"`X` must have shape (n, {self.n_inputs}), got {tuple(hidden.shape)}")
        found: list[Tensor] = []
        with torch.no_grad():
            for index in range(len(self.layers) - 1):
                found.append(linear(hidden, self.layers[index].to(dtype)))
                hidden = activation(found[-1], self.slope)
        return found

    def extra_repr(self) -> str:
        """Return what the network is beside its layers."""
        return f"slope={self.slope}" if self.slope else ""


class ReLU(DeepReLU):
    r"""Two-layer ReLU network: :math:`f(x) = \sum_h w_2[h] \max(\langle w_1[h], x \rangle, 0)`.

    On any data it equals the frozen-gate network with its current gates; `zeta`, `unit_norms` and
    `dual_norms` are those of that network.

    Parameters
    ----------
    n_inputs, n_units : int
        D and H, the constant column counted in D.
    slope : float
        Of a unit where it is closed, in [0, 1): 0 is the ReLU, others are leaky.
    **start : Starting
        `init`: "kaiming" (default), "orthogonal", or "balanced": every unit's incoming and outgoing
        weights have equal norms; `init_scale`, `random_state`, `dtype`, `device`.

    Attributes
    ----------
    layers : ParameterList
        w1 (H, D) and w2 (1, H).
    slope : float

    Raises
    ------
    ValueError
        If a size is not positive, `slope` is out of range, `init` is unknown or `init_scale` is not
        positive and finite.

    Examples
    --------
    >>> import torch
    >>> network = ib.ReLU.from_weights([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0])
    >>> network(torch.tensor([[3.0, -5.0]]).double()).tolist()
    [6.0]
    >>> leaky = ib.ReLU.from_weights([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0], slope=0.1)
    >>> leaky(torch.tensor([[3.0, -5.0]]).double()).tolist()
    [6.5]
    """

    @door(n_units=count(1), slope=fraction)
    def __init__(
        self, n_inputs: int, n_units: int, *, slope: float = 0.0, **start: Unpack[Starting]
    ) -> None:
        sizes = {"n_inputs": n_inputs, "n_units": n_units}
        require_sizes("weights", sizes, (n_units, n_inputs))
        super().__init__(n_inputs, (n_units,), slope=slope, **start)
        self.n_units = n_units

    @classmethod
    @door(slope=fraction)
    def from_weights(
        cls,
        w1: ArrayLike | Tensor,
        w2: ArrayLike | Tensor,
        *,
        slope: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build a network from w1 (H, D) and w2 (H,) or (1, H), in the dtype of `w1`.

        Raises
        ------
        ValueError
            If the shapes do not fit each other, or `slope` is out of range.
        """
        frozen = FReLU.from_weights(w1, w2)
        network = cls(
            frozen.n_inputs, frozen.n_units, slope=slope, dtype=frozen.w1.dtype, device=device
        )
        copy_weights(network.layers, [frozen.w1, *frozen.upper])
        return network

    def freeze_gates(self) -> FReLU:
        """Return a copy with gates given from outside: `freeze_gates()(X, self.gates(X))` is f(X).

        Training the copy leaves this network as it is. `ReLUGates.from_network(self)` keeps the
        present gates.
        """
        first, second = (W.detach().clone() for W in self.layers)
        return FReLU.from_weights(first, second, device=first.device)

    def zeta(self) -> Tensor:
        """Return ``w2[h] w1[h]`` (H, D)."""
        return self.head()[:, None] * self.w1

    def unit_norms(self) -> Tensor:
        """Return the norms ``||zeta[h]||`` (H,)."""
        first: Tensor = torch.linalg.vector_norm(self.w1, dim=1)
        return self.head().abs() * first

    @door()
    def dual_norms(self, coefficients: Tensor, X: Tensor, gates: object = None) -> Tensor:
        """Return ``||v_h||`` (H,), ``v_h = sum_n coefficients_n g_h(x_n) x_n``, present gates."""
        return gated_dual_norms(self.gates(X), coefficients, X)


def activation(z: Tensor, slope: float) -> Tensor:
    """Return units of pre-activations: z where it is at least 0, else `slope` times it."""
    # Unlike `relu`, `clamp` has slope 1 at 0, as an open gate does.
    return torch.where(z >= 0, z, slope * z) if slope else z.clamp(min=0)


def gates_of(z: Tensor, slope: float) -> Tensor:
    """Return what pre-activations are multiplied by: 1 or the slope, boolean if that is 0."""
    return torch.where(z >= 0, torch.ones_like(z), slope) if slope else z >= 0


def _draw(init: str, shapes: list[tuple[int, int]], rng: torch.Generator) -> list[Tensor]:
    return balanced_units(shapes, rng) if init == "balanced" else draw_matrices(init, shapes, rng)
