"""Networks as torch modules: ``forward(X, gates)`` returns one score a sample."""

from .gln import GLN

__all__ = ["GLN"]
