"""Linear heads at several exits of a frozen trunk, on hard, soft and mixed labels."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
