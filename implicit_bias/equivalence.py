"""Symmetries of ReLU networks, and comparison of networks modulo them."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
