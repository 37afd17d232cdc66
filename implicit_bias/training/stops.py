"""Why training stands still: what the slope of its loss says at the weights where it ended."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..networks.losses.objectives import (
    get_loss,
    log_loss,
    log_mean_loss_gradient,
    mean_loss_gradient,
)
from ..networks.placed_data import GatedData, trained_weights
from .settings import TrainingSettings
from .steppers.line_search import AT_REST

# Fall of log(loss), far below the half that descent of this length would bring.
_JUMPED = 1e-3


class Stop(NamedTuple):
    """Why a network stands still.

    Attributes
    ----------
    text : str
        Since when, why, and the way out.
    stuck : bool
        True where the loss has a slope that the trainer does not go down, or no score has one:
        False where it has come to rest.
    """

    text: str
    stuck: bool


def find_stop(
    network: torch.nn.Module,
    data: GatedData,
    settings: TrainingSettings,
    first_loss: float,
    since: int,
) -> Stop:
    """Return why a network whose loss and weights do not change stands still.

    Parameters
    ----------
    network : Module
    data : GatedData
        The training samples.
    settings : TrainingSettings
    first_loss : float
        The loss at the start, in whose unit slopes of losses with a least value are measured.
    since : int
        The step since which it stands still.
    """
    why, stuck = _why(network, data, settings, first_loss)
    return Stop(f"loss and weights have stood still since step {since}: {why}", stuck)


def _why(
    network: torch.nn.Module, data: GatedData, settings: TrainingSettings, first_loss: float
) -> tuple[str, bool]:
    unit = abs(first_loss) or 1.0
    weights = [weight.detach() for weight in trained_weights(network)]
    length = _dot(weights, weights) ** 0.5
    scores = network(data.X, data.gates)
    known, of_margins = scores.detach(), get_loss(settings.loss).in_logarithms
    # Any combination of scores in which none has the weight 0, and no two the same.
    uneven = torch.linspace(1, 2, known.numel()).to(known).view_as(known)
    if length == 0 or _length(_slopes(network, scores, uneven)) == 0:
        return (
            "no score depends on the weights there, as where all units are closed or a layer is 0: "
            "take other initial weights",
            True,
        )
    if settings.weight_decay:
        return "steps and weight decay are in balance", False
    if of_margins:
        direction = log_mean_loss_gradient(known, data.y, settings.loss)
    else:
        direction = mean_loss_gradient(known, data.y, settings.loss) / unit
    slopes = _slopes(network, scores, direction)
    size = _length(slopes)
    slope = size * length
    if slope <= AT_REST:
        return "the slope of the loss is 0 there: more steps change nothing", False
    along = abs(_dot(slopes, weights))
    across = math.sqrt(max(slope - along, 0.0)) * math.sqrt(slope + along)
    if of_margins and across <= AT_REST * slope:
        return "the loss falls along the weights alone, whose direction is at rest", False
    loss = "log(loss)" if of_margins else "the loss, in units of the first one,"
    steep = f"though the slope of {loss} per doubling of the weights is {slope:.2g}"
    if of_margins and settings.trainer == "constant":
        level = _level(known, data.y, settings.loss, unit)
        if _jumped(settings, level, size, first_loss):
            return (
                f"a step has jumped to a loss of exp({level:.2g}), where steps, which go with the "
                f"loss, no longer move the weights, {steep}: begin again at a smaller learning "
                "rate, or with a trainer whose steps go with log(loss), as those of 'normalised' "
                "do",
                True,
            )
    if not settings.automatic:
        return (
            f"steps are too short to move the weights, {steep}: give a larger learning rate, or a "
            "trainer that finds its steps",
            True,
        )
    short = (
        "a short step down the gradient lowers the loss"
        if _falls(network, data, (settings.loss, unit), slopes, length)
        else "no short step down the gradient lowers the loss, as at a kink (a ReLU that turns)"
    )
    return (
        f"{settings.trainer!r} moves them no more, {steep}, and {short}: go on with 'constant', "
        "whose steps are as long as they are given",
        True,
    )


def _falls(
    network: torch.nn.Module,
    data: GatedData,
    loss: tuple[str, float],
    slopes: list[Tensor],
    length: float,
) -> bool:
    """Return whether a short step down the slopes brings half of what they promise."""
    size, weights = _length(slopes), dict(network.named_parameters())
    share = torch.finfo(data.X.dtype).eps ** (1 / 3)
    names = [name for name, weight in weights.items() if weight.requires_grad]
    moved = {
        name: weights[name] - (share * length / size * slope).to(weights[name])
        for name, slope in zip(names, slopes, strict=True)
    }
    with torch.no_grad():
        before = network(data.X, data.gates)
        after = torch.func.functional_call(network, moved, (data.X, data.gates))
    fallen = _level(before, data.y, *loss) - _level(after, data.y, *loss)
    return bool(fallen >= share * length * size / 2)


def _level(scores: Tensor, y: Tensor, loss: str, unit: float) -> float:
    """Return the logarithm of a mean loss of margins, any other in a unit."""
    scores, y = scores.double(), y.double()
    if get_loss(loss).in_logarithms:
        return float(log_loss(scores, y, loss))
    return float(get_loss(loss).value(scores, y).mean()) / unit


def _jumped(settings: TrainingSettings, level: float, size: float, first_loss: float) -> bool:
    """Return whether a log(loss) with a gradient of this size is below what descent comes to.

    Gradient flow raises 1 / loss by the squared size of that gradient per unit of time. So where it
    has halved the loss, as much time again lowers log(loss) by about a half. False for a first loss
    that is 0 in floating point.
    """
    time = sum(n_steps * rate for n_steps, rate in settings.phases if isinstance(rate, float))
    halved = first_loss > 0 and level < math.log(first_loss / 2)
    return halved and level + 2 * math.log(size) + math.log(time) < math.log(_JUMPED)


def _slopes(network: torch.nn.Module, scores: Tensor, direction: Tensor) -> list[Tensor]:
    weights = trained_weights(network)
    found = torch.autograd.grad(
        scores, weights, direction, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return [one.double() for one in found]


def _dot(a: list[Tensor], b: list[Tensor]) -> float:
    return sum(float((x.double() * y.double()).sum()) for x, y in zip(a, b, strict=True))


def _length(a: list[Tensor]) -> float:
    return math.sqrt(_dot(a, a))
