"""Linear students of linear teachers on soft labels: where they end, and how well they imitate."""
