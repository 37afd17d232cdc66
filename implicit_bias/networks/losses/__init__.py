"""Losses of scores and labels, and the margins that they see."""
