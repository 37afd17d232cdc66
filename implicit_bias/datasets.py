"""Bundled, drawn and loaded data, in the form that runs and trainers take."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
