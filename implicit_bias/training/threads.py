"""One thread of torch for small steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from .network_stack import NetworkStack

__all__ = ["limited_threads"]

# Multiplications of a forward pass below which a second thread gains nothing worth having, and
# loses much on a machine with other work: threads that wait for one another spin meanwhile.
SMALL_STEP = 3e7


@contextlib.contextmanager
def limited_threads(stack: NetworkStack, n_samples: int) -> Iterator[None]:
    """Let torch use one thread on the CPU while steps of `n_samples` are small; never more."""
    usual = torch.get_num_threads()
    work = n_samples * sum(w.numel() for w in stack.weights)
    if stack.weights[0].device.type != "cpu" or work > SMALL_STEP or usual == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
