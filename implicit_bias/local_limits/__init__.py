"""The KKT point of the margin problem that a network is heading to, and what curvature proves."""
