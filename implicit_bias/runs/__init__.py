"""Runs of a model: setup, trainers beside a limit, prospects, the folder of results."""
