"""Gates and contexts of units: transformers fitted to data, and measures of open gates."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
