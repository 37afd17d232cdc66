"""Limits of training on separable data: the programs that theorems name, and their answers."""
