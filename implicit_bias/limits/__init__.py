"""Predicted limits of any theory: coefficients, certificates, predictors, files."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
