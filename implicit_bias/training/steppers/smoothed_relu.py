"""Quasi-Newton steps for the margin of ReLU networks whose kinks are rounded, less and less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...networks.adapted import plain
from ...networks.placed_data import GatedData
from ...networks.relu import DeepReLU
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .annealed_lbfgs import ARMIJO, MAX_SHORTENINGS, MAX_STEP, AnnealedLBFGS, shortened
from .batched import inner, lengths, numbers, per_network, to_numpy
from .lbfgs import empty_lbfgs_memory, lbfgs_direction, reset_lbfgs, update_lbfgs
from .stepper import FlatStepper

# Steps of `annealed` that come first, at most this share of all.
FIRST, FIRST_SHARE = 300, 0.1
# Inverse temperatures over the margin and widths of the kinks, from stage to stage. The excess over
# the local optimum is that of the width: 3e-3, 1e-4, 4e-6, 1e-7 after 10, 20, 30, 40 stages.
BEGIN, GROWTH, WIDTH = 20.0, 1.4, 0.3
STAGES, LAST_STAGE = 31, 40
# A stage ends once a step promises less than this of log(loss), or after its share of the steps.
# At 1e-5 networks were 3e-4 above their local optima, at 1e-7 2e-6 to 5e-6.
CONVERGED = 1e-7
# Of log(loss), which a search may rise by.
ROUNDING = 1e-12
# Searches that find nothing, each after forgetting the curvature, before a stage is given up.
MAX_STALLS = 3
TINY = 1e-300
# In place of slopes where there are none.
NONE = torch.empty(0)
PREFIX = "annealed."

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class _Layer(NamedTuple):
    """What a layer computed: inputs (B, n, D), weights (B, H, D), and of hidden units slopes.

    `opened` and `spread` (B, n, H) are slopes of outputs in the products z and in the product of
    the lengths `before` (B, n, 1) of inputs and `rows` (B, 1, H) of weights.
    """

    inputs: Tensor
    weights: Tensor
    opened: Tensor = NONE
    spread: Tensor = NONE
    before: Tensor = NONE
    rows: Tensor = NONE


class SmoothedReLU(FlatStepper):
    r"""Limited-memory BFGS on the margin of a ReLU network, kinks rounded and smoothed in stages.

    In place of :math:`\max(z, 0)`, z the product of a row w and an input h, stands
    :math:`s \log(1 + e^{z / s})` with :math:`s = \tau \|w\| \|h\|`, homogeneous like it, so that
    margins keep their meaning; of leaky units the part above their slope is rounded. Stage k lowers
    :math:`\log \sum_n e^{-\beta m_n(\theta / \|\theta\|)}` with :math:`\beta = 20 \cdot 1.4^k` over
    the smallest margin and :math:`\tau = 0.3 / (20 \cdot 1.4^k)`. The first steps are those of
    `annealed`, until the data are separated. The weights that the networks get are
    :math:`\beta^{1/L} \theta / \|\theta\|`, without rounded kinks, L the number of layers.

    Nothing is proved of this method. Networks of two layers were observed to end within 1e-5 of
    their own certified local optimum, which need not be that to which unrounded training goes:
    wide kinks cross barriers.
    """

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples)
        network = _relu(stack.networks[0])
        self._degree, self._slope = len(network.layers), network.slope
        self._annealed = AnnealedLBFGS(stack, settings, n_samples)
        self._first = int(min(FIRST, FIRST_SHARE * settings.n_steps))
        self._share = max(1, (settings.n_steps - self._first) // STAGES)
        start = self._flat().double()
        zero = torch.zeros(len(start), dtype=torch.float64)
        self.state = {
            "stage": zero - 1,  # -1 while `annealed` trains
            "annealed_steps": zero.clone(),
            "stage_steps": zero.clone(),
            "stalls": zero.clone(),
            "margin": zero + 1,  # smallest, of weights of length 1, as the stage began
            "point": start,
            "log_loss": zero.clone(),
            "gradient": torch.zeros_like(start),
            **empty_lbfgs_memory(start),
            **self._of_annealed(),
        }

    def _of_annealed(self) -> dict[str, Tensor]:
        """The state of `annealed` as a part of this one."""
        return {f"{PREFIX}{name}": value for name, value in self._annealed.state.items()}

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step of the stage in which each network is; `rate` is not used."""
        waiting = self._get("stage") < 0
        if waiting.any():
            first = self._annealed
            first.state = {name: self.state[PREFIX + name] for name in first.state}
            first.step(batch, rate)
            self.state |= self._of_annealed()
            steps = self._get("annealed_steps") + waiting
            self._set(annealed_steps=steps)
            separated = to_numpy(first.state["separated"])
            ready = waiting & separated & (steps >= self._first)
            if ready.any():
                now = self._flat().double()
                self.state["point"] = torch.where(per_network(ready, now), now, self.state["point"])
                self._begin_stage(batch, ready)
        going = self._get("stage") >= 0
        if going.any() and not (waiting & going).all():
            self._descend(batch, going & ~waiting)

    def settle(self) -> None:
        """Give the networks whose kinks are rounded their weights."""
        going = self._get("stage") >= 0
        if going.any():
            self._show(going)

    def _descend(self, batch: GatedData, networks: Mask) -> None:
        """Take a quasi-Newton step in these networks, and end stages that have converged."""
        own = self.state
        gradient = own["gradient"]
        step = lbfgs_direction(own, gradient)
        norm, length = numbers(lengths(own["point"]), lengths(step))
        share = np.minimum(1.0, MAX_STEP * norm / np.maximum(length, TINY)) * networks
        step = step * per_network(share, step)
        (slope,) = numbers(inner(gradient, step))
        last = self._get("stage") >= LAST_STAGE
        ended = networks & ((-slope / 2 <= CONVERGED) | (self._get("stage_steps") >= self._share))
        ended |= networks & (self._get("stalls") >= MAX_STALLS)
        ended &= ~last
        if ended.any():
            self._begin_stage(batch, ended)
        moving = networks & ~ended
        if moving.any():
            self._search(batch, step * per_network(moving, step), slope * moving, moving)

    def _search(self, batch: GatedData, step: Tensor, slope: Array, networks: Mask) -> None:
        """Take as much of the step as lowers log(loss) by enough, or nothing of it."""
        own = self.state
        start, before = own["point"], self._get("log_loss")
        taken = np.ones(len(slope))
        good = ~networks
        for _ in range(MAX_SHORTENINGS):
            point = start + per_network(taken, step) * step
            log_loss, gradient = self._evaluate(batch, point)
            allowed = before + ROUNDING * np.abs(before) + ARMIJO * taken * slope
            good = ~networks | (log_loss <= allowed)
            if good.all():
                break
            taken = np.where(good, taken, shortened(taken, slope, log_loss - before))
        moved = networks & good
        chosen = per_network(moved, start)
        change = torch.where(chosen, gradient - own["gradient"], 0.0)
        update_lbfgs(own, torch.where(chosen, point - start, 0.0), change)
        own["point"] = torch.where(chosen, point, start)
        own["gradient"] = torch.where(chosen, gradient, own["gradient"])
        reset_lbfgs(own, networks & ~good)
        self._set(
            log_loss=np.where(moved, log_loss, before),
            stage_steps=self._get("stage_steps") + networks,
            stalls=self._get("stalls") + (networks & ~good),
        )

    def _begin_stage(self, batch: GatedData, networks: Mask) -> None:
        """Narrow the kinks and lower the temperature of these networks."""
        own = self.state
        margins = batch.y.double() * self._scores(batch, own["point"], np.zeros(len(networks)))
        smallest = np.abs(to_numpy(margins.amin(dim=1)))
        self._set(
            stage=self._get("stage") + networks,
            margin=np.where(networks, np.maximum(smallest, TINY), self._get("margin")),
            stage_steps=np.where(networks, 0.0, self._get("stage_steps")),
            stalls=np.where(networks, 0.0, self._get("stalls")),
        )
        log_loss, gradient = self._evaluate(batch, own["point"])
        own["gradient"] = torch.where(per_network(networks, gradient), gradient, own["gradient"])
        self._set(log_loss=np.where(networks, log_loss, self._get("log_loss")))

    def _evaluate(self, batch: GatedData, point: Tensor) -> tuple[Array, Tensor]:
        """Losses (B,) of the smoothed problem at points (B, P), and their gradients.

        In units of the length of the point; by hand, which costs less than autograd.
        """
        sharpness = BEGIN * GROWTH ** np.maximum(self._get("stage"), 0.0)
        norms = torch.linalg.vector_norm(point, dim=1, keepdim=True)
        unit, y = point / norms, batch.y.double()
        scores, layers = self._forward(batch, unit, WIDTH / sharpness)
        margins = y * scores
        beta = per_network(sharpness / self._get("margin"), margins)
        exponents = -beta * margins
        losses = torch.logsumexp(exponents, dim=1)
        pulled = torch.exp(exponents - losses[:, None]) * -beta * y
        gradient = self._backward(unit, layers, pulled)
        gradient = gradient - unit * (unit * gradient).sum(1, keepdim=True)
        return to_numpy(losses), gradient / norms

    def _scores(self, batch: GatedData, point: Tensor, widths: Array) -> Tensor:
        """Scores (B, n) at weights of length 1, with kinks of these widths (B,), 0 for none."""
        unit = point / torch.linalg.vector_norm(point, dim=1, keepdim=True)
        return self._forward(batch, unit, widths)[0]

    def _forward(
        self, batch: GatedData, unit: Tensor, widths: Array
    ) -> tuple[Tensor, list[_Layer]]:
        """Scores (B, n), and what each layer computed, with slopes where kinks are rounded."""
        *hidden, last = self._unflatten(unit)
        inputs, layers = batch.X.double().expand(len(unit), *batch.X.shape), list[_Layer]()
        for W in hidden:
            z = inputs @ W.mT
            if widths.any():
                before, rows = _lengths(inputs)[:, :, None], _lengths(W)[:, None, :]
                width = per_network(widths, z)
                s = width * before * rows
                t = z / s
                # Of softplus(t) = log(1 + e^t): its slope, and by how much it exceeds t times that.
                soft = torch.log1p(torch.exp(-t.abs())).add_(t.clamp(min=0))
                opened = torch.sigmoid(t)
                spread = (soft - t * opened) * width
                layers.append(_Layer(inputs, W, opened, spread, before, rows))
                inputs = s * soft
            else:
                inputs = z.clamp(min=0)
            if self._slope:
                inputs = self._slope * z + (1 - self._slope) * inputs
        return (inputs @ last.mT)[:, :, 0], [*layers, _Layer(inputs, last)]

    def _backward(self, unit: Tensor, layers: list[_Layer], pulled: Tensor) -> Tensor:
        """Gradients (B, P) of the sum of scores times `pulled` (B, n), by what was computed."""
        *hidden, last = layers
        parts = [pulled[:, None, :] @ last.inputs]
        pulled = pulled[:, :, None] * last.weights
        for number, layer in reversed(list(enumerate(hidden))):
            smooth = (1 - self._slope) * pulled
            by_z = smooth * layer.opened + self._slope * pulled
            by_width = smooth * layer.spread
            of_rows = (by_width * layer.before).sum(1)[:, :, None] / layer.rows.mT
            parts.append(by_z.mT @ layer.inputs + of_rows * layer.weights)
            if number:
                of_inputs = (by_width * layer.rows).sum(2, keepdim=True) / layer.before
                pulled = by_z @ layer.weights + of_inputs * layer.inputs
        return torch.cat([part.flatten(1) for part in reversed(parts)], dim=1)

    def _show(self, networks: Mask) -> None:
        """Give these networks their weights."""
        point = self.state["point"]
        sharpness = BEGIN * GROWTH ** np.maximum(self._get("stage"), 0.0)
        beta = (sharpness / self._get("margin")) ** (1 / self._degree)
        (norm,) = numbers(lengths(point))
        self._assign_some(self._unflatten(point * per_network(beta / norm, point)), networks)


def _lengths(rows: Tensor) -> Tensor:
    """Lengths of the last axis, with slope 0 at 0."""
    return rows.square().sum(-1).clamp(min=TINY).sqrt()


def _relu(network: torch.nn.Module) -> DeepReLU:
    """The ReLU network itself, which `check_trainer` has seen to."""
    own = plain(network)
    assert isinstance(own, DeepReLU)
    return own
