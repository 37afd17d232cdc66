"""Predicted limits as scikit-learn estimators."""
