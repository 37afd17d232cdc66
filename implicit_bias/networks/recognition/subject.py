"""A module of the user's own, copied and checked, as a function of weights and samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import torch
from torch import Tensor
from torch.autograd.functional import jvp
from torch.func import functional_call, grad, grad_and_value, jacrev, vmap

from ..adapted import GateFree, detached_copy, plain, takes_gates
from ..losses.labels import SIGNS, Classes
from ..placed_data import GatedData

Weights = Mapping[str, Tensor]
"""Trained weights by the names of the user's own module."""

# Float64 entries of gradients of single samples that are computed at once: a quarter of a gibibyte.
_ENTRIES = 2**25
# Two scores are compared relative to the sample's own, and for small ones to this share of the
# largest: a sum of terms that cancel carries the rounding of its terms.
_FLOOR = 1e-6
# Relative difference of scores that counts as rounding.
SAME = 1e-7
# Share of a random direction in a difference quotient.
_STEP = 1e-6
# Random weights beside those that were given, and samples that are tried.
_DRAWS, SAMPLES = 3, 64
# With very many weights samples of so few scores, two at least, or as many as have so many products
# of weights together.
_LEAST, _AT_A_CALL = 8, 2**21


@dataclass(frozen=True, eq=False)
class Subject:
    """Scores of a module as a function of its trained weights, on samples of data.

    Attributes
    ----------
    network : Module
        A copy in float64 on the CPU that takes ``(X, gates)``; never written to.
    data : GatedData
        In float64 on the CPU, token ids as whole numbers. Labels (n,) in {-1, +1}, or of K outputs
        (n, K) with a one at every sample's class.
    classes : Classes
        What the labels stand for.
    by_sample : bool
        True where the score of a sample depends on that sample alone. With statistics over batches
        all scores are those of the full batch.
    twice : bool
        True where gradients can be differentiated again; False of backwards of a user's own that
        torch is told to differentiate but once.
    part : str
        Name, or number, of the scores among several outputs of ``forward``; empty of a lone one.
    """

    network: torch.nn.Module
    data: GatedData
    classes: Classes = SIGNS
    by_sample: bool = True
    twice: bool = True
    part: str = ""

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

    @cached_property
    def n_outputs(self) -> int:
        """Number of scores of a sample."""
        scores = self.few(2).scores({})
        return 1 if scores.ndim == 1 else scores.shape[1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was chosen of outputs, labels and batches where there was a choice, in words."""
        found = [f"scores are part {self.part!r} of the outputs"] if self.part else []
        if self.classes != SIGNS:
            found.append(str(self.classes))
        if not self.by_sample:
            found.append("scores are those of the full batch: each depends on the other samples")
        return tuple(found)

    @property
    def inputs(self) -> Tensor:
        """Inputs (n, D), those with more axes taken row by row."""
        return self.data.X.flatten(1).double()

    @property
    def rows(self) -> Tensor:
        """Sample and output (R, 2) of every margin: the sample's own score is above that output's.

        Of K outputs n (K - 1) rows, sample by sample; of one output n rows, whose output is 0.
        """
        if self.n_outputs == 1:
            samples = torch.arange(len(self.data.X))
            return torch.stack([samples, torch.zeros_like(samples)], dim=1)
        return (self.data.y == 0).nonzero()

    def margins(self, weights: Weights) -> Tensor:
        """Return the margins (R,) of `rows`: ``y_n f(x_n)``, or ``f_y(x_n) - f_k(x_n)``."""
        return self.margins_of(self.scores(weights))

    def margins_of(self, scores: Tensor) -> Tensor:
        """Return the margins (R, ...) of scores, or of their derivatives with any further axes."""
        y = self.data.y
        own = y.view(*y.shape, *[1] * (scores.ndim - y.ndim)) * scores
        if y.ndim == 1:
            return own
        return (own.sum(1, keepdim=True) - scores)[y == 0]

    def on(self, X: Tensor, gates: Tensor | None) -> Subject:
        """Return the same module on other inputs; labels are ones."""
        return replace(self, data=GatedData(X, X.new_ones(len(X)), gates))

    def frozen(self, names: Sequence[str]) -> Subject:
        """Return a copy whose parameters of these names are not trained."""
        network = detached_copy(self.network)
        for name, p in network.named_parameters():
            p.requires_grad_(p.requires_grad and _own(self.network, name) not in names)
        return replace(self, network=network)

    def over(self, scales: Mapping[str, float]) -> Subject:
        """Return the same scores as a function of the weights over positive scales."""
        network = detached_copy(self.network)
        with torch.no_grad():
            for name, p in own_weights(network).items():
                p.div_(scales[name])
        return replace(self, network=OverScales(network, scales))

    def without_gradient(self) -> tuple[str, ...]:
        """Return the parameters that no gradient moves: hard gates, or what `forward` leaves out.

        Their gradients are exactly zero at the given weights and at random ones.
        """
        still, points = set(self.weights), (self.weights, self.drawn(0), self.drawn(1))
        for subject, w in product((self.few_of_many(), self), points):
            if not still:
                break
            _, parts = subject.gradient(w, normal(subject.scores(w).shape, 0))
            still -= {name for name, part in parts.items() if bool(part.any())}
        return tuple(name for name in self.weights if name in still)

    def few(self, most: int) -> Subject:
        """Return the same module on at most `most` samples, evenly chosen."""
        n = len(self.data.X)
        if n <= most:
            return self
        return replace(self, data=self.data.take(torch.linspace(0, n - 1, most).long()))

    def few_of_many(self) -> Subject:
        """Return the same module on `SAMPLES` samples at most, on fewer with very many weights."""
        least = max(2, _LEAST // self.n_outputs)
        return self.few(min(SAMPLES, max(least, _AT_A_CALL // self.n_weights)))

    def scores(self, weights: Weights) -> Tensor:
        """Return the scores (n,), or (n, K), at these weights; those not named stay as given."""
        with torch.no_grad():
            return self.called(weights, self.data.X, self.data.gates)

    def points(self) -> list[Weights]:
        """Return random weights, and the given ones last: zeros say nothing of a degree."""
        return [*(self.drawn(seed) for seed in range(_DRAWS)), self.weights]

    def error(self, scores: Callable[[Weights], Tensor]) -> float:
        """Return the largest relative misfit of other scores at `points`; NaN stays NaN."""
        errors = [misfit(scores(w).flatten(), self.scores(w).flatten()) for w in self.points()]
        return float(torch.tensor(errors).max())

    def slopes(self, weights: Weights, direction: Weights) -> Tensor:
        """Return the derivatives of `scores` along a direction of some of the weights."""
        if not self.twice:
            return self.along(self.gradients(weights, direction), direction)

        def scores(*moving: Tensor) -> Tensor:
            named = {**weights, **dict(zip(direction, moving, strict=True))}
            return self.called(named, self.data.X, self.data.gates)

        moving = tuple(weights[name] for name in direction)
        slopes: Tensor = jvp(scores, moving, tuple(direction.values()))[1]  # type: ignore[no-untyped-call]
        return slopes

    def gradient(self, weights: Weights, cotangent: Tensor) -> tuple[float, dict[str, Tensor]]:
        """Return the sum of `cotangent` times the scores, and its gradient in these weights."""
        with torch.enable_grad():
            leaves = {name: p.detach().clone().requires_grad_() for name, p in weights.items()}
            weighted = (cotangent * self.called(leaves, self.data.X, self.data.gates)).sum()
            total = float(weighted.detach())
            if not weighted.requires_grad:
                return total, {name: torch.zeros_like(p) for name, p in weights.items()}
            parts = torch.autograd.grad(
                weighted, list(leaves.values()), allow_unused=True, materialize_grads=True
            )
        return total, dict(zip(leaves, parts, strict=True))

    def gradient_at_each(
        self, stacked: Weights, cotangent: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the same as `gradient` at k weights (k, ...): (k,) and gradients (k, ...).

        Raises
        ------
        RuntimeError
            If the module cannot be called on several weights at once.
        """

        def weighted(weights: dict[str, Tensor]) -> Tensor:
            """Return the sum at one of them."""
            total: Tensor = (cotangent * self.called(weights, self.data.X, self.data.gates)).sum()
            return total

        with warnings.catch_warnings():
            # Of operations that torch does for one weight at a time.
            warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
            parts, totals = vmap(grad_and_value(weighted))(dict(stacked))
        return totals.detach(), {name: part.detach() for name, part in parts.items()}

    def gradient_error(self) -> float:
        """Return the misfit of `slopes` and difference quotients, of the median score.

        It is of the order of rounding, or 1 where the backward of some part is a surrogate, not
        the derivative of its forward, and where weights are cut off by ``.detach()`` but once.
        """
        errors = []
        for w, direction in ((self.drawn(0), self.drawn(1)), (self.drawn(2), self.drawn(3))):
            ahead, behind = (
                self.scores({name: w[name] + h * direction[name] for name in w})
                for h in (_STEP, -_STEP)
            )
            slopes, quotients = self.slopes(w, direction), (ahead - behind) / (2 * _STEP)
            # Below the rounding of quotients nothing is known.
            known = torch.maximum(slopes.abs(), quotients.abs()) + 1e-9 * ahead.abs() / _STEP
            errors.append(float(((slopes - quotients).abs() / known).nan_to_num(0.0).median()))
        return max(errors)

    def jacobian(self, weights: Weights, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the gradients (n, ...), or (n, K, ...), of `scores` in some of the weights."""
        if not (self.by_sample and self.twice):
            return self.gradients(weights, names)
        fixed = {name: weights[name] for name in weights if name not in names}
        moving = {name: weights[name] for name in names}
        at_once = max(1, _ENTRIES // max(1, sum(p.numel() for p in moving.values())))

        def score(moving: dict[str, Tensor], x: Tensor, gate: Tensor | None) -> Tensor:
            """Return the score, or scores, of one sample."""
            own = None if gate is None else gate[None]
            return self.called({**fixed, **moving}, x[None], own)[0]

        data = self.data
        axes = (None, 0, None if data.gates is None else 0)
        gradient = grad(score) if self.n_outputs == 1 else jacrev(score)
        rows = vmap(gradient, in_dims=axes, chunk_size=at_once)(moving, data.X, data.gates)
        return {name: rows[name].detach() for name in names}

    def gradients(self, weights: Weights, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Return the same as `jacobian`, by one backward a score: of any module, and any batch."""
        with torch.enable_grad():
            leaves = {
                name: weights[name].clone().requires_grad_()
                for name in (weights if names is None else names)
            }
            scores = self.called({**weights, **leaves}, self.data.X, self.data.gates)
            if not scores.requires_grad:  # cut off from all weights
                return {name: p.new_zeros(*scores.shape, *p.shape) for name, p in leaves.items()}
            own = list(leaves.values())
            rows = [
                torch.autograd.grad(one, own, retain_graph=True, materialize_grads=True)
                for one in scores.flatten()
            ]
        return {
            name: torch.stack(of_one).view(*scores.shape, *leaves[name].shape)
            for name, of_one in zip(leaves, zip(*rows, strict=True), strict=True)
        }

    def along(self, gradients: Mapping[str, Tensor], direction: Weights) -> Tensor:
        """Return the inner products of gradients of every score with a direction."""
        total = torch.zeros(())
        for name, rows in gradients.items():
            axes = tuple(range(-direction[name].ndim, 0))
            products = rows * direction[name]
            total = total + (products.sum(axes) if axes else products)
        return total

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

    def called(self, weights: Weights, X: Tensor, gates: Tensor | None) -> Tensor:
        """Return what the module says of any inputs at these weights, differentiable in them."""
        # Statistics that a part in training mode keeps are its own at every call.
        kept = {name: value.clone() for name, value in self._kept.items()}
        scores: Tensor = functional_call(self.network, {**self.named(weights), **kept}, (X, gates))
        return scores

    @cached_property
    def _kept(self) -> dict[str, Tensor]:
        """Buffers that calls may change."""
        return dict(self.network.named_buffers()) if _trains(self.network) else {}

    def named(self, weights: Weights) -> dict[str, Tensor]:
        """Return weights by the names that they have in `network`."""
        return {_prefix(self.network) + name: value for name, value in weights.items()}


class OverScales(GateFree):
    """A module whose trained weights are its parameters times scales, by their names."""

    called: torch.nn.Module

    def __init__(self, network: torch.nn.Module, scales: Mapping[str, float]) -> None:
        super().__init__(plain(network), gated=takes_gates(network))
        # The adapter itself, unseen: its parameters are those of `module`.
        object.__setattr__(self, "called", network)
        self.scales = dict(scales)

    def forward(self, X: Tensor, gates: Tensor | None = None) -> Tensor:
        """Return the scores (n,), or (n, K)."""
        own, prefix = dict(self.module.named_parameters()), _prefix(self.called)
        scaled = {prefix + name: own[name] * scale for name, scale in self.scales.items()}
        scores: Tensor = functional_call(self.called, scaled, (X, gates))
        return scores


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


def _trains(network: torch.nn.Module) -> bool:
    """Return whether a part of a module is in training mode."""
    return any(part.training for part in plain(network).modules())
