"""Diagnosis of a network of the user's own: what it is, its limit, and how near it has come."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
