"""Networks of a run, trained: from their start, or from where an interrupt has ended them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..networks.placed_data import Inputs
from ..training.loop import train, train_many
from ..training.settings import TrainingSettings
from ..training.training_run import Callback
from ..training.trajectory import Trajectory
from ..training.trajectory_recorder import Observer
from .setup import SampleSetup, Setup

if TYPE_CHECKING:
    import torch

# The file of an unfinished run, in the folder of its results.
STATE = "run.safetensors"


def fit(
    setup: Setup,
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    settings: TrainingSettings,
    state: str = STATE,
    first: bool = True,
    X_val: Inputs | None = None,
    gates_val: Inputs | None = None,
    observer: Observer | None = None,
    callback: Callback | None = None,
) -> Trajectory:
    """Train a network of a run in place, and keep what it takes to resume it in the run's folder.

    Parameters
    ----------
    setup : Setup
    network : Module
    X, y, gates : arrays
        As `train` takes them.
    settings : TrainingSettings
    state : str
        The name of its file in the folder.
    first : bool
        True for the first network that the run trains, which a run that is resumed had begun.
        Others begin anew where they left no file.
    X_val, gates_val, observer, callback : optional
        As `train` takes them; the callback is called before the run's own, for its progress.

    Raises
    ------
    FloatingPointError
        If training diverges.
    ValueError
        If there is nothing to resume, or it is of other settings, data or weights.
    """
    return train(
        network,
        X,
        y,
        gates,
        settings=settings,
        X_val=X_val,
        gates_val=gates_val,
        observer=observer,
        callback=setup.progress.training(callback),
        state=setup.folder.state(state),
        resume=setup.folder.resumes(state, first=first),
    )


def fit_many(
    setup: SampleSetup,
    networks: Sequence[torch.nn.Module],
    *,
    state: str,
    first: bool,
    observers: Sequence[Observer] | None = None,
) -> list[Trajectory]:
    """Train networks of a run side by side on its samples, as `fit` trains one.

    Raises
    ------
    FloatingPointError
        If training of all of them diverges.
    ValueError
        If there is nothing to resume, or it is of other settings, data or weights.
    """
    return train_many(
        networks,
        *setup.train,
        settings=setup.settings,
        observers=observers,
        callback=setup.progress.training(),
        state=setup.folder.state(state),
        resume=setup.folder.resumes(state, first=first),
    )
