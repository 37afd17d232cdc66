"""Gradient methods of `train` as optimisers of torch, whose closures return margins."""

from .training.margin_optimizer import MarginOptimizer
from .training.optimisers import Annealed, Dual, Momentum, Normalised

__all__ = ["Annealed", "Dual", "MarginOptimizer", "Momentum", "Normalised"]
