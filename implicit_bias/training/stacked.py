"""Networks side by side: every weight and every score has a leading axis, one entry a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from ..networks.adapted import plain
from .data import GatedData, trained_weights
from .settings import TrainingSettings

__all__ = ["OneRun", "Rate", "Runs", "StackedRuns", "along", "pull_each", "stacked_schedule"]


Rate = float | Tensor | None


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

    def pull(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        """Gradients of `sum_n coefficients[b, n] scores[b, n]` in the weights of every run b.

        With `keep` the graph stays, for another pull.
        """

    def pull_each(self, scores: Tensor, samples: Tensor) -> list[Tensor]:
        """(k, ...) gradients of `scores[0, n]` in the weights of run 0, n one of k `samples`.

        The graph stays.
        """

    def write_back(self) -> None:
        """Give the networks their weights."""


def pull_each(scores: Tensor, leaves: Sequence[Tensor], samples: Tensor) -> list[Tensor]:
    """Gradients (k, ...) of `scores[0, n]` in the leaves, n one of k `samples`; the graph stays."""
    chosen = scores.new_zeros(len(samples), *scores.shape)
    chosen[torch.arange(len(samples), device=samples.device), 0, samples] = 1.0
    return list(
        torch.autograd.grad(scores, leaves, chosen, retain_graph=True, is_grads_batched=True)
    )


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

    def pull(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        pulled = torch.autograd.grad(scores, self._parameters, coefficients, retain_graph=keep)
        return [g[None] for g in pulled]

    def pull_each(self, scores: Tensor, samples: Tensor) -> list[Tensor]:
        return pull_each(scores, self._parameters, samples)

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
        _check_alike([plain(network) for network in self.networks])
        names = _trained_names(first)
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

    def pull(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        leaves = list(self._leaves.values())
        return list(torch.autograd.grad(scores, leaves, coefficients, retain_graph=keep))

    def pull_each(self, scores: Tensor, samples: Tensor) -> list[Tensor]:
        return [g[:, 0] for g in pull_each(scores, list(self._leaves.values()), samples)]

    def write_back(self) -> None:
        with torch.no_grad():
            for b, network in enumerate(self.networks):
                parameters = dict(network.named_parameters())
                for name, weight in zip(self._names, self.weights, strict=True):
                    parameters[name].copy_(weight[b])


def _check_alike(networks: list[torch.nn.Module]) -> None:
    """See that networks differ in the values of their trained weights alone."""
    first, *others = networks
    trained_weights(first)
    together = "networks that train as one must"
    if len(set(map(id, networks))) < len(networks):
        raise ValueError(
            f"{together} be different objects, and one is there twice: copy it with copy.deepcopy"
        )
    for other in others:
        if type(other) is not type(first) or _shapes(other) != _shapes(first):
            raise ValueError(
                f"{together} be of one class, with weights of the same shapes, dtype and device: "
                "train those that differ one by one"
            )
        if _trained_names(other) != _trained_names(first):
            raise ValueError(
                f"{together} have the same trained weights: set requires_grad of their parameters "
                "alike"
            )
        if not all(map(torch.equal, other.buffers(), first.buffers())):
            raise ValueError(
                f"{together} have equal buffers (contexts, for instance): train those that differ "
                "one by one"
            )


def _shapes(network: torch.nn.Module) -> dict[str, tuple[Any, ...]]:
    return {k: (v.shape, v.dtype, v.device) for k, v in network.state_dict().items()}


def _trained_names(network: torch.nn.Module) -> list[str]:
    return [name for name, weight in network.named_parameters() if weight.requires_grad]


def stacked_schedule(
    settings: Sequence[TrainingSettings], network: torch.nn.Module
) -> tuple[tuple[int, Rate], ...]:
    """The schedule of all runs, with rates (B,) where they differ.

    Raises
    ------
    ValueError
        If the settings differ in more than their rates.
    """
    first = settings[0]
    for other in settings[1:]:
        steps = [[phase[0] for phase in s.phases] for s in (first, other)]
        alike = steps[0] == steps[1] and other.automatic == first.automatic
        if not alike or replace(other, schedule=first.schedule) != first:
            raise ValueError(
                "settings of networks that train as one may differ in learning rates alone, all of "
                f"them numbers or all None, got {first} and {other}"
            )
    phases: list[tuple[int, Rate]] = []
    for parts in zip(*(s.phases for s in settings), strict=True):
        rates = [rate for _, rate in parts]
        if len(set(rates)) == 1:
            phases.append((parts[0][0], rates[0]))
        else:
            device = next(network.parameters()).device
            phases.append((parts[0][0], torch.tensor(rates, dtype=torch.float64, device=device)))
    return tuple(phases)
