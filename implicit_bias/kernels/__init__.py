"""Kernels of gated networks, and what training is in the regime where a kernel says it all."""
