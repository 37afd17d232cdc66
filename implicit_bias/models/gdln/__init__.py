"""Gated linear networks under squared loss: closed forms for every time."""
