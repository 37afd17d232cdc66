"""Predict, train, compare: one file a family of models, all ending in a `Report`."""
