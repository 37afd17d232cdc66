"""Modules such as users bring: of torch's layers, of their own, tied, gated, not homogeneous."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn


def drawn(*shape: int, seed: int = 0) -> nn.Parameter:
    """A parameter of standard normal weights."""
    rng = torch.Generator().manual_seed(seed)
    return nn.Parameter(torch.randn(shape, generator=rng, dtype=torch.float64))


def linear(below: int, above: int, *, bias: bool = False, seed: int = 0) -> nn.Linear:
    """A layer of torch's own with weights that do not depend on what was drawn before."""
    layer = nn.Linear(below, above, bias=bias).double()
    with torch.no_grad():
        layer.weight.copy_(drawn(above, below, seed=seed) / math.sqrt(below))
        if bias:
            layer.bias.copy_(drawn(above, seed=seed + 1))
    return layer


def perceptron(
    *widths: int, bias: bool = False, act: type[nn.Module] = nn.ReLU, last_bias: bool | None = None
) -> nn.Sequential:
    """Layers of these widths, the inputs first and one score last, with `act` between them."""
    layers: list[nn.Module] = []
    sizes = (*widths, 1)
    for k, (below, above) in enumerate(pairwise(sizes)):
        last = k == len(widths) - 1
        layers += [] if k == 0 else [act()]
        own = bias if last_bias is None or not last else last_bias
        layers.append(linear(below, above, bias=own, seed=10 * k))
    return nn.Sequential(*layers)


def of_two_slopes(n_inputs: int) -> nn.Sequential:
    """A network of two hidden layers, of which the upper one alone is leaky."""
    first, act, second, _, last = perceptron(n_inputs, 5, 4)
    return nn.Sequential(first, act, second, nn.LeakyReLU(), last)


def convolution(size: int = 6, channels: int = 3) -> nn.Sequential:
    """A convolution without biases, rectified, under a linear score."""
    conv = nn.Conv2d(1, channels, 3, bias=False).double()
    with torch.no_grad():
        conv.weight.copy_(drawn(channels, 1, 3, 3, seed=1))
    return nn.Sequential(
        conv, nn.ReLU(), nn.Flatten(), linear(channels * (size - 2) ** 2, 1, seed=2)
    )


class Circular(nn.Module):
    """Circular convolutions of full width, one behind the other, under a linear score."""

    def __init__(self, n_layers: int, size: int = 4) -> None:
        super().__init__()
        self.layers = nn.ParameterList(drawn(size, seed=k) for k in range(n_layers))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        *below, top = self.layers
        for w in below:
            shifted = torch.stack([torch.roll(x, -k, 1) for k in range(len(w))], dim=2)
            x = shifted @ w
        return x @ top


class ResidualPerceptron(nn.Module):
    """A linear score of ``x + B relu(A x)``: a sum of terms of degrees 1 and 3."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.inner, self.outer = drawn(7, n_inputs, seed=1), drawn(n_inputs, 7, seed=2)
        self.score = drawn(n_inputs, seed=3)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return (x + torch.relu(x @ self.inner.T) @ self.outer.T) @ self.score


class TiedAutoencoder(nn.Module):
    """One matrix up and down again: a quadratic form in it."""

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.code = drawn(width, n_inputs)
        self.register_buffer("probe", torch.linspace(1, 2, n_inputs, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return (x @ self.code.T) @ (self.code @ self.probe)


class Diagonal(nn.Module):
    """A linear predictor of products of two weights, whose limit has the least L1 norm."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.u, self.v = drawn(n_inputs), drawn(n_inputs, seed=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return x @ (self.u * self.v)


class LogPeriodic(nn.Module):
    """A linear predictor that doubles with its weights and is homogeneous at no other factor."""

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.w = drawn(n_inputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        wave = torch.sin(2 * math.pi * torch.log2(self.w.norm()))
        return (x @ self.w) * (1 + 0.3 * wave)


class OfTwo(nn.Module):
    """A function of a linear score, of its weights, and of a number."""

    def __init__(self, n_inputs: int, of: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.of, self.w, self.b = of, drawn(n_inputs), drawn(1, seed=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return self.of(x @ self.w, self.w, self.b)


class HardGated(nn.Module):
    """Linear experts behind gates that are parameters, but that no gradient moves."""

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.gating, self.experts = drawn(width, n_inputs), drawn(width, n_inputs, seed=1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (n,)."""
        return ((x @ self.gating.T > 0) * (x @ self.experts.T)).sum(1)


class TransposedReLU(nn.Module):
    """A two-layer ReLU network with weights stored the other way round, output first."""

    def __init__(self, n_inputs: int, width: int) -> None:
        super().__init__()
        self.top, self.bottom = drawn(width, 1, seed=1), drawn(n_inputs, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores as a column (n, 1)."""
        return torch.relu(x @ self.bottom) @ self.top


class OwnGLN(nn.Module):
    """A gated linear network that a user wrote, with contexts as its second input."""

    def __init__(self, n_inputs: int, n_units: int, n_contexts: int) -> None:
        super().__init__()
        self.readout = drawn(n_units, seed=1)
        self.weight = drawn(n_units, n_contexts, n_inputs)

    def forward(self, x: Tensor, contexts: Tensor) -> Tensor:
        """Return the scores (n,)."""
        unit = torch.arange(len(self.readout))
        return torch.einsum("nhd,nd,h->n", self.weight[unit, contexts], x, self.readout)
