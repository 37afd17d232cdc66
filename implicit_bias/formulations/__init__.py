"""The programs of the theorems, one file a model."""

from .gln import GLNLimit, gln_program, solve_gln_svm

__all__ = ["GLNLimit", "gln_program", "solve_gln_svm"]
