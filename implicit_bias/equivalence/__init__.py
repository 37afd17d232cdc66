"""Which networks are one function: symmetries of ReLU networks, and comparing modulo them."""

from .._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
