"""Diagonal linear networks from any start: the interpolant of least potential."""
