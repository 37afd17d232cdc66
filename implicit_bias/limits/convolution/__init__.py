"""Limits of full-width linear convolutions: frequencies of least norm."""
