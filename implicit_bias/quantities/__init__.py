"""Declarations of measured numbers: name, format, ideal value; tables and records of them."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
