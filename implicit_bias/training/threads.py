"""As many threads as the work of a step can use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from .data import GatedData
from .runs import Runs

__all__ = ["fitting_threads"]

# Multiplications of a forward pass below which a second thread gains nothing worth having, and
# loses much on a machine with other work: threads that wait for one another spin meanwhile.
SMALL = 3e7


@contextlib.contextmanager
def fitting_threads(runs: Runs, data: GatedData) -> Iterator[None]:
    """Let torch use one thread on the CPU while steps are small; never more than it had."""
    usual = torch.get_num_threads()
    work = len(data.y) * sum(w.numel() for w in runs.weights)
    if data.y.device.type != "cpu" or work > SMALL or usual == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
