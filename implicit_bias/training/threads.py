"""One thread of torch for small steps."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from ..networks.threads import torch_threads
from .network_stack import NetworkStack

# Multiplications of a forward pass below which a second thread gains nothing worth having, and
# loses much on a machine with other work: threads that wait for one another spin meanwhile.
SMALL_STEP = 3e7


def threads_for(stack: NetworkStack, n_samples: int) -> int:
    """Return the threads of torch for steps of `n_samples`: one on the CPU where they are small."""
    work = n_samples * sum(w.numel() for w in stack.weights)
    small = stack.weights[0].device.type == "cpu" and work <= SMALL_STEP
    return 1 if small else torch.get_num_threads()


def limited_threads(stack: NetworkStack, n_samples: int) -> AbstractContextManager[None]:
    """Return a context with no more threads of torch than `threads_for` steps of `n_samples`."""
    return torch_threads(threads_for(stack, n_samples))
