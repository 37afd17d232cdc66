"""Findings of a run and their report: record, row, text, page, files. They know no run."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
