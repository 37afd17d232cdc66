"""Runs of a model: setup, trainers beside a limit, prospects, the folder of results."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
