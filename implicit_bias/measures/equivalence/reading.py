"""Weights of a torch module that computes a fully connected ReLU network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .weights import ReLUWeights

if TYPE_CHECKING:
    import torch


def as_weights(network: ReLUWeights | torch.nn.Module) -> ReLUWeights:
    """Return the weights of a ReLU network: as passed, or those of a module, in float64.

    Modules are read as everywhere: see `recognition.relu.read_relu`.

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
    from ...networks.recognition.relu import NotReLU, read_relu

    try:
        layers = read_relu(network)
    except NotReLU as error:
        raise NotReLU(
            f"{error}; equivalence by permutations and scales is about these alone. Give weights "
            "as `ReLUWeights.from_arrays(matrices, biases)`"
        ) from None
    biases = [
        np.zeros(len(W)) if b is None else b
        for W, b in zip(layers.matrices, layers.biases, strict=True)
    ]
    return ReLUWeights.from_arrays(layers.matrices, biases, slope=layers.slope)


def check_slopes(one: ReLUWeights, other: ReLUWeights) -> None:
    """Check that the units of two networks have one slope; raises ValueError if not."""
    if one.slope != other.slope:
        raise ValueError(
            f"networks must have units of one slope, got {one.slope:g} and {other.slope:g}"
        )
