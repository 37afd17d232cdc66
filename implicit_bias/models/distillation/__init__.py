"""Linear students of linear teachers on soft labels: where they end, and how well they imitate."""

from ..._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
