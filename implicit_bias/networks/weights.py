"""What the networks share: tensors, seeds, how weights begin, and layers given from outside."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Self, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from .protocols import check_start

__all__ = [
    "INITS",
    "Start",
    "Starting",
    "as_tensor",
    "balanced_chain",
    "balanced_gated",
    "balanced_units",
    "copy_weights",
    "draw_gated",
    "draw_matrices",
    "draw_units",
    "end_to_end",
    "layer_imbalance",
    "linear_factors",
    "rank_one_chain",
    "upper_layers",
]

# Of each matrix by itself; "balanced" makes the layers fit each other.
_FILLS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {"orthogonal": torch.nn.init.orthogonal_, "kaiming": torch.nn.init.kaiming_normal_}
)
INITS = ("orthogonal", "kaiming", "balanced")


def as_tensor(values: ArrayLike | Tensor) -> Tensor:
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))


# How weights begin


class Starting(TypedDict, total=False):
    """How a network begins: keywords of every network that has a choice of `init`.

    Attributes
    ----------
    init : str
        "orthogonal" and "kaiming" as in `torch.nn.init` on each layer's matrix; further ways, and
        the default, are the network's.
    init_scale : float
        Factor on every layer, positive and finite; by default 1. Small values start near the
        saddle at zero, where gates are learned.
    random_state : int or numpy Generator
        Source of the initial weights, by default 0. They are drawn in float64 on the CPU and then
        converted: one seed gives the same network in every dtype and on every device.
    dtype, device
        Of the weights; by default float64 on the CPU.
    """

    init: str
    init_scale: float
    random_state: int | np.random.Generator
    dtype: torch.dtype
    device: torch.device | str


@dataclass(frozen=True)
class Start:
    """What `Starting` says, checked."""

    init: str
    init_scale: float = 1.0
    random_state: int | np.random.Generator = 0
    dtype: torch.dtype = torch.float64
    device: torch.device | str = "cpu"

    @classmethod
    def checked(
        cls, sizes: Mapping[str, int], inits: Sequence[str], **start: Unpack[Starting]
    ) -> Self:
        """The start of a network of these sizes, whose `inits` name the default first.

        Raises
        ------
        ValueError
            As `check_start`.
        """
        begin = replace(cls(inits[0]), **start)
        check_start(sizes, begin.init_scale, init=begin.init, inits=inits, device=begin.device)
        return begin

    def generator(self) -> torch.Generator:
        """A generator of its own, seeded by `random_state`."""
        seed = self.random_state
        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**63 - 1))
        return torch.Generator().manual_seed(seed)

    def parameters(self, drawn: Iterable[Tensor]) -> list[torch.nn.Parameter]:
        """What was drawn, scaled and placed."""
        return [
            torch.nn.Parameter((self.init_scale * W).to(device=self.device, dtype=self.dtype))
            for W in drawn
        ]


def draw_matrices(
    init: str, shapes: Iterable[tuple[int, int]], rng: torch.Generator
) -> list[Tensor]:
    """Matrices of these shapes, each filled by itself: "orthogonal" or "kaiming"."""
    fill = _FILLS[init]
    return [fill(torch.empty(shape, dtype=torch.float64), generator=rng) for shape in shapes]


def draw_units(widths: Sequence[int], rng: torch.Generator) -> list[Tensor]:
    """Random vectors of length 1, one a width, and the score's: (1,)."""
    draws = [torch.randn(width, generator=rng, dtype=torch.float64) for width in widths]
    return [*(draw / draw.norm() for draw in draws), torch.ones(1, dtype=torch.float64)]


def draw_gated(
    init: str, shape: tuple[int, ...], upper_widths: Sequence[int], rng: torch.Generator
) -> list[Tensor]:
    """A gated layer (H, ..., D) and the linear layers above it: see `GatedLayers`."""
    n_units, n_columns = shape[0], math.prod(shape[1:])
    if init == "balanced":
        w1 = torch.randn(shape, generator=rng, dtype=torch.float64) / math.sqrt(n_columns)
        signs = torch.randint(0, 2, (n_units,), generator=rng) * 2 - 1
        norms = signs * w1.flatten(1).norm(dim=1)
        return [w1, *rank_one_chain(norms, draw_units(upper_widths, rng))]
    above = [(high, low) for low, high in pairwise([n_units, *upper_widths, 1])]
    first, *upper = draw_matrices(init, [(math.prod(shape[:-1]), shape[-1]), *above], rng)
    return [first.reshape(shape), *upper]


def rank_one_chain(a: Tensor, units: list[Tensor]) -> list[Tensor]:
    # V_1 = u_1 a^T and V_{l+1} = ||a|| u_{l+1} u_l^T: V_{l+1}^T V_{l+1} = ||a||^2 u_l u_l^T is
    # V_l V_l^T, and head = ||a||^(L-1) a.
    upper = [torch.outer(units[0], a)]
    for below, above in pairwise(units):
        upper.append(a.norm() * torch.outer(above, below))
    return upper


def balanced_chain(a: Tensor, hidden_widths: Sequence[int]) -> list[Tensor]:
    """`rank_one_chain` through units that are all alike."""
    units = [torch.full((w,), w**-0.5, dtype=a.dtype, device=a.device) for w in hidden_widths]
    return rank_one_chain(a, [*units, a.new_ones(1)])


def balanced_gated(zeta: Tensor, upper_widths: Sequence[int]) -> list[Tensor]:
    """The shortest of all layers whose coefficients are zeta (H, ..., D): w1, V_1, ..., V_L."""
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
    """Gaussian layers (above, ..., below) whose hidden units have equal norms in and out.

    Each unit is balanced by itself, which gradient flow conserves; rows of the first layer have
    norms near 1.
    """
    # Weights out of unit j get the norm of those into it; those into the units above follow.
    draws = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    layers = [draws[0] / math.sqrt(math.prod(shapes[0][1:]))]
    for draw in draws[1:]:
        incoming = torch.linalg.vector_norm(layers[-1].flatten(1), dim=1)
        layers.append(draw * (incoming / torch.linalg.vector_norm(draw.flatten(0, -2), dim=0)))
    return layers


# Layers given from outside


def upper_layers(layers: Sequence[ArrayLike | Tensor], first: Tensor) -> list[Tensor]:
    """Matrices (width_1, H), ..., (1, width) on top of `first` (H, ...), in its dtype.

    A single one may have shape (H,).

    Raises
    ------
    ValueError
        If there is none, or they do not chain from H to 1.
    """
    matrices = [as_tensor(layer).to(first.dtype) for layer in layers]
    if len(matrices) == 1 and matrices[0].ndim == 1:
        matrices = [matrices[0][None, :]]
    chain = [tuple(matrix.shape) for matrix in matrices]
    widths = [first.shape[0], *(shape[0] for shape in chain if shape)]
    wanted = [(high, low) for low, high in pairwise(widths)]
    if not chain or chain != wanted or widths[-1] != 1:
        raise ValueError(
            f"the upper matrices must have shapes (width_1, {widths[0]}), ..., (1, width) on top "
            f"of a layer {tuple(first.shape)}, got {chain}: one column a unit below"
        )
    return matrices


@torch.no_grad()
def copy_weights(parameters: Iterable[Tensor], values: Iterable[Tensor]) -> None:
    """Copy `values` into `parameters`, in place."""
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)


# What layers make together


def end_to_end(layers: Sequence[Tensor]) -> Tensor:
    """The product (width,) of matrices (above, below) up to one score, multiplied from the top."""
    product = layers[-1]
    for layer in range(len(layers) - 2, -1, -1):
        product = product @ layers[layer]
    return product.view(-1)


def layer_imbalance(layers: Sequence[Tensor]) -> Tensor:
    # Squared norm of what comes into each hidden unit less that of what goes out, (width_1 + ...,):
    # for homogeneous units gradient flow changes both alike. One array (above, ..., below) a layer.
    squares = [layer.new_empty(0) for layer in layers[:1]]
    for below, above in pairwise(layers):
        squares.append(below.square().flatten(1).sum(1) - above.square().flatten(0, -2).sum(0))
    return torch.cat(squares)


def linear_factors(hidden: Tensor, layers: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    # Of linear layers on top of `hidden` (n, H): the score's gradient in V_l is the product of the
    # layers above, the same for every sample, times the input of V_l.
    factors = []
    above = [layers[-1].new_ones(1, 1)]
    for layer in reversed(layers[1:]):
        above.append(above[-1] @ layer)
    for layer, outer in zip(layers, reversed(above), strict=True):
        factors.append((outer.expand(len(hidden), -1), hidden))
        hidden = hidden @ layer.T
    return factors
