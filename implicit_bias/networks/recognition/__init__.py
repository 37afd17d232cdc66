"""Recognition of a torch module by its values: homogeneity, gates, and the form of its scores."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
