"""Predicted limits of any theory: coefficients, certificates, predictors, files."""
