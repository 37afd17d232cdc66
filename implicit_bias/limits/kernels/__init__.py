"""Kernels of gatings and of networks, their machines and their regression."""
