"""Bounds that points prove, and the answers that carry them."""
