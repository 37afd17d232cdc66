"""Writers of what a run saves, which pickle with what they write."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._files import write_atomically
from .._version import __version__
from ..training.trajectory import Trajectory
from .finding import Writer

if TYPE_CHECKING:
    import torch

__all__ = ["write_arrays", "write_frame", "write_weights"]

MADE_BY = {"implicit-bias": __version__}


def write_frame(trajectory: Trajectory) -> Writer:
    """A writer of the trajectory's scalar columns as Parquet."""
    return partial(_write_frame, trajectory)


def write_weights(network: torch.nn.Module) -> Writer:
    """A writer of the network's weights as safetensors."""
    return partial(_write_weights, network)


def write_arrays(arrays: Mapping[str, NDArray[np.float64]]) -> Writer:
    """A writer of arrays by their names as safetensors."""
    return partial(_write_arrays, arrays)


def _write_frame(trajectory: Trajectory, path: Path) -> None:
    content = io.BytesIO()
    trajectory.to_frame().to_parquet(content, index=False)
    write_atomically(path, content.getvalue())


def _write_weights(network: torch.nn.Module, path: Path) -> None:
    from safetensors.torch import save

    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    write_atomically(path, save(tensors, metadata=MADE_BY))


def _write_arrays(arrays: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    from safetensors.numpy import save

    content = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_atomically(path, save(content, metadata=MADE_BY))
