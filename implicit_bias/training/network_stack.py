"""Networks of one architecture side by side: weights and scores have a leading axis of networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from ..networks.adapted import plain
from ..networks.placed_data import GatedData, trained_weights
from .settings import TrainingSettings

# A learning rate: one number, one a network (B,), or None where the method finds its own.
Rate = float | Tensor | None


def refuse_autocast(weights: Sequence[Tensor]) -> None:
    """Refuse steps under `torch.autocast`, which keeps casts of weights that the steps change.

    Raises
    ------
    RuntimeError
        If it is on for these weights; it leaves float64 as it is.
    """
    first = weights[0]
    if first.dtype != torch.float64 and torch.is_autocast_enabled(first.device.type):
        raise RuntimeError(
            "`torch.autocast` is on, which keeps casts of the weights while steps change them, so "
            "that no step would be seen: train outside of it; a closure may turn it on for itself"
        )


class NetworkStack:
    """B networks of one architecture, trained side by side; scores of K classes are (B, n, K).

    Attributes
    ----------
    networks : list of Module
    weights : list of tensors (B, ...)
        The trained weights, detached; changing them in place changes the scores.
    repeatable : bool
        Whether scores of an earlier batch may be asked for again.
    """

    repeatable = True
    networks: list[torch.nn.Module]
    weights: list[Tensor]
    _leaves: Sequence[Tensor]  # of autograd: the weights, with or without their first axis

    def scores(self, batch: GatedData) -> Tensor:
        """Return the scores (B, n), with the graph that `vjp` needs."""
        raise NotImplementedError

    def vjp(self, scores: Tensor, coefficients: Tensor, *, keep: bool = False) -> list[Tensor]:
        """Return the gradients of ``sum_n coefficients[b, n] scores[b, n]`` in all weights.

        With `keep` another call follows, with the scores that `rescored` returns.

        Raises
        ------
        ValueError
            If the scores do not depend on one of the weights.
        """
        # Of their sum and not of the scores: torch would load a package of algebra for these.
        with torch.enable_grad():  # which the step of an optimiser of torch turns off
            total = torch.dot(scores.flatten(), coefficients.flatten())
        retained = keep and not _is_compiled(scores)
        gradients = torch.autograd.grad(
            total, self._leaves, retain_graph=retained, allow_unused=True
        )
        for i, gradient in enumerate(gradients):
            if gradient is None:
                raise ValueError(
                    f"the scores do not depend on weight {i} of {len(gradients)}, of shape "
                    f"{tuple(self.weights[i].shape[1:])}: train only weights that they use, and "
                    "set requires_grad=False of all others"
                )
        return [g.view_as(w) for g, w in zip(gradients, self.weights, strict=True)]

    def rescored(self, scores: Tensor, batch: GatedData) -> Tensor:
        """Return scores at the same weights for another call of `vjp`, after one with `keep`.

        The graph of compiled code can be gone through once alone: it is computed again.
        """
        return self.scores(batch) if _is_compiled(scores) else scores

    def uncompiled_scores(self, batch: GatedData) -> Tensor:
        """Return the scores (B, n) with a graph for `sample_gradients`, without compiled code.

        The derivatives of several samples at once do not go through it.
        """
        scores = self.scores(batch)
        if _is_compiled(scores):
            with torch.compiler.set_stance("force_eager"):
                scores = self.scores(batch)
        return scores

    @torch.no_grad()
    def looked_at(self, batch: GatedData) -> Tensor:
        """Return the scores (B, n) at weights that will not stay, without a graph."""
        return self.scores(batch).detach()

    def sample_gradients(self, scores: Tensor, coefficients: Tensor) -> list[Tensor]:
        """Return gradients (k, ...) of combinations of scores in the first network's weights.

        There is one for each row of coefficients (k, n) or (k, n, K) of its scores; the graph
        stays.
        """
        every = scores.new_zeros(len(coefficients), *scores.shape)
        every[:, 0] = coefficients
        gradients = torch.autograd.grad(
            scores, self._leaves, every, retain_graph=True, is_grads_batched=True
        )
        pairs = zip(gradients, self.weights, strict=True)
        return [g.view(len(coefficients), *w.shape)[:, 0] for g, w in pairs]

    def write_back(self) -> None:
        """Copy the weights into the networks, where these do not share them."""


def _is_compiled(scores: Tensor) -> bool:
    """Return True for scores whose graph has a part that `torch.compile` has made."""
    seen: set[Any] = set()
    left = [scores.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            if type(node).__name__.startswith("CompiledFunction"):
                return True
            seen.add(node)
            left += [below for below, _ in node.next_functions]
    return False


class SingleNetwork(NetworkStack):
    """A single network, trained in place.

    Parameters
    ----------
    network : Module
        ``network(X, gates)`` gives scores (n,).
    compiled : Module, optional
        What computes the scores in its place, of the same weights.
    """

    def __init__(self, network: torch.nn.Module, compiled: torch.nn.Module | None = None) -> None:
        self.networks = [network]
        self._scores = network if compiled is None else compiled
        self._leaves = trained_weights(network)
        # Detached tensors share memory with the parameters and may be changed without autograd.
        self.weights = [p.detach()[None] for p in self._leaves]

    def scores(self, batch: GatedData) -> Tensor:
        """Return the network's scores (1, n), with their graph."""
        scores: Tensor = self._scores(batch.X, batch.gates)
        return scores[None]


class StackedNetworks(NetworkStack):
    """Several networks of one architecture, whose stacked weights are computed with at once.

    Raises
    ------
    ValueError
        If the networks differ in more than their weights, or two are the same object.
    """

    def __init__(self, networks: Sequence[torch.nn.Module]) -> None:
        self.networks = list(networks)
        first = self.networks[0]
        _check_same_architecture([plain(network) for network in self.networks])
        self._names = _trained_names(first)
        everything = [dict(n.named_parameters()) | dict(n.named_buffers()) for n in self.networks]
        stacked = {k: torch.stack([e[k].detach() for e in everything]) for k in everything[0]}
        self._leaves = [stacked.pop(k).requires_grad_() for k in self._names]
        self.weights = [leaf.detach() for leaf in self._leaves]
        self._fixed = stacked

        def scores_of_one(weights: dict[str, Tensor], X: Tensor, gates: Tensor | None) -> Any:
            """Return the scores (n,) of a network with these weights."""
            return functional_call(first, weights, (X, gates))

        self._forward = vmap(scores_of_one, in_dims=(0, None, None))

    def scores(self, batch: GatedData) -> Tensor:
        """Return the scores (B, n) of all networks, with their graph."""
        trained = dict(zip(self._names, self._leaves, strict=True))
        scores: Tensor = self._forward(trained | self._fixed, batch.X, batch.gates)
        return scores

    @torch.no_grad()
    def write_back(self) -> None:
        """Copy the stacked weights into the networks."""
        for b, network in enumerate(self.networks):
            parameters = dict(network.named_parameters())
            for name, weight in zip(self._names, self.weights, strict=True):
                parameters[name].copy_(weight[b])


def _check_same_architecture(networks: list[torch.nn.Module]) -> None:
    """Check that networks differ in the values of their trained weights alone."""
    first, *others = networks
    trained_weights(first)
    together = "networks that train as one must"
    if len(set(map(id, networks))) < len(networks):
        raise ValueError(
            f"{together} be different objects, and one is there twice: copy it with copy.deepcopy"
        )
    for other in others:
        alike = _shapes(other) == _shapes(first) and _slopes(other) == _slopes(first)
        if type(other) is not type(first) or not alike:
            raise ValueError(
                f"{together} be of one class, with weights of the same shapes, dtype and device, "
                "and units of one slope: train those that differ one by one"
            )
        if _trained_names(other) != _trained_names(first):
            raise ValueError(
                f"{together} have the same trained weights: give requires_grad of their parameters "
                "the same values"
            )
        if not all(map(torch.equal, other.buffers(), first.buffers())):
            raise ValueError(
                f"{together} have equal buffers (contexts, for instance): train those that differ "
                "one by one"
            )


def _shapes(network: torch.nn.Module) -> dict[str, tuple[Any, ...]]:
    return {k: (v.shape, v.dtype, v.device) for k, v in network.state_dict().items()}


def _slopes(network: torch.nn.Module) -> dict[str, Any]:
    """Return the slopes of leaky units, by the modules that have them."""
    kinds = ("slope", "negative_slope")
    return {
        f"{name}.{kind}": getattr(module, kind)
        for name, module in network.named_modules()
        for kind in kinds
        if hasattr(module, kind)
    }


def _trained_names(network: torch.nn.Module) -> list[str]:
    return [name for name, weight in network.named_parameters() if weight.requires_grad]


def stacked_schedule(
    settings: Sequence[TrainingSettings], network: torch.nn.Module
) -> tuple[tuple[int, Rate], ...]:
    """Return the schedule of all networks, with rates (B,) where they differ.

    Parameters
    ----------
    settings : sequence of TrainingSettings
        One a network.
    network : Module
        On whose device the rates are to be.

    Raises
    ------
    ValueError
        If the settings differ in more than their rates.
    """
    first = settings[0]
    for other in settings[1:]:
        steps = [[phase[0] for phase in s.phases] for s in (first, other)]
        same_steps = steps[0] == steps[1] and other.automatic == first.automatic
        if not same_steps or replace(other, schedule=first.schedule) != first:
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
