"""Deep linearly gated networks: half-spaces for gates, linear or constant experts behind them."""
