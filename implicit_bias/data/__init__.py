"""Data of a run: inputs and labels, checked and read-only, bundled, drawn or from files."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
