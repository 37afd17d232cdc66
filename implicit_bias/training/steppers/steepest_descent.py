"""Normalised steepest descent in a norm of each layer, with momentum, and Adam.

Gradients fall with the loss, below all that a float can hold. What is remembered of them between
steps, momentum and second moments, stands on a scale of its own, whose logarithm is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ..._support.solve import Norm, NormName
from ...networks.losses.margins import are_classes, n_margins, score_gradient
from ...networks.losses.objectives import pairs_of, smoothed_loss
from ...networks.placed_data import GatedData
from ..catalogue import get_trainer
from ..network_stack import NetworkStack, Rate
from ..settings import MOST_STEPS, TrainingSettings
from .batched import per_network
from .decay import go_against, shrink
from .steepest_steps import as_matrices, dual_norms, newton_schulz, norms_of, steepest
from .stepper import Stepper, log_loss_gradient

# No margin changes by more than this in a step, of a network of one layer and of one of several.
# Ten times as much tears layers that step by signs between samples before they have directions
# (frozen ReLU gates, 60 digits, 40,000 steps: 0.59 of the margin, not 0.96), and averages that
# forget a tenth in a step would keep their oldest gradients, as the loss falls faster.
CHANGE, CHANGE_OF_LAYERS = 0.3, 0.03
# Steps without an end are nearly constant so long, then fall as the theorem has them.
STEADY = 1000
# Steps of runs whose end is known: the change of a margin by the largest of them if there are no
# more than so many, and the share of all steps, of this size, whose sum the weights then are.
CHANGE_AT_MOST, USUAL, WEIGHTS_OF = 0.3, 20000, 1 / 3
# Steps of runs with decay whose end is known: the share of 1 / lam, which weights come to, that the
# largest are, and the factor by which they fall after a quarter of the run.
OF_LARGEST, SETTLED = 0.01, 1e-4
# Steps along one gradient, of a size that is measured: the share of the step that would be best of
# a quadratic, in a network of one layer, of one output or several, and of several layers, after
# how many steps it has halved its fourth power, and the change of a margin that no step exceeds.
# Linear predictors of 60 digits and of 427 samples of breast cancer are at 0.94 and 0.88 of the
# largest margin in the largest entry after 20,000 steps with a share of 0.6, at 0.90 and 0.70 with
# 0.2: what is missing is length. Behind frozen ReLU gates, 500 digits, it is 0.89 with 0.3, 0.90
# with 0.15, 0.89 with 0.08: units turn to and fro.
SHARE, SHARE_OF_CLASSES, SHARE_OF_LAYERS = 0.6, 0.3, 0.13
SHARE_HOLDS, AT_MOST = 20000, 1.0
# Samples of which the first rate knows the gradients.
PROBES = 16
# Decay of Adam's averages. At 0.999, as it is shipped, the second lags behind gradients that fall,
# and the way to the same limit is longer.
ADAM_BETAS = (0.9, 0.9)
# As it is shipped.
LION_BETAS = (0.9, 0.99)

Polar = Literal["exact", "newton-schulz"]


class NormalisedSteps(Stepper):
    r"""Steps of falling size along directions that a subclass chooses.

    .. math:: \eta_t = c \, (1 + t / 1000)^{-p}, \qquad p = \max(1/2, 1 - 1/L),

    L the degree of the network: weights of size r have margins of size :math:`r^L`, and steps that
    fall so change margins by no more than the first ones do. Without a rate c is found at the
    start: no margin may change by more than a constant in a step, as far as the gradients of some
    samples at the start tell.

    Where the number T of steps is known, with momentum and with neither rate nor decay given,

    .. math:: \eta_t = c_T \min(1, 2 (1 - t/T)), \qquad \Delta_T = 0.3 \min(1, \sqrt{20000 / T})

    with c_T such that no margin changes by more than :math:`\Delta_T` in a step. Of a linear
    predictor and its steps of sum S the logarithm of the loss falls by at least
    :math:`\gamma S - C \sum \eta_t^2 / 2`, so that the margin per norm is at least
    :math:`\gamma (1 - O(T^{-1/2}))`: the same limit by the same proof as with steps like
    :math:`t^{-1/2}`, and a longer way in as many steps. Steps along one gradient alone, without
    momentum, measure their sizes (`SteepestDescent`).

    With decay lam weights end at sizes of :math:`1/\lambda`. Where the number of steps is known and
    no rate is given, steps are a hundredth of that for a quarter of the run, and then fall
    geometrically by four orders of magnitude: so weights forget their start by the first, and come
    to rest by the others.

    Parameters
    ----------
    stack, n_samples
        As of `Stepper`.
    settings : TrainingSettings
        With the loss, one of margins, and lam of ``W <- (1 - eta_t lam) W`` before every step; T
        is its number of steps, not known where that is `MOST_STEPS`.
    momentum : float
        beta of an average of gradients over steps.
    norms : sequence of Norm or str, optional
        One a weight of the network; those of the trainer if it is left out.

    Attributes
    ----------
    state : dict of tensors
        "steps" taken, "first" rates (B,), 0 until they are known, and what a subclass remembers.
    begun : bool
        Whether this object has seen to its first rates.
    """

    def __init__(
        self,
        stack: NetworkStack,
        settings: TrainingSettings,
        n_samples: int,
        momentum: float,
        norms: Sequence[Norm | NormName] | None = None,
    ) -> None:
        super().__init__(stack, settings, n_samples)
        self._momentum, self._decay = momentum, settings.weight_decay
        own = get_trainer(settings.trainer).norms_of(len(stack.weights))
        self._norms = [Norm.of(norm) for norm in (own if norms is None else norms)]
        ends = (momentum or self._decay) and settings.n_steps < MOST_STEPS
        self._n_steps = settings.n_steps if ends else None
        self._degree: int = getattr(stack.networks[0], "degree", None) or 1
        self._change = CHANGE if self._degree == 1 else CHANGE_OF_LAYERS
        zero, weight = torch.zeros((), dtype=torch.float64), stack.weights[0]
        first = zero.new_zeros(len(weight), device=weight.device)
        self.state = {"steps": zero, "first": first}
        self.begun = False

    def _remember(self, average: str, scale: str) -> None:
        """Begin decaying sums of these names in the state, at 0."""
        self.state[scale] = torch.full_like(self.state["first"], -math.inf)
        for i, weight in enumerate(self._stack.weights):
            self.state[f"{average}.{i}"] = torch.zeros_like(weight)

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step; `rate` is c, or None where it is found."""
        if rate is None and not self.begun:
            # Once: a device would be asked at every step.
            if not bool(self.state["first"].all()):
                self.state["first"] = self._first_rates(batch)
            self.begun = True
        self._move(batch, rate)
        self.state["steps"] = self.state["steps"] + 1

    def _move(self, batch: GatedData, rate: Rate) -> None:
        """Change the weights by the step."""
        log_loss, gradients = log_loss_gradient(self._stack, batch, self._kind)
        directions = self._directions(log_loss, gradients)
        share = self._share(float(self.state["steps"]), ends=rate is None)
        size = (self.state["first"] if rate is None else rate) * share
        for weight, direction in zip(self._stack.weights, directions, strict=True):
            if self._decay:
                shrink(weight, self._decay, size)
            go_against(weight, direction, size)

    def _share(self, step: float, *, ends: bool) -> float:
        """Return the size of a step over that of the first."""
        if ends and self._n_steps is not None:
            done = step / self._n_steps
            if self._decay:
                return float(SETTLED ** max(0.0, (4 * done - 1) / 3))
            return min(1.0, max(0.0, 2 * (1 - done)))
        return float((1 + step / STEADY) ** -max(1 / 2, 1 - 1 / self._degree))

    def _directions(self, log_loss: Tensor, gradients: list[Tensor]) -> list[Tensor]:
        """Return the directions (B, ...) to go against, from log(loss) (B,) and its gradients."""
        raise NotImplementedError

    def _first_rates(self, batch: GatedData) -> Tensor:
        """Return the rates (B,) at which no margin changes by more than the constant."""
        if self._decay and self._n_steps is not None:
            return torch.full_like(self.state["first"], OF_LARGEST / self._decay)
        stack, n = self._stack, n_margins(batch.y)
        largest = self.state["first"].new_zeros(len(stack.weights[0]))
        scores = stack.scores(batch)
        some = np.unique(np.linspace(0, n - 1, min(n, PROBES)).round().astype(np.int64))
        pairs, known = torch.from_numpy(some).to(scores.device), scores.detach()[0]
        for chosen in score_gradient(known, pairs_of(known, batch.y, self._kind), pairs):
            gradients = stack.vjp(scores, chosen.expand_as(scores), keep=True)
            largest = torch.maximum(largest, self._over_layers(dual_norms, gradients).sum(0))
            scores = stack.rescored(scores, batch)
        sizes = self._over_layers(norms_of, stack.weights).amax(0)
        degree = self._degree
        slope = largest / sizes ** (degree - 1)  # L times the largest margin of weights of size 1
        change, steady = self._change, float(STEADY)
        if self._n_steps is not None:
            change = CHANGE_AT_MOST * min(1.0, math.sqrt(USUAL / self._n_steps))
            steady = WEIGHTS_OF * self._n_steps
        rates = (change / (slope * steady ** (degree - 1))) ** (1 / degree)
        return torch.where(torch.isfinite(rates) & (rates > 0), rates, 1.0)

    def _over_layers(self, measure: object, weights: Sequence[Tensor]) -> Tensor:
        """Return what `measure` gives for each layer in its norm (L, B)."""
        pairs = zip(self._norms, weights, strict=True)
        return torch.stack([measure(norm, weight) for norm, weight in pairs])  # type: ignore[operator]


class SteepestDescent(NormalisedSteps):
    r"""Every layer goes by the steepest step of its own norm, for an average of gradients.

    .. math:: m_t = \beta m_{t-1} + \nabla_t, \qquad
              W \leftarrow W - \eta_t \arg\max_{N(U) \le 1} \langle m_t, U \rangle

    with the gradient of the loss for :math:`\nabla_t`.

    Without momentum, with neither rate nor decay given, sizes are those of the loss itself. Along
    the step U margins change at rates :math:`u_n`, which a look ahead at the size of the last step
    measures. With p the share of every margin in the gradient of log(loss),

    .. math:: \eta_t = \min\Big(\kappa_t \frac{\sum p_n u_n}{\sum p_n u_n^2},
              \frac{1}{\max |u_n|}\Big), \qquad \kappa_t = \kappa \, (1 + t / 20000)^{-1/4},

    :math:`\kappa` 0.6 for one layer, 0.3 for one of several outputs and 0.13 for several layers. Of
    a linear predictor and the exponential loss, :math:`e^{-z} \le 1 - z + z^2`, for
    :math:`|z| \le 1`, makes the logarithm of the loss fall by at least
    :math:`(1 - \kappa_t) \eta_t \gamma`. Sizes have no bound but those of the data below
    :math:`\kappa_t`, so that their sum is infinite, the share :math:`\kappa_t` goes to 0, and the
    margin per norm to the largest :math:`\gamma`. Of the logistic loss the same holds once it is
    near its tail; of more layers nothing is proved.

    Parameters
    ----------
    stack, settings, n_samples, norms
        As of `NormalisedSteps`; beta is the momentum of the settings, or the trainer's own.
    polar : {"exact", "newton-schulz"}
        How polar factors of spectral steps are computed; the second as Muon is shipped.
    """

    def __init__(
        self,
        stack: NetworkStack,
        settings: TrainingSettings,
        n_samples: int,
        norms: Sequence[Norm | NormName] | None = None,
        polar: Polar = "exact",
    ) -> None:
        momentum = settings.momentum or get_trainer(settings.trainer).own_momentum
        super().__init__(stack, settings, n_samples, momentum, norms)
        self._polar = polar
        self._measures = not momentum and not self._decay
        if self._measures:
            self.state["size"] = torch.zeros_like(self.state["first"])
        if momentum:
            self._remember("average", "scale")

    def _move(self, batch: GatedData, rate: Rate) -> None:
        if rate is not None or not self._measures:
            super()._move(batch, rate)
            return
        stack, state = self._stack, self.state
        scores = stack.scores(batch)
        known = scores.detach()
        loss = smoothed_loss(known, batch.y, self._kind)
        directions = self._directions(loss.log_loss, stack.vjp(scores, loss.score_gradient))
        trial = torch.where(state["size"] > 0, state["size"], state["first"])
        _go(stack, directions, trial)
        changes = (stack.looked_at(batch) - known).double() / per_network(trial, known)
        share = SHARE_OF_CLASSES if are_classes(batch.y) else SHARE
        share = share if self._degree == 1 else SHARE_OF_LAYERS
        share *= (1 + float(state["steps"]) / SHARE_HOLDS) ** -(1 / 4)
        rows = pairs_of(known, batch.y, self._kind)
        size = _measured_size(loss.score_gradient.double(), changes, rows, share)
        _go(stack, directions, size - trial)
        state["size"] = size

    def _directions(self, log_loss: Tensor, gradients: list[Tensor]) -> list[Tensor]:
        if self._momentum:
            gradients = _averaged(self.state, "average", log_loss, gradients, self._momentum)
        pairs = zip(self._norms, gradients, strict=True)
        return [self._step_of(norm, gradient) for norm, gradient in pairs]

    def _step_of(self, norm: Norm, gradient: Tensor) -> Tensor:
        matrices = as_matrices(gradient)
        if self._polar == "exact" or norm.name != "spectral" or 1 in matrices.shape[1:]:
            return steepest(norm, gradient)
        return newton_schulz(matrices).view_as(gradient)


class LionDescent(NormalisedSteps):
    r"""Lion: signs of a mean of the gradient and of what is remembered of earlier ones.

    .. math:: W \leftarrow W - \eta_t \, \mathrm{sign}
              (\beta_1 m_{t-1} + (1 - \beta_1) \nabla_t), \qquad
              m_t = \beta_2 m_{t-1} + (1 - \beta_2) \nabla_t

    Parameters
    ----------
    stack, settings, n_samples
        As of `NormalisedSteps`.
    """

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples, LION_BETAS[1])
        self._remember("average", "scale")

    def _directions(self, log_loss: Tensor, gradients: list[Tensor]) -> list[Tensor]:
        first, second = LION_BETAS
        sums = _averaged(self.state, "average", log_loss, gradients, second)
        # m_t is 1 - second of the sum, from which m_{t-1} follows, all over exp(scale).
        earlier = first * (1 - second) / second
        now = torch.exp(log_loss - self.state["scale"]) * (1 - first - earlier)
        return [
            torch.sign(earlier * total + per_network(now, gradient) * gradient)
            for total, gradient in zip(sums, gradients, strict=True)
        ]


class AdamDescent(NormalisedSteps):
    r"""Adam: averages of gradients over the roots of averages of their squares.

    .. math:: W \leftarrow W - \eta_t \frac{m_t / (1 - \beta_1^t)}
              {\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    Without epsilon an entry that never had a gradient stays where it is.

    Parameters
    ----------
    stack, settings, n_samples
        As of `NormalisedSteps`.
    betas : pair of float
        Decay of both averages, in [0, 1).
    epsilon : float
        In units of the gradient of the mean loss; not negative.
    """

    def __init__(
        self,
        stack: NetworkStack,
        settings: TrainingSettings,
        n_samples: int,
        betas: tuple[float, float] = ADAM_BETAS,
        epsilon: float = 0.0,
    ) -> None:
        super().__init__(stack, settings, n_samples, betas[0])
        self._betas, self._epsilon = betas, epsilon
        self._remember("average", "scale")
        self._remember("square", "square scale")

    def _directions(self, log_loss: Tensor, gradients: list[Tensor]) -> list[Tensor]:
        state, (first, second) = self.state, self._betas
        count = float(state["steps"]) + 1
        averages = _averaged(state, "average", log_loss, gradients, first)
        squares = _averaged(
            state, "square", 2 * log_loss, [g * g for g in gradients], second, "square scale"
        )
        # m = exp(scale) average (1 - beta) and so on: all that is common to the entries of a layer.
        shrink = (1 - first) / (1 - first**count)
        root = math.sqrt((1 - second) / (1 - second**count))
        half = state["square scale"] / 2
        factor = shrink / root * torch.exp(state["scale"] - half)
        constant = self._epsilon / root * torch.exp(-half).clamp(max=1e300)
        directions = []
        for average, square in zip(averages, squares, strict=True):
            size = square.sqrt() + per_network(constant, square)
            moved = average * per_network(factor, average)
            directions.append(torch.where(size > 0, moved / torch.where(size > 0, size, 1.0), 0.0))
        return directions


def _go(stack: NetworkStack, directions: list[Tensor], sizes: Tensor) -> None:
    """Change the weights by the directions (B, ...), to go against, times sizes (B,)."""
    for weight, direction in zip(stack.weights, directions, strict=True):
        go_against(weight, direction, sizes)


def _measured_size(gradient: Tensor, changes: Tensor, y: Tensor, share: float) -> Tensor:
    """Return the sizes (B,) of steps of which margins change at known rates.

    Parameters
    ----------
    gradient : (B, n) or (B, n, K) tensor
        Of log(loss) in the scores.
    changes : (B, n) or (B, n, K) tensor
        Of the scores, by a step of size 1.
    y : (n,), (n, K) or (B, n, K) tensor
    share : float
        kappa.
    """
    if y.ndim > 1:  # a margin a pair; its weight is the gradient in the other class's score
        changes = (changes * y).sum(-1, keepdim=True) - changes
        weights, rates = (gradient * (1 - y)).flatten(1), changes.flatten(1)
    else:
        weights, rates = gradient.abs(), changes * y
    # Of tokens that are better than the one attended to weights are negative.
    slope, curvature = (weights * rates).sum(1), (weights.abs() * rates.square()).sum(1)
    largest = rates.abs().amax(1)
    moves = (slope > 0) & (curvature > 0)
    best = share * slope / torch.where(moves, curvature, 1.0)
    return torch.where(moves, torch.minimum(best, AT_MOST / largest), 0.0)


def _averaged(
    state: dict[str, Tensor],
    name: str,
    log_size: Tensor,
    values: list[Tensor],
    decay: float,
    scale: str = "scale",
) -> list[Tensor]:
    """Add values to decaying sums, each times exp(`log_size`) (B,), and return them.

    The sums are the entries `name` of the state times exp of its entry `scale` (B,), which is the
    logarithm of the larger of what was there and what comes: neither under- nor overflows.
    """
    before, now = state[scale] + math.log(decay) if decay else state[scale] - math.inf, log_size
    common = torch.maximum(before, now)
    kept, added = torch.exp(before - common), torch.exp(now - common)
    sums = []
    for i, value in enumerate(values):
        old = state[f"{name}.{i}"]
        sums.append(old * per_network(kept, old) + value * per_network(added, value))
        state[f"{name}.{i}"] = sums[-1]
    state[scale] = common
    return sums
