"""How near a network is to a predicted limit: in numbers, along training and at its end."""

from .._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
