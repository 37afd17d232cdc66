"""Networks as torch modules: ``forward(X, gates)`` returns one score a sample."""

from implicit_bias.networks.gln import GLN

__all__ = ["GLN"]
