"""Training of networks by gradient methods, alone or many at a time.

It knows no formulation: with a prediction it shares data and gating, nothing else.
"""

from .._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
