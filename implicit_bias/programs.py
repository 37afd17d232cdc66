"""Convex programs whose solutions are limits, each also as the paper states it, for cvxpy."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
