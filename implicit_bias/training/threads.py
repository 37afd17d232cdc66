"""One thread of torch for small steps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from .network_stack import NetworkStack

__all__ = ["limited_threads", "threads_for"]

# Multiplications of a forward pass below which a second thread gains nothing worth having, and
# loses much on a machine with other work: threads that wait for one another spin meanwhile.
SMALL_STEP = 3e7


def threads_for(stack: NetworkStack, n_samples: int) -> int:
    """Return the threads of torch for steps of `n_samples`: one on the CPU where they are small."""
    work = n_samples * sum(w.numel() for w in stack.weights)
    small = stack.weights[0].device.type == "cpu" and work <= SMALL_STEP
    return 1 if small else torch.get_num_threads()


@contextlib.contextmanager
def limited_threads(stack: NetworkStack, n_samples: int) -> Iterator[None]:
    """Let torch use no more threads than `threads_for` steps of `n_samples`."""
    usual, wanted = torch.get_num_threads(), threads_for(stack, n_samples)
    if wanted == usual:
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
