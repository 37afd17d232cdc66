"""The one reader of ReLU networks: matrices, biases and the slope that a module computes with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain as joined
from itertools import islice, pairwise, product
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import leaky_relu

from ..adapted import in_float64, plain
from ..placed_data import GatedData
from .subject import SAME, SAMPLES, Subject, Weights
from .units import Chain, chains

# Assignments of parameters to layers that are tried, and chains that are looked at for them.
MOST, _LOOKED_AT = 64, 4096


class NotReLU(TypeError, ValueError):
    """A network is no fully connected ReLU network: of another kind, and so are its values."""


@dataclass(frozen=True, eq=False)
class ReLULayers:
    """Weights of a fully connected ReLU network.

    Attributes
    ----------
    matrices : tuple of arrays
        W_1 (width_1, D), ..., W_L (K, width_{L-1}), float64.
    biases : tuple of arrays or None
        b_1 (width_1,), ..., b_L (K,); None of a layer that has no such parameter.
    slope : float
        Of closed units, in [0, 1).
    """

    matrices: tuple[NDArray[np.float64], ...]
    biases: tuple[NDArray[np.float64] | None, ...]
    slope: float

    def without_biases(self) -> tuple[NDArray[np.float64], ...]:
        """Return the matrices of a network that has no biases; raises ValueError if it has."""
        if any(b is not None for b in self.biases):
            raise ValueError(
                "`network` has biases, which the margin problem and gates of its inputs do not "
                "cover: train with bias=False on X with a constant column"
            )
        return self.matrices


def read_relu(network: Any) -> ReLULayers:
    """Return the weights of a module that computes a fully connected ReLU network.

    Parameters are matrices, or their transposes, and vectors, in any order; random inputs at the
    given weights and at random ones check that the architecture is no other one (with skips, gates,
    another activation). Leaky units have one slope, as the module states it or as it is measured.

    Parameters
    ----------
    network : Module
        Takes ``forward(X)``, or ``forward(X, gates)`` with None for gates; of any dtype and device.

    Raises
    ------
    NotReLU
        If it is no module, or one that computes something else. It is a TypeError and a ValueError.
    ValueError
        If weights are not finite, or a slope is outside [0, 1).
    """
    if not isinstance(network, torch.nn.Module):
        raise NotReLU(_refusal(network, ""))
    if not all(bool(torch.isfinite(p).all()) for p in network.parameters()):
        raise ValueError(
            "`network` has weights that are NaN or infinite: its training has diverged, take an "
            "earlier checkpoint"
        )
    for subject in _subjects(network):
        form = find_relu(subject)
        if form is not None:
            return form.layers(subject.weights)
    shapes = [tuple(p.shape) for p in network.parameters()]
    raise NotReLU(_refusal(network, f" on its parameters (shapes {shapes})"))


def _refusal(network: Any, shapes: str) -> str:
    name = type(network).__name__
    return (
        f"{name} is not a fully connected ReLU network{shapes}: `network` must be a networks.ReLU, "
        "a networks.DeepReLU, a torch.nn.Sequential of Linear, ReLU or LeakyReLU, and Linear, or a "
        f"module of the same scores, got {name}"
    )


def _subjects(network: torch.nn.Module) -> Iterator[Subject]:
    """Yield a copy of a module on random inputs, of every number of them that it takes."""
    module = in_float64(network).requires_grad_()
    matrices = [p for p in module.parameters() if p.ndim == 2]
    sizes = (*(p.shape[1] for p in matrices), *(p.shape[0] for p in matrices))
    for n_inputs in dict.fromkeys(sizes):
        rng = torch.Generator().manual_seed(0)
        X = torch.randn((SAMPLES, n_inputs), generator=rng, dtype=torch.float64)
        subject = Subject(module, GatedData(X, X.new_ones(SAMPLES), None))
        try:
            count = subject.scores({}).numel()
        except Exception:  # whatever a module of the user's own raises: it takes other inputs
            continue
        if count and count % SAMPLES == 0:
            yield subject


@dataclass(frozen=True)
class ReLUForm:
    """Which parameters are the layers of a ReLU network.

    Attributes
    ----------
    chain : Chain
        W_1, ..., W_L.
    biases : tuple of str
        Parameters b_1, ..., b_L; empty where a layer has none.
    widths : tuple of int
        Hidden units, first layer first.
    slope : float
        Of closed units, in [0, 1).
    error : float
        Largest relative misfit of this form at random weights and at the given ones.
    """

    chain: Chain
    biases: tuple[str, ...]
    widths: tuple[int, ...]
    slope: float = 0.0
    error: float = 0.0

    @property
    def n_layers(self) -> int:
        """Number of layers of weights: the degree of the scores."""
        return len(self.chain.names)

    def layers(self, w: Weights) -> ReLULayers:
        """Return the layers at weights w."""
        return ReLULayers(
            tuple(matrix.numpy() for matrix in self.chain.matrices(w)),
            tuple(w[name].flatten().numpy() if name else None for name in self.biases),
            self.slope,
        )

    def scores(self, w: Weights, X: Tensor) -> Tensor:
        """Return the scores (n, K) of inputs (n, D) at weights w."""
        hidden = X
        layers = list(zip(self.chain.matrices(w), self.biases, strict=True))
        for matrix, bias in layers[:-1]:
            hidden = leaky_relu(_affine(hidden, matrix, w, bias), self.slope)
        return _affine(hidden, layers[-1][0], w, layers[-1][1])


def _affine(X: Tensor, matrix: Tensor, w: Weights, bias: str) -> Tensor:
    moved = X @ matrix.T
    return moved + w[bias].flatten() if bias else moved


def find_relu(subject: Subject) -> ReLUForm | None:
    """Look for a ReLU network among scores; None where they have no such form.

    Its slope is the stated one, or else what is measured.

    Parameters
    ----------
    subject : Subject
        Of one score a sample or several.
    """
    stated = stated_slope(subject.network)
    for form in islice(assignments(subject), MOST):
        for slope in dict.fromkeys((stated, _measured_slope(subject, form))):
            found = replace(form, slope=slope)
            error = subject.error(partial(found.scores, X=subject.inputs))
            if error <= SAME:
                return replace(found, error=error)
    return None


def stated_slope(network: torch.nn.Module) -> float:
    """Return the slope of closed units that a module states, 0 if it states none or several.

    Raises
    ------
    ValueError
        If it is one of a `torch.nn.LeakyReLU`, outside [0, 1).
    """
    leaky = {m.negative_slope for m in network.modules() if isinstance(m, torch.nn.LeakyReLU)}
    for slope in leaky:
        if not 0 <= slope < 1:
            raise ValueError(f"`network` must have a slope in [0, 1), got {slope}")
    one = leaky.pop() if len(leaky) == 1 else getattr(plain(network), "slope", 0.0)
    return float(one) if isinstance(one, int | float) and 0 <= one < 1 else 0.0


def _measured_slope(subject: Subject, form: ReLUForm) -> float:
    """Return the slope that closed units would have; 0 where the form cannot be right.

    With equal rows below, positive weights above and no biases all units are open on one side and
    closed on the other, where a score has the slope once a hidden layer.
    """
    rng = torch.Generator().manual_seed(0)
    row = torch.randn(subject.inputs.shape[1], generator=rng, dtype=torch.float64)
    first, *others = form.chain.matrices(subject.weights)
    alike = [row.expand_as(first), *(torch.ones_like(matrix) for matrix in others)]
    named = form.chain.placed(alike, subject.weights)
    named |= {name: torch.zeros_like(subject.weights[name]) for name in form.biases if name}
    scores = subject.scores(named).reshape(len(subject.inputs), -1)[:, 0]
    along = subject.inputs @ row
    there = along < 0
    if not there.any():
        return 0.0
    shares = scores[there] / (along[there] * prod(form.widths))
    slope = float(shares.median().clamp(min=0)) ** (1 / len(form.widths))
    # A linear network has the slope 1 up to rounding.
    return slope if slope < 1 - 1e-9 else 0.0


def assignments(subject: Subject) -> Iterator[ReLUForm]:
    """Yield every assignment of all parameters to layers that fits, in the module's order first."""
    w, n_inputs = subject.weights, subject.inputs.shape[1]
    n_outputs = subject.scores(w).numel() // len(subject.inputs)
    other = islice(chains(w, n_outputs), _LOOKED_AT)
    for chain in joined(_in_order(w), other):
        sizes = tuple(len(matrix) for matrix in chain.matrices(w))
        if len(sizes) > 1 and (chain.n_inputs, sizes[-1]) == (n_inputs, n_outputs):
            for biases in _biases(w, chain, sizes):
                yield ReLUForm(chain, biases, sizes[:-1])


def _in_order(w: Weights) -> Iterator[Chain]:
    """Yield the chain of all matrices in the order of the module, where they fit each other."""
    names = [name for name, p in w.items() if p.ndim == 2]
    if names and all(w[above].shape[1] == len(w[below]) for below, above in pairwise(names)):
        yield Chain(tuple(names), (False,) * len(names), w[names[0]].shape[1])


def _biases(w: Weights, chain: Chain, sizes: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield the ways in which the rest of the parameters are biases of layers of their sizes."""
    rest, places, last = [], [], 0
    for name, p in w.items():
        if name in chain.names:
            last = chain.names.index(name)
        else:
            rest.append(name)
            # That of the matrix before it in the module first.
            order = dict.fromkeys((last, *range(len(sizes))))
            places.append([layer for layer in order if sizes[layer] == p.numel()])
    for layers in islice(product(*places), _LOOKED_AT):
        if len(set(layers)) == len(rest):
            of = dict(zip(layers, rest, strict=True))
            yield tuple(of.get(layer, "") for layer in range(len(sizes)))
