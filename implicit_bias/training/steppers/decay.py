"""Changes of weights (B, ...) in place: against a direction, and by decoupled weight decay."""

from __future__ import annotations

import torch

from ..network_stack import Rate
from .batched import per_network


def shrink(weight: torch.Tensor, weight_decay: float, rate: Rate) -> None:
    """Multiply weights (B, ...) in place by ``1 - rate weight_decay``."""
    if isinstance(rate, torch.Tensor):
        weight.sub_(weight * per_network(rate * weight_decay, weight))
    else:
        weight.mul_(1 - (rate or 0.0) * weight_decay)


def go_against(weight: torch.Tensor, direction: torch.Tensor, rate: Rate) -> None:
    """Subtract ``rate direction`` from weights (B, ...) in place."""
    if isinstance(rate, torch.Tensor):
        weight.sub_(direction * per_network(rate, weight))
    else:
        weight.sub_(direction, alpha=rate)
