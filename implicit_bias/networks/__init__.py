"""Every torch module of the package with its initial weights, and the protocols of networks."""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
