"""Newton steps for losses that are convex in the weights and have a least value."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from ...networks.adapted import plain
from ...networks.derivatives import slope_and_hessian
from ...networks.losses.objectives import get_loss
from ...networks.placed_data import GatedData
from ..network_stack import NetworkStack, Rate
from ..settings import TrainingSettings
from .stepper import Stepper

# A step must bring this share of the fall that the slope promises (Armijo), and is halved until.
ARMIJO = 1e-4
MAX_HALVINGS = 40
# Curvature below so many roundings of the largest, for each weight, is of directions in which
# nothing changes; below minus ten times that the loss is not convex.
FLAT, CONCAVE = 4, 40

Function = Callable[[Tensor], Tensor]


class Newton(Stepper):
    r"""Newton's method on the mean loss, along the range of its Hessian alone.

    A step leaves directions in which the loss is constant as they are, as gradients do: from 0 it
    comes to the minimiser of least norm, as gradient flow does from there. It takes the
    eigenvectors of a matrix as large as the number of weights squared.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex optimization", algorithm 9.5.
    """

    def __init__(self, stack: NetworkStack, settings: TrainingSettings, n_samples: int) -> None:
        super().__init__(stack, settings, n_samples)
        self._value = get_loss(settings.loss).value
        names = dict(plain(stack.networks[0]).named_parameters())
        self._names = [name for name, weight in names.items() if weight.requires_grad]
        self._ends: list[tuple[GatedData, Tensor] | None] = [None] * len(stack.networks)

    def step(self, batch: GatedData, rate: Rate) -> None:
        """Take one step of each network, shortened until the loss falls; `rate` is not used.

        Raises
        ------
        ValueError
            If the loss is not convex in the weights.
        """
        for b, network in enumerate(self._stack.networks):
            pieces = [weight[b] for weight in self._stack.weights]
            start = torch.cat([piece.flatten() for piece in pieces])
            end = self._ends[b]
            if end is not None and end[0] is batch and torch.equal(end[1], start):
                continue  # the last step has found no way down
            ends = _descended(self._loss_of(network, pieces, batch), start)
            self._ends[b] = (batch, start) if torch.equal(ends, start) else None
            for piece, new in zip(pieces, _pieces(ends, pieces), strict=True):
                piece.copy_(new)

    def _loss_of(
        self, network: torch.nn.Module, pieces: list[Tensor], batch: GatedData
    ) -> Function:
        """Return the mean loss as a function of all weights in a row."""

        def loss(flat: Tensor) -> Tensor:
            """Return the mean loss at these weights."""
            weights = dict(zip(self._names, _pieces(flat, pieces), strict=True))
            scores = functional_call(plain(network), weights, (batch.X, batch.gates))
            mean: Tensor = self._value(scores, batch.y).sum() / len(batch.y)
            return mean

        return loss


def _pieces(flat: Tensor, like: list[Tensor]) -> list[Tensor]:
    parts = torch.split(flat, [piece.numel() for piece in like])
    return [part.view(piece.shape) for part, piece in zip(parts, like, strict=True)]


def _descended(loss: Function, start: Tensor) -> Tensor:
    """Return the point after a Newton step; the same where rounding leaves no way down."""
    slope, matrix = slope_and_hessian(loss, start)
    curvature, basis = torch.linalg.eigh(matrix.double())
    rounding = torch.finfo(start.dtype).eps * len(start) * float(curvature[-1])
    if float(curvature[0]) < -CONCAVE * rounding:
        raise ValueError(
            "the trainer 'newton' is for losses that are convex in the weights, and this one is "
            f"not: its curvature falls to {float(curvature[0]):.3g}: take 'constant'"
        )
    curved = curvature > FLAT * rounding
    coordinates = basis[:, curved].T @ slope.double()
    step = (basis[:, curved] @ (coordinates / curvature[curved])).to(start.dtype)
    before, promised = float(loss(start)), float((coordinates**2 / curvature[curved]).sum())
    share = 1.0
    for _ in range(MAX_HALVINGS):
        moved: Tensor = start - share * step
        after = float(loss(moved))
        if math.isfinite(after) and after <= before - ARMIJO * share * promised:
            return moved
        share /= 2
    return start
