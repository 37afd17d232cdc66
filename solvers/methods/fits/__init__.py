"""Fits of mean losses with penalties, in balls, or of interpolants."""
