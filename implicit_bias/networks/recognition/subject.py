"""A module of the user's own, copied and checked, as a function of weights and samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.functional import jvp
from torch.func import functional_call, grad, vmap
from torch.overrides import TorchFunctionMode

from ..._support.solve import require_real
from ..adapted import GateFree, detached_copy, plain, with_gates
from ..placed_data import GatedData, Inputs, place_data, trained_weights

Weights = Mapping[str, Tensor]
"""Trained weights by the names of the user's own module."""

# Float64 entries of gradients of single samples that are computed at once: a quarter of a gibibyte.
_ENTRIES = 2**25
# Two scores are compared relative to the sample's own, and for small ones to this share of the
# largest: a sum of terms that cancel carries the rounding of its terms.
_FLOOR = 1e-6
# Relative difference of scores that counts as rounding.
SAME = 1e-7
# Random weights beside those that were given, and samples that are tried.
_DRAWS, SAMPLES = 3, 64


@dataclass(frozen=True, eq=False)
class Subject:
    """Scores of a module as a function of its trained weights, on samples of data.

    Attributes
    ----------
    network : Module
        A copy in float64 on the CPU that takes ``(X, gates)``; never written to.
    data : GatedData
        In float64 on the CPU.
    """

    network: torch.nn.Module
    data: GatedData

    @property
    def name(self) -> str:
        """Name of the user's class."""
        return type(plain(self.network)).__name__

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """Trained weights as they were given, by name, in the order of the module."""
        return {name: p.detach() for name, p in own_weights(self.network).items()}

    @property
    def n_weights(self) -> int:
        """Number of trained weights."""
        return sum(p.numel() for p in self.weights.values())

    @property
    def inputs(self) -> Tensor:
        """Inputs (n, D), those with more axes taken row by row."""
        return self.data.X.flatten(1)

    def on(self, X: Tensor, gates: Tensor | None) -> Subject:
        """Return the same module on other inputs; labels are ones."""
        return replace(self, data=GatedData(X, X.new_ones(len(X)), gates))

    def frozen(self, names: Sequence[str]) -> Subject:
        """Return a copy whose parameters of these names are not trained."""
        network = detached_copy(self.network)
        for name, p in network.named_parameters():
            p.requires_grad_(p.requires_grad and _own(self.network, name) not in names)
        return replace(self, network=network)

    def without_gradient(self) -> tuple[str, ...]:
        """Return the parameters that no gradient moves: hard gates, or what `forward` leaves out.

        Their gradients are exactly zero at the given weights and at random ones.
        """
        still = set(self.weights)
        for w in (self.weights, self.drawn(0), self.drawn(1)):
            cotangent = normal(self.scores(w).shape, 0)
            _, parts = self.gradient(w, cotangent)
            still -= {name for name, part in parts.items() if bool(part.any())}
        return tuple(name for name in self.weights if name in still)

    def beside(self, X: Inputs, y: Inputs | None, gates: Inputs | None) -> Subject:
        """Return the same module on other data, checked as the first were.

        Raises
        ------
        TypeError, ValueError
            If data are malformed, or the module cannot be called on them.
        """
        other = replace(self, data=_placed(self.network, X, y, gates))
        _require_scores(other, "X_val")
        return other

    def few(self, most: int) -> Subject:
        """Return the same module on at most `most` samples, evenly chosen."""
        n = len(self.data.X)
        if n <= most:
            return self
        return replace(self, data=self.data.take(torch.linspace(0, n - 1, most).long()))

    def scores(self, weights: Weights) -> Tensor:
        """Return the scores (n,) at these weights; those that are not named stay as given."""
        with torch.no_grad():
            return self._called(weights, self.data.X, self.data.gates)

    def points(self) -> list[Weights]:
        """Return random weights, and the given ones last: zeros say nothing of a degree."""
        return [*(self.drawn(seed) for seed in range(_DRAWS)), self.weights]

    def error(self, scores: Callable[[Weights], Tensor]) -> float:
        """Return the largest relative misfit of other scores at `points`; NaN stays NaN."""
        errors = [misfit(scores(w).flatten(), self.scores(w).flatten()) for w in self.points()]
        return float(torch.tensor(errors).max())

    def slopes(self, weights: Weights, direction: Weights) -> Tensor:
        """Return the derivatives (n,) of the scores along a direction of some of the weights."""

        def scores(*moving: Tensor) -> Tensor:
            named = {**weights, **dict(zip(direction, moving, strict=True))}
            return self._called(named, self.data.X, self.data.gates)

        moving = tuple(weights[name] for name in direction)
        slopes: Tensor = jvp(scores, moving, tuple(direction.values()))[1]  # type: ignore[no-untyped-call]
        return slopes

    def gradient(self, weights: Weights, cotangent: Tensor) -> tuple[float, dict[str, Tensor]]:
        """Return the sum of `cotangent` times the scores, and its gradient in these weights."""
        with torch.enable_grad():
            leaves = {name: p.detach().clone().requires_grad_() for name, p in weights.items()}
            weighted = (cotangent * self._called(leaves, self.data.X, self.data.gates)).sum()
            total = float(weighted.detach())
            if not weighted.requires_grad:
                return total, {name: torch.zeros_like(p) for name, p in weights.items()}
            parts = torch.autograd.grad(
                weighted, list(leaves.values()), allow_unused=True, materialize_grads=True
            )
        return total, dict(zip(leaves, parts, strict=True))

    def jacobian(self, weights: Weights, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the gradients (n, ...) of the scores in some of the weights, sample by sample."""
        fixed = {name: weights[name] for name in weights if name not in names}

        def score(moving: dict[str, Tensor], x: Tensor, gate: Tensor | None) -> Tensor:
            """Return the score of one sample."""
            own = None if gate is None else gate[None]
            return self._called({**fixed, **moving}, x[None], own)[0]

        moving = {name: weights[name] for name in names}
        data = self.data
        axes = (None, 0, None if data.gates is None else 0)
        at_once = max(1, _ENTRIES // max(1, sum(p.numel() for p in moving.values())))
        rows = vmap(grad(score), in_dims=axes, chunk_size=at_once)(moving, data.X, data.gates)
        return {name: rows[name].detach() for name in names}

    def at(self, weights: Weights) -> torch.nn.Module:
        """Return a copy of the module with these weights."""
        network = detached_copy(self.network)
        named = dict(network.named_parameters())
        with torch.no_grad():
            for name, value in self.named(weights).items():
                named[name].copy_(value)
        return network

    def drawn(self, seed: int) -> dict[str, Tensor]:
        """Return random weights, each parameter of the size that it has, or of the others' if 0."""
        return drawn(self.weights, seed)

    def _called(self, weights: Weights, X: Tensor, gates: Tensor | None) -> Tensor:
        with _InDouble():
            scores: Tensor = functional_call(self.network, self.named(weights), (X, gates))
        return scores

    def named(self, weights: Weights) -> dict[str, Tensor]:
        """Return weights by the names that they have in `network`."""
        return {_prefix(self.network) + name: value for name, value in weights.items()}


class _InDouble(TorchFunctionMode):
    """Lets a `forward` that casts to a shorter type, as ``x.float()`` does, stay in float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        def longer(value: Any) -> Any:
            shorter = isinstance(value, torch.dtype) and value.is_floating_point
            return torch.float64 if shorter else value

        named = {name: longer(value) for name, value in (kwargs or {}).items()}
        func = Tensor.double if func in _CASTS else func
        return func(*map(longer, args), **named)


_CASTS = (Tensor.float, Tensor.half, Tensor.bfloat16)


def own_weights(network: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Return the trained parameters of a `Subject`'s network by the names of the user's module."""
    return {_own(network, name): p for name, p in network.named_parameters() if p.requires_grad}


def normal(shape: Sequence[int], seed: int) -> Tensor:
    """Return standard normal numbers in float64."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(tuple(shape), generator=rng, dtype=torch.float64)


def drawn(weights: Weights, seed: int) -> dict[str, Tensor]:
    """Return random weights, each parameter of the size that it has, or of the others' if 0."""
    rng = torch.Generator().manual_seed(seed)
    sizes = {name: float(p.square().mean().sqrt()) for name, p in weights.items()}
    usual = max(sizes.values(), default=1.0) or 1.0
    return {
        name: (sizes[name] or usual) * torch.randn(p.shape, generator=rng, dtype=torch.float64)
        for name, p in weights.items()
    }


def _prefix(network: torch.nn.Module) -> str:
    return "module." if isinstance(network, GateFree) else ""


def _own(network: torch.nn.Module, name: str) -> str:
    return name.removeprefix(_prefix(network))


def misfit(expected: Tensor, got: Tensor) -> float:
    """Return the largest relative difference of two arrays of scores; NaN if one is not finite."""
    size = expected.abs().max()
    scale = expected.abs() + _FLOOR * size
    if not float(size) > 0:
        return float("inf") if bool(got.any()) else 0.0
    found = ((got - expected).abs() / scale).max()
    return float(found)


def take_subject(
    network: torch.nn.Module, X: Inputs, y: Inputs, gates: Inputs | None = None
) -> Subject:
    """Check a module and its data and copy both into float64 on the CPU.

    Parameters
    ----------
    network : Module
        Takes ``forward(X, gates)`` or ``forward(X)``, one score a sample; compiled ones too.
    X : (n, D) or (n, ...) array
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, ...) array, optional

    Raises
    ------
    TypeError
        If it is no module, or an array is not of real numbers.
    ValueError
        If the module has no weights to train or some that are not finite, cannot be called on
        these data, has not one score a sample, or scores that are random or depend on the other
        samples; or if data are malformed.
    """
    if not isinstance(network, torch.nn.Module):
        raise TypeError(f"`network` must be a torch.nn.Module, got {type(network).__name__}")
    trained_weights(network)
    for name, p in network.named_parameters():
        if p.is_meta:
            raise ValueError(f"`network` has no values in {name!r}, which is on the device meta")
        if not bool(torch.isfinite(p).all()):
            raise ValueError(
                f"`network` has NaN or infinite entries in {name!r}: its training has diverged, "
                "take an earlier checkpoint"
            )
    require_real("X", X)
    require_real("y", y)
    module = with_gates(copied(network))
    subject = Subject(module, _placed(module, X, y, gates))
    _require_scores(subject)
    return subject


def _placed(
    network: torch.nn.Module, X: Inputs, y: Inputs | None, gates: Inputs | None
) -> GatedData:
    """Place data, with a message about gates that the network does not take."""
    try:
        return place_data(network, X, y, gates)
    except ValueError as error:
        if "`contexts`" not in str(error):
            raise
        # The name that networks with contexts have for them.
        raise ValueError(f"`gates` do not fit `network`: {error}") from error


def copied(network: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module, uncompiled, in float64 on the CPU."""
    return _uncompiled(detached_copy(network)).cpu().double()


def _uncompiled(network: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside what `torch.compile` returned, its own parts included."""
    while isinstance(getattr(network, "_orig_mod", None), torch.nn.Module):
        network = network._orig_mod  # type: ignore[assignment]
    for name, child in network.named_children():
        setattr(network, name, _uncompiled(child))
    return network


def _require_scores(subject: Subject, name: str = "X") -> None:
    X, shape = subject.data.X, tuple(subject.data.X.shape)
    try:
        scores = subject.scores({})
    except Exception as error:  # whatever a module of the user's own raises
        said = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"`network` ({subject.name}) cannot be called on `{name}` of shape {shape} "
            f"({type(error).__name__}: {said}): give the inputs, and the gates, that it was "
            "trained on"
        ) from error
    if tuple(scores.shape) != (len(X),):
        raise ValueError(
            f"`network` ({subject.name}) must give one score a sample, ({len(X)},), got "
            f"{tuple(scores.shape)}: of two outputs take the difference, of several one class "
            "against the rest"
        )
    if not bool(torch.isfinite(scores).all()):
        raise ValueError(
            f"`network` ({subject.name}) gives NaN or infinite scores to "
            f"{int((~torch.isfinite(scores)).sum())} of {len(X)} samples, though its weights are "
            f"finite: look at the scale of `{name}`"
        )
    if misfit(scores, subject.scores({})) > 1e-6:
        raise ValueError(
            f"two calls of `network` ({subject.name}) give different scores: call `.eval()` on it, "
            "or take out what is random (dropout) or remembers"
        )
    first = subject.data.take(torch.arange((len(X) + 1) // 2))
    if misfit(scores[: len(first.X)], replace(subject, data=first).scores({})) > 1e-6:
        raise ValueError(
            f"the score that `network` ({subject.name}) gives a sample depends on the other "
            "samples: call `.eval()` on it, or take out normalisation over batches"
        )
