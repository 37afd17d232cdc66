"""Local limits: the KKT point of the margin problem near a network, with its curvature."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
