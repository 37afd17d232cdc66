"""Distances of a network from a predicted limit, along training and at its end."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
