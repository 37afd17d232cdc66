"""Linear heads on a frozen trunk: their limits, and training of several exits."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
