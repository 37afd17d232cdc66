"""The trainers as optimisers of torch, whose closures return margins: see docs/optimisers.md."""

from .training.margin_optimizer import MarginOptimizer
from .training.optimisers import Annealed, Dual, Momentum, Normalised

__all__ = ["Annealed", "Dual", "MarginOptimizer", "Momentum", "Normalised"]
