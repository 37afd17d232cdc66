"""Doors to the solvers of others: cvxpy, HiGHS, DAQP."""
