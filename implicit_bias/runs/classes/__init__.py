"""Runs of several classes: one against the rest, and jointly."""
