"""Reproductions and benchmarks, run from a checkout as `python -m experiments.NAME`."""
