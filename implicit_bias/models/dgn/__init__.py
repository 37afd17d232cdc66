"""Deep gated networks: gates, or contexts, that are given in every layer."""
