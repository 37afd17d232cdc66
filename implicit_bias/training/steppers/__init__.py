"""Steppers: what takes a step of training, one trainer each, for one network or many."""
