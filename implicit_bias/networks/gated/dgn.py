"""Deep gated network: the gates of all hidden units are given with the data."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Self, Unpack

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..._support.doors import door
from ..._support.kinds import whole_number
from ..._support.words import InitName
from ..protocols import check_gates, check_inputs
from ..weights import (
    LayeredNetwork,
    Start,
    Starting,
    as_tensor,
    balanced_units,
    copy_weights,
    draw_matrices,
)

# Most entries of path coefficients that are listed: half a gigabyte of float64.
_MAX_ENTRIES = 2**26


@door()
def initial_variance(*, widths: Sequence[int], gate_rate: float = 0.5) -> float:
    r"""Return the variance of each weight of a "sign" or "gaussian" start with `init_scale` 1.

    It is 1 over the number of open units of a layer, with the geometric mean of the widths. The
    tangent kernel of a sample x with a share `gate_rate` of open gates then has the mean
    :math:`L \|x\|^2` for L layers of weights, whatever depth and widths.

    Parameters
    ----------
    widths : sequence of int
        Units of the hidden layers; for none, one layer of weights, the variance is 1.
    gate_rate : float
        Share of gates that are open, in (0, 1].

    Returns
    -------
    float

    Raises
    ------
    TypeError
        If a width is not a whole number.
    ValueError
        If a width is not positive or `gate_rate` is out of range.

    Examples
    --------
    >>> ib.networks.initial_variance(widths=(8, 8), gate_rate=0.5)
    0.25
    """
    if not 0 < gate_rate <= 1:
        raise ValueError(
            f"`gate_rate` must lie in (0, 1], got {gate_rate}: the share of gates that are open"
        )
    units = [whole_number(f"`widths[{i}]`", width) for i, width in enumerate(widths)]
    return float(1 / (gate_rate * math.prod(units) ** (1 / len(units)))) if units else 1.0


class GatedStack(LayeredNetwork):
    """Base of networks whose layers are gated from outside, without biases.

    They are homogeneous in their weights. A subclass defines by `_shape` which weights a layer has,
    by `_through` what it computes, and by `_open` which of its weights the gates select.

    Parameters
    ----------
    n_inputs : int
    widths : sequence of int
    gate_rate : float
        Share of the gates that are open, on which the size of initial weights depends.
    further : mapping of str to int
        Sizes of a subclass alone, by the names of its arguments.
    **start : Starting

    Attributes
    ----------
    n_inputs : int
        D.
    widths : tuple of int
        Units of the hidden layers.
    layers : ParameterList
        W_1 (width_1, ..., D) to W_L (1, width_{L-1}).
    gates_name : str
        Name of the gates in messages.
    """

    gates_name: ClassVar[str]

    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        gate_rate: float,
        further: Mapping[str, int],
        **start: Unpack[Starting],
    ) -> None:
        super().__init__()
        sizes = {"n_inputs": n_inputs, **further}
        sizes |= {f"widths[{i}]": width for i, width in enumerate(widths)}
        inits: tuple[InitName, ...] = ("sign", "gaussian", "kaiming", "orthogonal", "balanced")
        self.n_inputs, self.widths = n_inputs, tuple(int(width) for width in widths)
        below = [n_inputs, *self.widths]
        shapes = [*(self._shape(high, low) for low, high in pairwise(below)), (1, below[-1])]
        begin = Start.checked(sizes, inits, *shapes, **start)
        deviation = math.sqrt(initial_variance(widths=self.widths, gate_rate=gate_rate))
        drawn = begin.parameters(lambda rng: _draw(begin.init, shapes, deviation, rng))
        self.layers = torch.nn.ParameterList(drawn)

    def forward(self, X: Tensor, gates: Tensor) -> Tensor:
        """Return the scores (n,) of X (n, D) under gates (n, sum of widths), layer after layer."""
        check_inputs(X, self.layers[0], self.n_inputs)
        self._check_shape(gates, len(X))
        # Weights first: networks trained side by side then share one product with the inputs.
        hidden = X.T
        for index, part in enumerate(self._parts(gates)):
            hidden = self._through(self.layers[index], hidden, part)
        last: Tensor = self.layers[-1]
        return last.view(-1) @ hidden

    @door()
    def gradient_factors(self, X: Tensor, gates: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's factors (n, a) and (n, b) of the gradients of single scores."""
        parts = self._parts(gates)
        inner = [X]
        for index, part in enumerate(parts):
            inner.append(self._through(self.layers[index], inner[-1].T, part).T)
        outer = [X.new_ones(len(X), 1)]
        for part, above in zip(reversed(parts), reversed(self.layers), strict=False):
            back = outer[-1] @ above.flatten(0, -2)
            outer.append((back[:, :, None] * self._open(part).to(X)).flatten(1))
        return list(zip(reversed(outer), inner, strict=True))

    def path_strengths(self) -> Tensor:
        r"""Return the coefficients (P, D) of every path, whose number is exponential in the depth.

        A path takes one column of weights of each hidden layer, that of its gate: its activity on
        a sample is the product of these gates. :math:`f(x) = \sum_p A_p(x) \langle \zeta_p, x
        \rangle` with :math:`\zeta_p = W_L[i_{L-1}] \cdots W_2[i_2, i_1] W_1[i_1]`. Paths are in
        the order of their first column, then of the second, and so on.

        Raises
        ------
        ValueError
            If there are too many to list.
        """
        copies = [layer.shape[:-1].numel() // len(layer) for layer in self.layers]
        n_entries = self.n_inputs * math.prod(layer.shape[:-1].numel() for layer in self.layers)
        if n_entries > _MAX_ENTRIES:
            raise ValueError(
                f"{n_entries // self.n_inputs} paths of {self.n_inputs} inputs are too many to "
                "list: take fewer layers or units"
            )
        strengths: Tensor = self.layers[0].flatten(0, -2)
        for below, above in zip(copies, list(self.layers)[1:], strict=False):
            columns = above.flatten(0, -2).repeat_interleave(below, dim=1)
            # The last column so far, (..., width, D), goes on to every one above it.
            strengths = strengths.reshape(-1, columns.shape[1], 1, self.n_inputs)
            strengths = strengths * columns.T[:, :, None]
        return strengths.reshape(-1, self.n_inputs)

    def _parts(self, gates: Tensor) -> list[Tensor]:
        """Gates (n, width) of every hidden layer."""
        return list(torch.split(gates, list(self.widths), dim=1))

    def _check_shape(self, gates: Tensor, n: int) -> None:
        reason = f"one {self.gates_name} a sample and hidden unit, layer after layer"
        check_gates(f"{self.gates_name}s", gates, (n, sum(self.widths)), reason)

    def _shape(self, width: int, below: int) -> tuple[int, ...]:
        """Shape of a hidden layer's weights."""
        raise NotImplementedError

    def _through(self, weight: Tensor, below: Tensor, part: Tensor) -> Tensor:
        """(width, n) outputs of a layer with gates (n, width) on those of the layer below."""
        raise NotImplementedError

    def _open(self, part: Tensor) -> Tensor:
        """(n, width, columns) share of each weight vector that a layer's gates select."""
        raise NotImplementedError


class DGN(GatedStack):
    r"""Deep gated network: each hidden unit is linear, times a gate that is given with the data.

    .. math:: z_0 = x, \qquad z_l = G_l(x) \circ W_l z_{l-1}, \qquad f(x) = W_L z_{L-1}

    It has one score and is homogeneous of degree L in its weights; a bias is a constant column of
    X. With the layers and gates of a ReLU network, ``DGN.from_weights(*relu.layers)``, it has the
    scores of that network.

    Parameters
    ----------
    n_inputs : int
        D, the constant column counted.
    widths : sequence of int
        Units of the L - 1 hidden layers, first to last; ``()`` is a linear predictor.
    gate_rate : float
        Share of gates that are expected to be open, in (0, 1]: it sets the size of the "sign" and
        "gaussian" starts, see `initial_variance`. By default one half, as for half-spaces.
    **start : Starting
        `init`: "sign" (default) has weights of one size and random signs; "gaussian" has normal
        ones of the same variance; "kaiming" and "orthogonal" fill each matrix by itself; "balanced"
        gives every hidden unit incoming and outgoing weights of equal norms; `init_scale`,
        `random_state`, `dtype`, `device`.

    Attributes
    ----------
    layers : ParameterList
        W_1 (width_1, D), ..., W_L (1, width_{L-1}).

    Raises
    ------
    ValueError
        If a size is not positive, `gate_rate` is not in (0, 1], `init` is unknown or `init_scale`
        is not positive and finite.

    References
    ----------
    C. Lakshminarayanan, A. V. Singh, "Neural path features and neural path kernel: understanding
    the role of gates in deep learning" (NeurIPS 2020): deep gated networks, and those with random
    gates (FRG) and gates of another network (GaLU).

    Examples
    --------
    >>> import torch
    >>> X, gates = torch.ones(1, 3).double(), torch.tensor([[1.0, 0.0, 1.0, 1.0, 0.0]]).double()
    >>> network = ib.DGN(3, widths=(3, 2))
    >>> strengths = network.path_strengths()  # of all 3 x 2 paths
    >>> strengths.shape, bool(torch.isclose(network(X, gates), (strengths @ X.T)[[0, 4]].sum()))
    (torch.Size([6, 3]), True)
    """

    gates_name = "gate"

    @door()
    def __init__(
        self,
        n_inputs: int,
        *,
        widths: Sequence[int],
        gate_rate: float = 0.5,
        **start: Unpack[Starting],
    ) -> None:
        super().__init__(n_inputs, widths=widths, gate_rate=gate_rate, further={}, **start)

    @classmethod
    @door()
    def from_weights(cls, *layers: ArrayLike | Tensor, device: torch.device | str = "cpu") -> Self:
        """Build a network from W_1 (width_1, D), ..., W_L (1, width_{L-1}), in W_1's dtype.

        Raises
        ------
        ValueError
            If the shapes do not chain to one score.
        """
        given = chained(layers, 2)
        widths = [len(layer) for layer in given[:-1]]
        network = cls(given[0].shape[-1], widths=widths, dtype=given[0].dtype, device=device)
        copy_weights(network.layers, given)
        return network

    @door()
    def prepare(self, gates: ArrayLike | Tensor) -> Tensor:
        """Check gates (n, sum of widths) once and place them beside the weights.

        Raises
        ------
        ValueError
            If their shape is wrong or one of them is negative or not finite.
        """
        g = as_tensor(gates)
        self._check_shape(g, g.shape[0] if g.ndim else 0)
        g = g.to(self.layers[0])
        # Soft gates may exceed 1 a little.
        if not bool((g >= 0).all()):
            raise ValueError("`gates` must not be negative, from 0 (closed) to 1 (open)")
        return g

    def _shape(self, width: int, below: int) -> tuple[int, ...]:
        return width, below

    def _through(self, weight: Tensor, below: Tensor, part: Tensor) -> Tensor:
        return part.T * (weight @ below)

    def _open(self, part: Tensor) -> Tensor:
        return part[:, :, None]


def chained(layers: Sequence[ArrayLike | Tensor], ndim: int) -> list[Tensor]:
    """Return layers (width, ..., below) as tensors, in the dtype of the first.

    Raises
    ------
    ValueError
        If hidden layers do not have `ndim` axes, the last one is not a row, or the shapes do not
        fit each other.
    """
    given = [as_tensor(layer) for layer in layers]
    shapes = [tuple(layer.shape) for layer in given]
    fits = bool(shapes) and all(0 not in shape and len(shape) == ndim for shape in shapes[:-1])
    fits = fits and len(shapes[-1]) == 2 and shapes[-1][0] == 1
    if not fits or any(low[0] != high[-1] for low, high in pairwise(shapes)):
        axes = "D" if ndim == 2 else "C, D"
        below = "width_1" if ndim == 2 else "C, width_1"
        raise ValueError(
            f"`layers` must have shapes (width_1, {axes}), (width_2, {below}), ..., "
            f"(1, width), got {shapes}"
        )
    dtype = given[0].dtype if given[0].is_floating_point() else torch.float64
    return [layer.to(dtype) for layer in given]


def _draw(
    init: str, shapes: list[tuple[int, ...]], deviation: float, rng: torch.Generator
) -> list[Tensor]:
    if init == "balanced":
        return balanced_units(shapes, rng)
    if init == "sign":
        signs = [2 * torch.randint(0, 2, shape, generator=rng) - 1 for shape in shapes]
        return [deviation * sign.to(torch.float64) for sign in signs]
    if init == "gaussian":
        draws = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
        return [deviation * draw for draw in draws]
    matrices = draw_matrices(init, [(math.prod(s[:-1]), s[-1]) for s in shapes], rng)
    return [matrix.view(shape) for matrix, shape in zip(matrices, shapes, strict=True)]
