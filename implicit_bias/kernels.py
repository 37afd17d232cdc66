"""Kernels of gated networks, and what training is in the regime where a kernel says it all."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
