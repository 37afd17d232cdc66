"""Gated linear networks: deep, shallow, and beside the plain norm."""
