"""The threads of torch, for as long as something lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use this many threads on the CPU, and as many as before afterwards."""
    usual = torch.get_num_threads()
    if count == usual:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
