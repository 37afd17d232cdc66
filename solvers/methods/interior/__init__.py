"""Interior points: predictors, correctors and their Newton systems."""
