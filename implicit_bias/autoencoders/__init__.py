"""Autoencoders whose information is asked for: where an objective leaves its solution open."""
