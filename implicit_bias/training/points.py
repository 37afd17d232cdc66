"""Points in the space of weights, free in length or on the sphere, and the networks there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .data import GatedData
from .descent import assign
from .objectives import Smoothed, smoothed
from .quasi_newton import inner, numbers, rows
from .stacked import Runs, along

__all__ = ["Points", "Reached", "lengths"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reached:
    """Points (B, P) of these lengths, the networks there, `scale` times as long, and their losses.

    `share` is what was taken of the step that leads there, (B,).
    """

    point: Tensor
    length: Array
    scale: Array
    scores: Tensor
    loss: Smoothed
    log_loss: Array
    share: Array = field(default_factory=lambda: np.empty(0))


class Points:
    r"""Points (B, P) of B runs, and what their networks are there.

    The weights of run b are :math:`\theta = b^{1/L} u`, b its inverse temperature and L the degree:
    u is the point itself before the run has separated the data, and its direction afterwards.
    What is known of the runs, numbers (B,) on the CPU and rows (B, P), stands in `state`.
    """

    state: dict[str, Tensor]

    def __init__(self, runs: Runs, kind: str) -> None:
        self._runs, self._kind = runs, kind
        self._degree: int = runs.networks[0].degree  # type: ignore[assignment]

    def _number(self, name: str) -> NDArray[Any]:
        """(B,) what the state holds under this name."""
        return numbers(self.state[name])

    def _note(self, **values: NDArray[Any]) -> None:
        """Put numbers (B,) into the state."""
        self.state |= {name: torch.from_numpy(value) for name, value in values.items()}

    def _at(self, batch: GatedData, point: Tensor) -> Reached:
        """The networks at the temperature and this point (B, P), and their losses."""
        length = lengths(point)
        norms = np.where(self._number("separated"), length, 1.0)
        scale = self._number("inverse_temperature") ** (1 / self._degree) / norms
        assign(self._runs.weights, self._shaped(point * rows(scale, point)))
        scores = self._runs.scores(batch)
        loss = smoothed(scores.detach(), batch.y, self._kind)
        return Reached(point, length, scale, scores, loss, numbers(loss.log_loss))

    def _shaped(self, flat: Tensor) -> list[Tensor]:
        """Rows (B, P) in the shapes of the weights."""
        weights = self._runs.weights
        parts = torch.split(flat, [w[0].numel() for w in weights], dim=1)
        return [part.view_as(w) for w, part in zip(weights, parts, strict=True)]

    def _give(self, values: list[Tensor], runs: NDArray[np.bool_]) -> None:
        """Give the networks of the runs marked these weights."""
        weights, chosen = self._runs.weights, torch.from_numpy(runs).to(values[0].device)
        pairs = zip(weights, values, strict=True)
        assign(weights, [torch.where(along(chosen, w), value, w) for w, value in pairs])

    def _pulled(self, there: Reached, coefficients: Tensor, *, keep: bool = False) -> Tensor:
        """(B, P) gradients in the weights."""
        parts = self._runs.pull(there.scores, coefficients, keep=keep)
        return torch.cat([g.flatten(1) for g in parts], dim=1)

    def _gradient(self, there: Reached, pulled: Tensor) -> Tensor:
        """The gradient in the point, from one in the weights; along the sphere if it is there."""
        return self._tangent(pulled * rows(there.scale, pulled), there)

    def _tangent(self, gradient: Tensor, there: Reached) -> Tensor:
        separated = self._number("separated")
        if not separated.any():
            return gradient
        share = inner(gradient, there.point) / np.where(separated, there.length, 1.0) ** 2
        return gradient - rows(np.where(separated, share, 0.0), gradient) * there.point


def lengths(vectors: Tensor) -> Array:
    """(B,) Euclidean lengths of rows (B, P), summed in float64."""
    return numbers(torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64))
