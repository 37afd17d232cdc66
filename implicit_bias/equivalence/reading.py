"""Weights of a torch module that computes a fully connected ReLU network."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .weights import Array, ReLUWeights

if TYPE_CHECKING:
    import torch

__all__ = ["as_weights", "check_slopes"]

# Scores of a network in float32 against those in float64, relative to the largest: many sums of
# rounding errors of 6e-8, and far below what another architecture differs by.
_SAME = 1e-4
_PROBES = 64


def as_weights(network: ReLUWeights | torch.nn.Module) -> ReLUWeights:
    """Return the weights of a ReLU network: as passed, or those of a module, in float64.

    Leaky units have one slope: that of the module, or of its `torch.nn.LeakyReLU`.
    A module's parameters come in the order of its layers: matrices, each with a vector of biases
    behind it or not, or W (H, D) and output weights (H,). Random inputs check that the architecture
    is no other one (with skips, gates, another activation).

    Raises
    ------
    TypeError
        If it is neither weights nor a module.
    ValueError
        If its outputs are not those of a fully connected ReLU network with these weights.
    """
    if isinstance(network, ReLUWeights):
        return network
    import torch

    if not isinstance(network, torch.nn.Module):
        raise TypeError(
            "a network must be a torch module or `ReLUWeights`, got "
            f"{type(network).__name__}: see `ReLUWeights.from_arrays`"
        )
    arrays = [p.detach().double().cpu().numpy() for p in network.parameters()]
    slope = _slope(network)
    for read in filter(None, (_with_biases(arrays), _with_output_vector(arrays))):
        weights = replace(read, slope=slope)
        if _computes(network, weights):
            return weights
    raise ValueError(
        f"{type(network).__name__} is not a fully connected ReLU network on its parameters "
        f"(shapes {[a.shape for a in arrays]}): equivalence by permutations and scales is about "
        "these alone. Give weights as `ReLUWeights.from_arrays(matrices, biases)`"
    )


def check_slopes(one: ReLUWeights, other: ReLUWeights) -> None:
    """Check that the units of two networks have one slope; raises ValueError if not."""
    if one.slope != other.slope:
        raise ValueError(
            f"networks must have units of one slope, got {one.slope:g} and {other.slope:g}"
        )


def _slope(network: torch.nn.Module) -> float:
    """Return the slope of the units of a module, 0 if it has none or several."""
    from torch import nn

    leaky = {m.negative_slope for m in network.modules() if isinstance(m, nn.LeakyReLU)}
    slope = leaky.pop() if len(leaky) == 1 else getattr(network, "slope", 0.0)
    return float(slope) if isinstance(slope, int | float) and 0 <= slope < 1 else 0.0


def _with_biases(arrays: list[Array]) -> ReLUWeights | None:
    """Read matrices, each followed by its biases or by none; None for other shapes."""
    matrices: list[Array] = []
    biases: list[Array] = []
    for array in arrays:
        if array.ndim == 2:
            matrices.append(array)
            biases.append(np.zeros(len(array)))
        elif array.ndim == 1 and matrices and array.shape == (len(matrices[-1]),):
            biases[-1] = array
        else:
            return None
    fit = all(above.shape[1] == len(below) for below, above in pairwise(matrices))
    return ReLUWeights.from_arrays(matrices, biases) if len(matrices) > 1 and fit else None


def _with_output_vector(arrays: list[Array]) -> ReLUWeights | None:
    """Read W (H, D) and a (H,); None for other shapes."""
    shapes = [array.ndim for array in arrays]
    if shapes != [2, 1] or len(arrays[0]) != len(arrays[1]):
        return None
    return ReLUWeights.from_arrays([arrays[0], arrays[1][None]])


def _computes(network: torch.nn.Module, weights: ReLUWeights) -> bool:
    import torch

    X = np.random.default_rng(0).normal(size=(_PROBES, weights.n_inputs))
    expected = weights.scores(X)
    parameter = next(network.parameters())
    try:
        with torch.no_grad():
            found = network(torch.as_tensor(X).to(parameter)).double().cpu().numpy()
    except (RuntimeError, ValueError, TypeError):  # it wants gates, or inputs of another shape
        return False
    if found.size != expected.size:
        return False
    off = np.abs(found.reshape(expected.shape) - expected).max()
    return bool(off <= _SAME * max(np.abs(expected).max(), np.finfo(float).tiny))
