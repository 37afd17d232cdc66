"""Deep linearly gated networks: half-spaces for gates, linear or constant experts behind them."""

from ..._support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
