"""Networks side by side: every weight and every score has a leading axis, one entry a run."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from .data import GatedData, trained_weights

__all__ = ["OneRun", "Runs", "StackedRuns", "along"]


def along(values: Tensor, weight: Tensor) -> Tensor:
    """`values` (B,) with as many axes as `weight` (B, ...)."""
    return values.view(-1, *[1] * (weight.ndim - 1))


class Runs(Protocol):
    """B networks of one architecture.

    Attributes
    ----------
    networks : list of Module
    weights : list of tensors (B, ...)
        The trained weights, detached; changing them in place changes the scores.
    """

    networks: list[torch.nn.Module]
    weights: list[Tensor]

    def scores(self, batch: GatedData) -> Tensor:
        """(B, n) scores, with the graph that `pull` needs."""

    def pull(self, scores: Tensor, coefficients: Tensor) -> list[Tensor]:
        """Gradients of `sum_n coefficients[b, n] scores[b, n]` in the weights of every run b."""

    def write_back(self) -> None:
        """Give the networks their weights."""


class OneRun:
    """A single network, trained in place."""

    def __init__(self, network: torch.nn.Module) -> None:
        self.networks = [network]
        self._network, self._parameters = network, trained_weights(network)
        # Detached tensors share memory with the parameters and may be changed without autograd.
        self.weights = [p.detach()[None] for p in self._parameters]

    def scores(self, batch: GatedData) -> Tensor:
        scores: Tensor = self._network(batch.X, batch.gates)
        return scores[None]

    def pull(self, scores: Tensor, coefficients: Tensor) -> list[Tensor]:
        return [g[None] for g in torch.autograd.grad(scores, self._parameters, coefficients)]

    def write_back(self) -> None:
        pass


class StackedRuns:
    """Several networks of one architecture, whose weights are stacked and computed with at once.

    Raises
    ------
    ValueError
        If the networks differ in more than their weights, or two are the same object.
    """

    def __init__(self, networks: Sequence[torch.nn.Module]) -> None:
        self.networks = list(networks)
        first = self.networks[0]
        shapes = [{k: (v.shape, v.dtype, v.device) for k, v in n.state_dict().items()}
                  for n in self.networks]  # fmt: skip
        if any(type(n) is not type(first) for n in self.networks) or any(
            s != shapes[0] for s in shapes
        ):
            raise ValueError(
                "networks that train as one must be of one class, with weights of the same shapes, "
                "dtype and device: train those that differ one by one"
            )
        if len({id(n) for n in self.networks}) < len(self.networks):
            raise ValueError(
                "networks that train as one must be different objects, and one is there twice: "
                "copy it with copy.deepcopy"
            )
        trained_weights(first)
        names = [k for k, p in first.named_parameters() if p.requires_grad]
        if any([k for k, p in n.named_parameters() if p.requires_grad] != names
               for n in self.networks):  # fmt: skip
            raise ValueError(
                "networks that train as one must have the same trained weights: set requires_grad "
                "of their parameters alike"
            )
        if any(not all(torch.equal(a, b) for a, b in zip(n.buffers(), first.buffers(), strict=True))
               for n in self.networks):  # fmt: skip
            raise ValueError(
                "networks that train as one must have equal buffers (contexts, for instance): "
                "train those that differ one by one"
            )
        everything = [dict(n.named_parameters()) | dict(n.named_buffers()) for n in self.networks]
        stacked = {k: torch.stack([e[k].detach() for e in everything]) for k in everything[0]}
        self._fixed = {k: v for k, v in stacked.items() if k not in names}
        self.weights = [stacked[k] for k in names]
        self._leaves = {k: stacked[k].requires_grad_() for k in names}
        self.weights = [leaf.detach() for leaf in self._leaves.values()]
        self._names = names

        def one(weights: dict[str, Tensor], X: Tensor, gates: Tensor | None) -> Tensor:
            result: Tensor = functional_call(first, weights, (X, gates))
            return result

        self._forward = vmap(one, in_dims=(0, None, None))

    def scores(self, batch: GatedData) -> Tensor:
        scores: Tensor = self._forward({**self._leaves, **self._fixed}, batch.X, batch.gates)
        return scores

    def pull(self, scores: Tensor, coefficients: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(scores, list(self._leaves.values()), coefficients))

    def write_back(self) -> None:
        with torch.no_grad():
            for b, network in enumerate(self.networks):
                parameters = dict(network.named_parameters())
                for name, weight in zip(self._names, self.weights, strict=True):
                    parameters[name].copy_(weight[b])
