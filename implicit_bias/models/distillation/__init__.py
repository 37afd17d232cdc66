"""Linear students of linear teachers on soft labels: limits, gradient flow and transfer risk."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
