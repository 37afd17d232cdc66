"""Writers of the files of a run, which pickle with their content."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...._support.names import name_of
from ...._support.saved import Kind, write_saved
from ....quantities.said import Writer
from ....training.settings import TrainingSettings
from ....training.trajectory import Trajectory

if TYPE_CHECKING:
    import torch

WEIGHTS = Kind("weights", "a run", "run it again")
ARRAYS = Kind("arrays", "a run", "run it again")


def write_frame(trajectory: Trajectory) -> Writer:
    """Return a writer of the trajectory's scalar columns as Parquet."""
    return trajectory.files("")[".parquet"]


def write_weights(network: torch.nn.Module) -> Writer:
    """Return a writer of the network's weights as safetensors."""
    return partial(_write_weights, network)


def write_arrays(arrays: Mapping[str, NDArray[np.float64]]) -> Writer:
    """Return a writer of arrays by their names as safetensors."""
    return partial(_write_arrays, arrays)


def write_path(trajectory: Trajectory, settings: TrainingSettings) -> Writer:
    """Return a writer of the observed "weights" of every checkpoint, with step, time and loss.

    Times (T,) are those of the gradient flow.
    """
    return write_arrays(
        {
            "weights": trajectory.observed["weights"],
            "step": trajectory.step,
            "time": settings.flow_times(trajectory.step),
            "loss": trajectory.loss,
        }
    )


def _write_weights(network: torch.nn.Module, path: Path) -> None:
    weights = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
    write_saved(path, WEIGHTS, weights, {"network": name_of(type(network))})


def _write_arrays(arrays: Mapping[str, NDArray[np.float64]], path: Path) -> None:
    write_saved(path, ARRAYS, arrays, {})
