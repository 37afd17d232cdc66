"""Results of the field as one table: network, loss, optimiser; program, conditions, source."""

from ._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
