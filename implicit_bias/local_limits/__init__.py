"""Local limits: the KKT point of the margin problem near a network, with its curvature."""
