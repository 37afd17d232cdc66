"""Descent of log(loss) in steps as long as the loss allows."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ...networks.losses.objectives import log_loss
from ...networks.placed_data import GatedData
from ..catalogue import get_trainer
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .batched import assign, dot, per_network
from .stepper import Stepper, log_loss_gradient

log = logging.getLogger(__name__)

# Without momentum a step must bring this share of the decrease that its gradient promises, with
# it the loss must not rise; and the smoothed margin must not fall. Otherwise the rate is halved,
# momentum is dropped, and it starts over. The rate grows slowly after every step that went well
# at once.
ARMIJO = 0.5
SHORTEN = 0.5
LENGTHEN = 1.02
MAX_HALVINGS = 60
# On another device no step waits for its outcome: after so many of them one question tells whether
# all were good at once, and if not they are taken again one by one. Near the longest rate that is
# accepted, one of log(2) / log(1.02) = 35 steps is not good at once.
BLOCK = 8
# A search that ends in steps which move the weights by less than this share of their length, and
# promise no more of log(loss), has stopped. The gradient tells why: where it is no longer than this
# per length of the weights they are at rest, elsewhere a kink is in the way.
STOPPED, AT_REST = 1e-9, 1e-3


def rounding_of(log_losses: Tensor, weights: list[Tensor]) -> Tensor:
    """Return how well logarithms of losses (B,) are known in the arithmetic of the weights."""
    return 8 * torch.finfo(weights[0].dtype).eps * (1 + log_losses.abs())


@dataclass(frozen=True)
class _Begun:
    """Before a step: weights, log(loss), its gradient and that squared, norms, the direction."""

    weights: list[Tensor]
    loss: Tensor
    gradient: list[Tensor]
    squared: Tensor
    norms: Tensor
    direction: list[Tensor]


@dataclass
class _Block:
    """Steps whose outcome is not known yet: their batches, and where they began."""

    weights: list[Tensor] = field(default_factory=list)
    state: dict[str, Tensor] = field(default_factory=dict)
    batches: list[GatedData] = field(default_factory=list)
    good: Tensor | None = None  # whether all of them were good at once, on the device

    def add(self, batch: GatedData, good: Tensor) -> None:
        """Add a step."""
        self.batches.append(batch)
        self.good = good.all() if self.good is None else self.good & good.all()


class LineSearchDescent(Stepper):
    r"""Steps along the gradient of log(loss) whose size adapts to what they bring.

    If log(loss) were linear, the first step would lower it by 1; that of a network of degree 2 or
    more, which may begin near the saddle at 0, is at most as long as the weights.

    A falling loss alone does not bound the steps of a homogeneous network that separates the
    data: longer weights of whatever direction lower it. Gradient flow also raises the smoothed
    margin :math:`-\log(\sum_n \ell_n) / \|w\|^L`, up to a share :math:`\sum_n \ell_n` for the
    logistic loss (Lyu and Li), so every step must do that too.

    Across a kink, as ReLUs have, no step need be good however short it is, and shorter ones follow:
    a warning says once that the search has stopped there.
    """

    def __init__(
        self,
        stack: NetworkStack,
        settings: TrainingSettings,
        n_samples: int,
        *,
        ahead: bool | None = None,
    ) -> None:
        super().__init__(stack, settings, n_samples)
        self._momentum = settings.momentum or get_trainer(settings.trainer).own_momentum
        self._degree: int | None = getattr(stack.networks[0], "degree", None)
        self._scores: Tensor | None = None  # at the weights, as the last step left them
        first = stack.weights[0]
        rate = torch.zeros(len(first), dtype=torch.float64, device=first.device)
        self.state = {"rate": rate}  # 0 until the first gradient is known
        for i, w in enumerate(stack.weights if self._momentum else []):
            self.state[f"velocity.{i}"] = torch.zeros_like(w)
        waits = first.device.type == "cpu" or not stack.repeatable
        self._ahead = not waits if ahead is None else ahead
        self._block = _Block()

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step of the longest size that is accepted; `rate` is not used."""
        if not self._ahead:
            self._search(batch)
            return
        if not self._block.batches:
            self._block = _Block(
                [w.clone() for w in self._stack.weights],
                {name: value.clone() for name, value in self.state.items()},
            )
        self._block.add(batch, self._go(batch))
        if len(self._block.batches) == BLOCK:
            self.settle()

    def settle(self) -> None:
        """Ask whether all steps since the last call were good at once; else take them again."""
        block, self._block = self._block, _Block()
        if block.good is None or bool(block.good):
            return
        assign(self._stack.weights, block.weights)
        self.state, self._scores = block.state, None
        for batch in block.batches:
            self._search(batch)

    def _go(self, batch: GatedData) -> Tensor:
        """Take one step of the present rate, and return whether it was good (B,)."""
        begun = self._begin(batch)
        good = self._try(batch, begun, begun.direction)
        self._end(begun.direction, torch.ones_like(good))
        return good

    def _search(self, batch: GatedData) -> None:
        """Take one step, shortened until it is good."""
        begun = self._begin(batch)
        state, weights, direction = self.state, self._stack.weights, begun.direction
        at_once = torch.ones_like(begun.loss, dtype=torch.bool)
        for _ in range(MAX_HALVINGS):
            good = self._try(batch, begun, direction)
            if bool(good.all()):
                break
            at_once &= good
            state["rate"] = torch.where(good, state["rate"], SHORTEN * state["rate"])
            direction = _where(good, direction, begun.gradient)
        else:  # far too long: stay, and go on from the rate that this has led to
            assign(weights, _where(good, weights, begun.weights))
            self._scores = None
        self._end(direction, at_once)
        if not self.stopped and not bool(at_once.all()):
            self._say_if_stopped(begun)

    def _say_if_stopped(self, begun: _Begun) -> None:
        """Warn once where no more than rounding is left of the steps, and the slope is not 0."""
        rate, lengths = self.state["rate"], torch.sqrt(begun.squared)
        stopped = (rate * begun.squared < STOPPED) & (rate * lengths < STOPPED * begun.norms)
        slopes = lengths * begun.norms
        if bool((stopped & (slopes > AT_REST)).any()):
            self.stopped = (
                "the line search has stopped: its steps lower log(loss) by less than "
                f"{STOPPED:.0e} each, though the slope per doubling of the weights is "
                f"{float(slopes.max()):.2g}. The weights stand at a kink of the network (a ReLU "
                "that turns), across which the loss rises: go on with the trainer 'smoothed', or "
                "with 'constant', whose steps are as long as they are given"
            )
            log.warning("%s", self.stopped)

    def _begin(self, batch: GatedData) -> _Begun:
        """Return what is known before a step, its direction with it."""
        state, weights = self.state, self._stack.weights
        loss, gradient = log_loss_gradient(self._stack, batch, self._kind, self._scores)
        squared = dot(gradient, gradient)
        norms = torch.sqrt(dot(weights, weights))
        state["rate"] = torch.where(
            state["rate"] == 0, self._first_rate(squared, norms), state["rate"]
        )
        direction = gradient
        if self._momentum:
            direction = [
                self._momentum * state[f"velocity.{i}"] + g for i, g in enumerate(gradient)
            ]
        return _Begun([w.clone() for w in weights], loss, gradient, squared, norms, direction)

    def _try(self, batch: GatedData, begun: _Begun, direction: list[Tensor]) -> Tensor:
        """Go along a direction at the present rate, and return whether that was good (B,)."""
        size, weights = self.state["rate"], self._stack.weights
        moved = [
            w - v * per_network(size, v) for w, v in zip(begun.weights, direction, strict=True)
        ]
        assign(weights, moved)
        self._scores = self._stack.scores(batch)
        after = log_loss(self._scores.detach(), batch.y, self._kind)
        promised = 0.0 if self._momentum else ARMIJO * size * begun.squared
        # A comparison with NaN is false: steps out of the representable are too long as well.
        good = after <= begun.loss - promised + rounding_of(begun.loss, weights)
        good &= self._keeps_margin(begun.loss, begun.norms, after, len(batch.y))
        return good

    def _end(self, direction: list[Tensor], at_once: Tensor) -> None:
        state = self.state
        state["rate"] = torch.where(at_once, LENGTHEN * state["rate"], state["rate"])
        for i, v in enumerate(direction if self._momentum else []):
            state[f"velocity.{i}"].copy_(v)

    def _first_rate(self, squared: Tensor, norms: Tensor) -> Tensor:
        """A decrease by 1, within the length of the weights; from the (B,) gradients' squares."""
        rate = 1 / squared.clamp(min=torch.finfo(torch.float64).tiny)
        if self._degree is None or self._degree < 2:
            return rate
        return torch.where(norms > 0, torch.minimum(rate, norms * torch.sqrt(rate)), rate)

    def _keeps_margin(
        self, before_loss: Tensor, norms: Tensor, after: Tensor, n_samples: int
    ) -> Tensor | bool:
        """True where the smoothed margin has not fallen, or the data were not separated before."""
        if self._degree is None:
            return True
        weights = self._stack.weights
        now = torch.sqrt(dot(weights, weights))
        size = math.log(n_samples)
        growth = (now / norms) ** self._degree
        least = growth * (-(before_loss + size) * (1 - torch.exp(before_loss + size)))
        enough = -(after + size) >= least - growth * rounding_of(before_loss, weights)
        return enough | (before_loss + size >= 0)


def _where(networks: Tensor, chosen: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    """Weights (B, ...) of the first list in the networks marked (B,), of the second elsewhere."""
    pairs = zip(chosen, others, strict=True)
    return [torch.where(per_network(networks, a), a, b) for a, b in pairs]
