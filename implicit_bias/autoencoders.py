"""Autoencoders whose information is asked for: where an objective leaves its solution open."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
