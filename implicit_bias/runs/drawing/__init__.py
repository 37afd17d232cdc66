"""Panels that are drawn on matplotlib axes, and figures composed of them."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
