"""Runs with weight decay and with bounded losses, beside their finite limits."""
