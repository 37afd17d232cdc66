"""Train as a ReLU network, freeze the gates, go on as a frozen-gate network."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..._support.shown import Shown
from ..._support.solve import to_numpy
from ...gates.layered import NetworkGates
from ...gates.relu import ReLUGates
from ...networks.gated.dgn import DGN
from ...networks.gated.frelu import FReLU
from ...networks.placed_data import Inputs
from ...networks.relu import DeepReLU, ReLU
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.training_run import Callback
from ...training.trajectory import Trajectory


@dataclass(frozen=True, eq=False, repr=False)
class PartlyTrained(Shown):
    """A network whose gates were learned for a while and then frozen.

    Attributes
    ----------
    network : FReLU or DGN
        As it ended: of one hidden layer, or of several.
    gating : ReLUGates or NetworkGates
        The gates as they were frozen, for new inputs.
    before, after : Trajectory or None
        The run as a ReLU network, and as a frozen-gate one, each counting steps from 0; None
        where that part has no steps, and before the freeze for the copy of a network that goes on.
    """

    network: FReLU | DGN
    gating: ReLUGates | NetworkGates
    before: Trajectory | None
    after: Trajectory | None

    @property
    def finished(self) -> bool:
        """True if neither part of the training was interrupted."""
        return all(part is None or part.finished for part in (self.before, self.after))


def train_then_freeze(
    network: DeepReLU,
    X: Inputs,
    y: Inputs,
    *,
    freeze_at: int,
    settings: TrainingSettings | None = None,
    after: TrainingSettings | None = None,
    X_val: Inputs | None = None,
    callback: Callback | None = None,
    states: tuple[Path, Path] | None = None,
    resume: bool = False,
) -> PartlyTrained:
    """Train `network` for `freeze_at` steps, freeze its gates and train the rest of the schedule.

    Learning rates follow the schedule through the freeze; momentum starts again from 0, and
    mini-batches from a new epoch, drawn by a seed that follows from `settings.random_state`, or
    by that generator if it is one.

    Parameters
    ----------
    network : DeepReLU
        Trained in place up to the freeze; what follows happens to a copy.
    X : (n, D)
    y : (n,)
        Labels in {-1, +1}.
    freeze_at : int
        0: gates as initialised, to `settings.n_steps`: all of the training as a ReLU network.
    settings : TrainingSettings, optional
        Of both parts together. `n_checkpoints` is what each part gets.
    after : TrainingSettings, optional
        Of the copy once its gates are frozen, for as many steps as `settings` have left; its seed
        is a child of theirs. By default the rest of `settings`.
    X_val : (m, D), optional
        Held-out inputs whose scores enter both trajectories.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` with the steps of both parts together.
    states : (path, path), optional
        Files in which the two parts keep what it takes to go on: `state` of `train`, which needs
        an integer `settings.random_state`.
    resume : bool
        Go on from those files, with the network as it began. A part whose file is not there has
        not been begun: it begins.

    Returns
    -------
    PartlyTrained
        After a KeyboardInterrupt in the first part, with the gates as they were then and no
        second part.

    Raises
    ------
    ValueError
        If `freeze_at` is out of range; and as `train` does.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", section 5.2.
    """
    settings = TrainingSettings() if settings is None else settings
    total = settings.n_steps
    first, second = split_settings(settings, freeze_at, after)
    if resume and states is None:
        raise ValueError("`resume` needs `states`, the files of the states of both parts")
    files = states or (None, None)
    begun = [resume and path is not None and path.exists() for path in files]
    before = None
    if first is not None:
        before = train(
            network, X, y, None, settings=first, X_val=X_val,
            callback=_shifted(callback, 0, total), state=files[0], resume=begun[0],
        )  # fmt: skip
    since = freeze_then_train(
        network, X, y, settings=second if before is None or before.finished else None, X_val=X_val,
        callback=_shifted(callback, freeze_at, total), state=files[1], resume=begun[1],
    )  # fmt: skip
    return replace(since, before=before)


def freeze_then_train(
    network: DeepReLU,
    X: Inputs,
    y: Inputs,
    *,
    settings: TrainingSettings | None,
    X_val: Inputs | None = None,
    callback: Callback | None = None,
    state: Path | None = None,
    resume: bool = False,
) -> PartlyTrained:
    """Freeze the gates of a copy of `network` and train it, as the second part of a run.

    Parameters
    ----------
    network : DeepReLU
        Left as it is.
    settings : TrainingSettings or None
        Of the copy; None for no steps.
    X, y, X_val, callback, state, resume : optional
        As `train` takes them.
    """
    frozen, gating = _freeze(network, X)
    after = None
    if settings is not None:
        # The network's own gates, in its own arithmetic: the function is the same at the freeze.
        after = train(
            frozen, X, y, network.gates(X), settings=settings, X_val=X_val,
            gates_val=None if X_val is None else network.gates(X_val),
            callback=callback, state=state, resume=resume,
        )  # fmt: skip
    return PartlyTrained(network=frozen, gating=gating, before=None, after=after)


def _freeze(network: DeepReLU, X: Inputs) -> tuple[FReLU | DGN, ReLUGates | NetworkGates]:
    """A copy that no longer sets its gates, and these gates for new inputs."""
    if isinstance(network, ReLU):
        return network.freeze_gates(), ReLUGates.from_network(network)
    layers = [layer.detach().clone() for layer in network.layers]
    frozen = DGN.from_weights(*layers, device=layers[0].device)
    return frozen, NetworkGates(network).fit(to_numpy(X))


def split_settings(
    settings: TrainingSettings, at: int, after: TrainingSettings | None = None
) -> tuple[TrainingSettings | None, TrainingSettings | None]:
    """Return the settings before and after a freeze at a step; None for a part of no steps.

    Raises
    ------
    ValueError
        If the step is out of range, or `after`, of the second part, does not have the steps left.
    """
    if not 0 <= at <= settings.n_steps:
        raise ValueError(
            f"`freeze_at` must lie in 0 .. {settings.n_steps}, the steps of the schedule, got {at}"
        )
    first = last = settings.random_state
    if not isinstance(first, np.random.Generator):  # saved parts share none: the second is a child
        last = int(np.random.SeedSequence(first).spawn(1)[0].generate_state(1)[0])
    before, since = (
        replace(settings, schedule=part, random_state=seed) if part else None
        for part, seed in zip(settings.split_phases(at), (first, last), strict=True)
    )
    if after is None or since is None:
        return before, since
    if after.n_steps != since.n_steps:
        raise ValueError(
            f"`after` must have the {since.n_steps} steps that `settings` have left, got "
            f"{after.n_steps}"
        )
    return before, replace(after, random_state=since.random_state)


def _shifted(callback: Callback | None, by: int, total: int) -> Callback | None:
    if callback is None:
        return None
    return lambda step, n_steps, log_loss: callback(by + step, total, log_loss)
