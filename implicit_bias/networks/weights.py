"""Weights of networks: how they are initialised, checked where given, and multiplied."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from types import MappingProxyType
from typing import Self, TypedDict, Unpack, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .._support.words import InitName, UnitInit
from .protocols import check_start

# Those that fill each matrix by itself; "balanced" makes the layers fit each other.
_FILLS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {"orthogonal": torch.nn.init.orthogonal_, "kaiming": torch.nn.init.kaiming_normal_}
)
INITS: tuple[UnitInit, ...] = get_args(UnitInit)


def as_tensor(values: ArrayLike | Tensor) -> Tensor:
    """Return a tensor as it is, and anything else as a tensor of its own memory."""
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))


def check_hidden(widths: Sequence[int]) -> None:
    """Check that there is a hidden layer; raises ValueError if not."""
    if len(widths) == 0:
        raise ValueError(
            "`widths` must name a hidden layer at least, got none: for one of H units give (H,)"
        )


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread on the CPU, and as many as before afterwards."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)


# Initial weights


class Starting(TypedDict, total=False):
    """Keywords for the initial weights of a network, of all networks with a choice of `init`.

    Attributes
    ----------
    init : str
        "orthogonal" and "kaiming" as in `torch.nn.init` on each layer's matrix; each network names
        further ones, and its default.
    init_scale : float
        Factor on every layer, positive and finite; by default 1. Small values start near the
        saddle at zero, where gates are learned.
    random_state : int or numpy Generator
        Source of the initial weights, by default 0. They are drawn in float64 on the CPU and then
        converted: one seed gives the same network in every dtype and on every device.
    dtype : torch.dtype
        Dtype of the weights, float64 by default.
    device : torch.device or str
        Device of the weights, the CPU by default.

    Examples
    --------
    >>> start: ib.networks.Starting = {"init": "balanced", "init_scale": 0.1, "random_state": 3}
    >>> ib.GLN(3, n_units=2, n_contexts=2, **start).w1.shape
    torch.Size([2, 2, 3])
    """

    init: InitName
    init_scale: float
    random_state: int | np.random.Generator
    dtype: torch.dtype
    device: torch.device | str


@dataclass(frozen=True)
class Start:
    """The choices of `Starting`, checked and with their defaults."""

    init: InitName
    init_scale: float = 1.0
    random_state: int | np.random.Generator = 0
    dtype: torch.dtype = torch.float64
    device: torch.device | str = "cpu"

    @classmethod
    def checked(
        cls,
        sizes: Mapping[str, int],
        inits: Sequence[InitName],
        *shapes: Sequence[int],
        **start: Unpack[Starting],
    ) -> Self:
        """Return the choices for a network, checked by `check_start`.

        Parameters
        ----------
        sizes : mapping of str to int
            Sizes of the network by the names of its arguments.
        inits : sequence of str
            The initialisations that it has, the default first.
        *shapes : sequences of int
            Shapes of its weights.
        **start : Starting

        Raises
        ------
        TypeError, ValueError
            If a size or a choice is not one that the network takes.
        """
        begin = replace(cls(inits[0]), **start)
        check_start(
            sizes, begin.init_scale, *shapes, init=begin.init, inits=inits, device=begin.device
        )
        return begin

    def parameters(
        self, draw: Callable[[torch.Generator], Iterable[Tensor]]
    ) -> list[torch.nn.Parameter]:
        """Return weights as parameters, drawn by `random_state`, scaled and placed.

        In one thread, whatever torch may have: the rounding of orthogonal factors and of sums
        depends on their number, and a seed is to give one network everywhere.

        Parameters
        ----------
        draw : callable
            ``draw(generator)`` returns the weights, in float64 on the CPU.
        """
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63 - 1))
        with _one_thread():
            drawn = list(draw(torch.Generator().manual_seed(seed)))
        return [
            torch.nn.Parameter((self.init_scale * W).to(device=self.device, dtype=self.dtype))
            for W in drawn
        ]


def draw_matrices(
    init: str, shapes: Iterable[tuple[int, int]], rng: torch.Generator
) -> list[Tensor]:
    """Return matrices of these shapes, each filled by itself: "orthogonal" or "kaiming"."""
    fill = _FILLS[init]
    return [fill(torch.empty(shape, dtype=torch.float64), generator=rng) for shape in shapes]


def draw_units(widths: Sequence[int], rng: torch.Generator) -> list[Tensor]:
    """Return random vectors of length 1, one a width, and the number 1 of the score, (1,)."""
    draws = [torch.randn(width, generator=rng, dtype=torch.float64) for width in widths]
    return [*(draw / draw.norm() for draw in draws), torch.ones(1, dtype=torch.float64)]


def draw_gated(
    init: str,
    shape: tuple[int, ...],
    upper_widths: Sequence[int],
    rng: torch.Generator,
    n_outputs: int = 1,
) -> list[Tensor]:
    """Return initial weights of `GatedLayers`: a gated layer (H, ..., D), linear ones above it.

    With several outputs "balanced" makes the norms of every unit equal, into it and out of it.
    """
    n_units, n_columns = shape[0], math.prod(shape[1:])
    if init == "balanced" and n_outputs > 1:
        above = [(high, low) for low, high in pairwise([n_units, *upper_widths, n_outputs])]
        return balanced_units([shape, *above], rng)
    if init == "balanced":
        w1 = torch.randn(shape, generator=rng, dtype=torch.float64) / math.sqrt(n_columns)
        signs = torch.randint(0, 2, (n_units,), generator=rng) * 2 - 1
        norms = signs * w1.flatten(1).norm(dim=1)
        return [w1, *rank_one_chain(norms, draw_units(upper_widths, rng))]
    above = [(high, low) for low, high in pairwise([n_units, *upper_widths, n_outputs])]
    first, *upper = draw_matrices(init, [(math.prod(shape[:-1]), shape[-1]), *above], rng)
    return [first.reshape(shape), *upper]


def rank_one_chain(a: Tensor, units: list[Tensor]) -> list[Tensor]:
    """Return balanced matrices V_1, ..., V_L of rank one whose product is a multiple of a (H,)."""
    # V_1 = u_1 a^T and V_{l+1} = ||a|| u_{l+1} u_l^T: V_{l+1}^T V_{l+1} = ||a||^2 u_l u_l^T is
    # V_l V_l^T, and head = ||a||^(L-1) a.
    upper = [torch.outer(units[0], a)]
    for below, above in pairwise(units):
        upper.append(a.norm() * torch.outer(above, below))
    return upper


def balanced_chain(a: Tensor, hidden_widths: Sequence[int]) -> list[Tensor]:
    """Return a `rank_one_chain` for a (H,) through units of equal weights."""
    units = [torch.full((w,), w**-0.5, dtype=a.dtype, device=a.device) for w in hidden_widths]
    return rank_one_chain(a, [*units, a.new_ones(1)])


def balanced_factors(zeta: Tensor, hidden_widths: Sequence[int]) -> list[Tensor]:
    """Return the shortest layers W_1, ..., W_L whose product is zeta (K, D): all of them balanced.

    Raises
    ------
    ValueError
        If a hidden width is below the rank of zeta.
    """
    U, s, V = torch.linalg.svd(zeta.double(), full_matrices=False)
    rank = int((s > s[0] * max(zeta.shape) * torch.finfo(torch.float64).eps).sum())
    if hidden_widths and min(hidden_widths) < rank:
        raise ValueError(
            f"`zeta` has rank {rank}, more than a layer of width {min(hidden_widths)} lets "
            "through: give wider `hidden_widths`"
        )
    if not hidden_widths:
        return [zeta]
    widths = [zeta.shape[1], *hidden_widths, len(zeta)]
    root = torch.diag(s[:rank] ** (1 / (len(widths) - 1)))
    layers = []
    for k, (below, above) in enumerate(pairwise(widths)):
        layer = zeta.new_zeros(above, below, dtype=torch.float64)
        left = U[:, :rank] if k == len(widths) - 2 else torch.eye(above, rank).to(U)
        right = V[:rank] if k == 0 else torch.eye(rank, below).to(U)
        layer += left @ root @ right
        layers.append(layer.to(zeta.dtype))
    return layers


def balanced_gated(zeta: Tensor, upper_widths: Sequence[int]) -> list[Tensor]:
    """Return the shortest layers w1, V_1, ..., V_L with the coefficients zeta (H, ..., D)."""
    norms = zeta.flatten(1).norm(dim=1)
    total, depth = norms.sum(), 1 + len(upper_widths)
    # Upper matrices s u_l u_{l-1}^T, V_1 = u_1 a^T with ||a|| = s and |a_h| = ||w1[h]||: then
    # ||zeta_h|| = a_h^2 s^(depth-1), and summing over h, total = s^(depth+1).
    s = total ** (1 / (depth + 1))
    a = torch.sqrt(norms / s ** (depth - 1)) if total > 0 else torch.zeros_like(norms)
    axes = (-1, *[1] * (zeta.ndim - 1))
    direction = zeta / torch.where(norms > 0, norms, 1.0).view(axes)
    return [a.view(axes) * direction, *balanced_chain(a, upper_widths)]


def balanced_units(shapes: Sequence[tuple[int, ...]], rng: torch.Generator) -> list[Tensor]:
    """Return Gaussian layers (above, ..., below) whose hidden units are balanced.

    Incoming and outgoing weights of each unit have equal norms, which gradient flow conserves; rows
    of the first layer have norms near 1.
    """
    # Weights out of unit j get the norm of those into it; those into the units above follow.
    draws = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    layers = [draws[0] / math.sqrt(math.prod(shapes[0][1:]))]
    for draw in draws[1:]:
        incoming = torch.linalg.vector_norm(layers[-1].flatten(1), dim=1)
        layers.append(draw * (incoming / torch.linalg.vector_norm(draw.flatten(0, -2), dim=0)))
    return layers


# Given weights


def upper_layers(layers: Sequence[ArrayLike | Tensor], first: Tensor) -> list[Tensor]:
    """Return matrices (width_1, H), ..., (K, width) on top of `first` (H, ...), in its dtype.

    A single one may be given as (H,).

    Raises
    ------
    ValueError
        If there is none, or they do not chain from H.
    """
    matrices = [as_tensor(layer).to(first.dtype) for layer in layers]
    if len(matrices) == 1 and matrices[0].ndim == 1:
        matrices = [matrices[0][None, :]]
    chain = [tuple(matrix.shape) for matrix in matrices]
    widths = [first.shape[0], *(shape[0] for shape in chain if shape)]
    wanted = [(high, low) for low, high in pairwise(widths)]
    if not chain or chain != wanted or 0 in widths:
        raise ValueError(
            f"the upper matrices must have shapes (width_1, {widths[0]}), ..., "
            f"(K, width) on top of a layer {tuple(first.shape)}, got {chain}: `upper`, or `w2`, "
            "has one column a unit below"
        )
    return matrices


@torch.no_grad()
def copy_weights(parameters: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    """Copy `values` into `parameters`, in place."""
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)


# Products of layers


def end_to_end(layers: Sequence[Tensor]) -> Tensor:
    """Return the product (K, width) of matrices (above, below) up to K scores, from the top."""
    return reduce(torch.matmul, reversed(layers))


def layer_imbalance(layers: Sequence[Tensor]) -> Tensor:
    """Return ``||incoming||^2 - ||outgoing||^2`` of every hidden unit, (width_1 + ...,).

    Gradient flow changes both by the same amount where units are homogeneous. There is one array
    (above, ..., below) a layer.
    """
    squares = [layer.new_empty(0) for layer in layers[:1]]
    for below, above in pairwise(layers):
        squares.append(below.square().flatten(1).sum(1) - above.square().flatten(0, -2).sum(0))
    return torch.cat(squares)


class LayeredNetwork(torch.nn.Module):
    """Base of networks that are homogeneous in each of their layers, without biases.

    Attributes
    ----------
    layers : sequence of Tensor
        Weights (width_1, ..., D) to (K, width_{L-1}).
    """

    layers: torch.nn.ParameterList | list[Tensor]

    @property
    def degree(self) -> int:
        """Degree of homogeneity in all weights: the number of layers."""
        return len(self.layers)

    def imbalance(self) -> Tensor:
        """Return ``||incoming||^2 - ||outgoing||^2`` of every hidden unit, (sum of widths,)."""
        return layer_imbalance(list(self.layers))


def gated_dual_norms(gates: Tensor, coefficients: Tensor, X: Tensor) -> Tensor:
    """Return ``||sum_n coefficients_n gates[n, h] x_n||`` (H,)."""
    v = (gates.to(X.dtype) * coefficients[:, None]).T @ X
    norms: Tensor = torch.linalg.vector_norm(v, dim=1)
    return norms


def linear_factors(hidden: Tensor, layers: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Return the gradient factors of linear layers V_1, ..., V_L on top of `hidden` (n, H)."""
    # The score's gradient in V_l is the product of the layers above, the same for every sample,
    # times the input of V_l.
    factors = []
    above = [layers[-1].new_ones(1, 1)]
    for layer in reversed(layers[1:]):
        above.append(above[-1] @ layer)
    for layer, outer in zip(layers, reversed(above), strict=True):
        factors.append((outer.expand(len(hidden), -1), hidden))
        hidden = hidden @ layer.T
    return factors
