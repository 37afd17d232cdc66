"""Norms of coefficients, and their unit balls."""
