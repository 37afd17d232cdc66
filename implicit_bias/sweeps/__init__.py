"""Sweeps: one model over a grid of its options, a file a cell."""
