"""What a network of your own may offer: scores and gates, homogeneity, norms of units."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
