"""Adapter that calls modules of inputs alone, such as `torch.nn.Sequential`, with gates too."""

from __future__ import annotations

import copy
import inspect
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

N = TypeVar("N", bound=torch.nn.Module)

# Attributes that a network may have beside `forward`: see the protocols.
OPTIONAL = (
    "degree", "zeta", "unit_norms", "dual_norms", "imbalance", "gradient_factors", "gates",
)  # fmt: skip


class GateFree(torch.nn.Module):
    """A module with ``forward(X)`` as one with ``forward(X, gates)``, whose gates are None.

    It shares the weights, and has the module's attributes among `OPTIONAL` as its own: protocols do
    not ask `__getattr__`. One score a sample may come in any shape: (n,), (n, 1), (n, 1, 1, 1).
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        for name in OPTIONAL:
            if hasattr(module, name):
                object.__setattr__(self, name, getattr(module, name))

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n,) of inputs (n, ...)."""
        scores: Tensor = self.module(X)
        return scores.flatten() if scores.numel() == len(X) else scores


def detached_copy(network: N) -> N:
    """Return a deep copy, in which what `forward` remembered of its last call is constant.

    Tensors that hang on a graph, as kept activations and weights of `weight_norm` do, are refused
    by `copy.deepcopy`; the copy makes its own when it is called.
    """
    kept = (value for part in network.modules() for value in tree_leaves(list(vars(part).values())))
    on_graph = [value for value in kept if isinstance(value, Tensor) and not value.is_leaf]
    return copy.deepcopy(network, {id(value): value.detach() for value in on_graph})


def uncompiled(network: torch.nn.Module) -> torch.nn.Module:
    """Return the module that `torch.compile` made this one of, or the network itself.

    They share their weights. Compiled modules hide the parameters of `forward`, and protocols do
    not see their attributes.
    """
    inner = getattr(network, "_orig_mod", None)
    return inner if isinstance(inner, torch.nn.Module) else network


def with_gates(network: torch.nn.Module) -> torch.nn.Module:
    """Return the network itself if it takes gates, a `GateFree` of it if it takes inputs alone.

    Of a compiled network the module that it was made of.
    """
    network = uncompiled(network)
    return network if takes_gates(network) or isinstance(network, GateFree) else GateFree(network)


def compiled_with_gates(network: torch.nn.Module) -> torch.nn.Module:
    """Return the same, but a compiled network as it is compiled."""
    if uncompiled(network) is network:
        return with_gates(network)
    return network if takes_gates(uncompiled(network)) else GateFree(network)


def plain(network: torch.nn.Module) -> torch.nn.Module:
    """Return the user's own module inside what `with_gates` returned."""
    inner = network.module if isinstance(network, GateFree) else network
    assert isinstance(inner, torch.nn.Module)
    return inner


def takes_gates(network: torch.nn.Module) -> bool:
    """Return whether ``forward`` has a positional parameter for gates, after the inputs."""
    if isinstance(network, GateFree):
        return False
    kinds = [one.kind for one in inspect.signature(network.forward).parameters.values()]
    several = inspect.Parameter.VAR_POSITIONAL in kinds
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return several or sum(kind in by_place for kind in kinds) > 1
