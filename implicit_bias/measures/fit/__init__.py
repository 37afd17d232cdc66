"""Linear algebra of the KKT fit: Gram matrices of gradients, non-negative least squares."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
