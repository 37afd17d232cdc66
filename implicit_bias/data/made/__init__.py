"""Data that are drawn or built: circles, orthants, pairs, quadrants."""
