"""Benchmarks of the structured solver: `python -m experiments.speed`."""
