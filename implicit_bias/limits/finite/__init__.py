"""Limits at finite weights: weight decay, regression, and networks from any start."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
