"""Training of one network or of many."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from .._support.doors import door
from .._support.kinds import anything
from .._support.words import LossName
from ..networks.adapted import compiled_with_gates, with_gates
from ..networks.placed_data import Inputs, place_data
from .interrupts import deferred_interrupts
from .network_stack import SingleNetwork, StackedNetworks, stacked_schedule
from .run_file import RunFile
from .settings import TrainingSettings
from .training_run import Callback, Samples, TrainingRun
from .trajectory import Trajectory
from .trajectory_recorder import Observer


@door(settings=anything)
def train(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    settings: TrainingSettings | None = None,
    X_val: Inputs | None = None,
    gates_val: Inputs | None = None,
    callback: Callback | None = None,
    observer: Observer | None = None,
    state: Path | None = None,
    save_every: float = 30.0,
    resume: bool = False,
) -> Trajectory:
    """Train `network` in place and return the trajectory of the run.

    Parameters
    ----------
    network : Module
        ``network(X, gates)`` gives scores (n,), or ``network(X)``, where `gates` are None: see the
        protocol `Network`, and `check_network`. Its weights are changed; data move to its dtype and
        device.
    X : (n, D), or (n, ...) as the network takes it
        Inputs, NumPy or torch.
    y : (n,), or (n, K) for the losses "softmax" and "attention"
        Labels in {-1, +1}; any finite targets for the squared loss; soft labels for the
        divergences, of a network of K scores a sample (n, K); scores of K tokens for attention.
    gates : (n, ...) or None
        Gates of the network on each sample, contexts of its units, or queries of `Attention`; never
        changed.
    settings : TrainingSettings, optional
        Gradient method, loss, schedule; by default those of the published GLN experiment.
    X_val, gates_val : (m, D) and (m, ...), optional
        Held-out inputs, and the gates on them, whose scores enter the trajectory.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` at every checkpoint and about 100 times in between.
        ``raise StopIteration`` in it ends the run after this step and keeps what it has come to.
    observer : callable, optional
        ``observer(network)`` returns numbers and arrays by name, measured at every checkpoint;
        they become ``trajectory.observed``. One that depends on earlier measurements has
        ``state_dict()`` and ``load_state_dict(state)``, arrays by name, for runs that are resumed.
        One with a set of `steps` is given the network at these too: ``see(step, network)``.
    state : path, optional
        File in which the run is saved, so that it can be resumed: at checkpoints, between them
        after `save_every` seconds, and when it is interrupted.
    save_every : float
        Seconds of work that may be lost if the machine stops.
    resume : bool
        Go on from `state`, which must be of the same settings, data and held-out inputs, with
        `network` as it was at the start, or as that run left it. The result is that of a run that
        never stopped, seconds apart: on the CPU to the bit, up to rounding where versions, the
        processor or the threads of large steps have changed, which a warning then says.

    Returns
    -------
    Trajectory
        After Ctrl-C, SIGTERM or a StopIteration of the callback up to the last step done, the row
        of the start at least, with ``finished=False``; `state` has the run up to there.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, a target is not one of the loss, there is no
        saved run to resume or another one, or the trainer is not for this kind of network.
    RuntimeError
        Under `torch.autocast`, for weights that are not in float64.
    FloatingPointError
        If the run diverged: the loss is not finite at a report, or the squared loss a thousand
        times its first value.
    KeyboardInterrupt
        After a second signal, which does not wait for a step to end: weights may be halfway
        through it, the file `state` is as it was saved last.

    Examples
    --------
    >>> X, y = [[2.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> network = ib.DeepLinear(2)
    >>> settings = ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    >>> trajectory = ib.train(network, X, y, settings=settings)
    >>> w = network.zeta().detach().numpy()
    >>> (w / np.linalg.norm(w)).round(3).tolist()  # the limit is (1/2, -1)
    [0.447, -0.894]

    Until log(loss) is -5:

    >>> def enough(step, n_steps, log_loss):
    ...     if log_loss < -5:
    ...         raise StopIteration
    >>> trajectory = ib.train(ib.DeepLinear(2), X, y, settings=settings, callback=enough)
    >>> trajectory.finished, bool(trajectory.log_loss[-1] < -5)
    (False, True)
    """
    settings = _checked(settings)
    _check_resumable(state, resume)
    compiled, network = compiled_with_gates(network), with_gates(network)
    with deferred_interrupts() as check:
        samples = _place(network, X, y, gates, (X_val, gates_val), settings.loss)
        run = TrainingRun(
            SingleNetwork(network, compiled), samples, settings, [observer], save_every=save_every
        )
        file = _file(run, state, resume)
        trajectory = run.train(settings.phases, callback, check, file)[0]
    if run.failures[0] is not None:
        raise FloatingPointError(run.failures[0])
    return trajectory


@door(settings=anything)
def train_many(
    networks: Sequence[torch.nn.Module],
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    settings: TrainingSettings | Sequence[TrainingSettings] | None = None,
    X_val: Inputs | None = None,
    gates_val: Inputs | None = None,
    callback: Callback | None = None,
    observers: Sequence[Observer] | None = None,
    state: Path | None = None,
    save_every: float = 30.0,
    resume: bool = False,
) -> list[Trajectory]:
    """Train networks that differ in weights or learning rates as one batched computation.

    Parameters
    ----------
    networks : sequence of Module
        One class, with weights of the same shapes; trained in place.
    X : (n, D), or (n, ...) as the networks take it
        Inputs, NumPy or torch, the same for all networks.
    y : (n,), or (n, K) for the loss "softmax"
        Targets of the loss, as `train` takes them.
    gates : (n, ...) or None
        Gates or contexts of each sample.
    settings : TrainingSettings or a sequence of them, optional
        One for all, or one a network; these may differ in learning rates alone.
    X_val, gates_val : (m, D) and (m, ...), optional
        Held-out inputs, and the gates on them, whose scores enter the trajectories.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` at every checkpoint and about 100 times in between,
        with the largest log(loss). ``raise StopIteration`` in it ends all runs after this step.
    observers : sequence of callables, optional
        One a network: ``observer(network)`` returns numbers and arrays by name at every checkpoint.
    state, save_every, resume : optional
        As `train` takes them; the file holds all networks.

    Returns
    -------
    list of Trajectory
        What `train` returns for each network, up to rounding, since products of several networks
        are summed in another order. Constant steps and "dual" leave it at that. Where a trainer
        finds its own steps a rounding error may tip one of its comparisons: after some tens of
        steps the two runs then take different steps to the same limit. After 400 steps of
        "annealed" directions differed by up to 1e-4 and normalised margins by 2e-5 of themselves
        ("normalised": 1e-4 and 2e-4), log(1 / loss) by 1 %. That of a run that diverged ends at
        its last finite checkpoint, with ``finished=False``; the others go on.

    Raises
    ------
    ValueError
        If `networks` is empty, networks, settings or observers do not fit each other, shapes
        disagree, a value is not finite, a target is not one of the loss, or the trainer is not for
        this kind of network.
    FloatingPointError
        If every run diverged, or a network has no finite loss to begin with.
    KeyboardInterrupt
        After a second signal: weights are those of the last report.

    Examples
    --------
    >>> X, y = [[2.0, 0.0], [0.0, 1.0]], [1.0, -1.0]
    >>> networks = [ib.DeepLinear(2, random_state=seed) for seed in range(3)]
    >>> settings = ib.TrainingSettings(trainer="annealed", schedule=((300, None),))
    >>> trajectories = ib.train_many(networks, X, y, settings=settings)
    >>> [round(float(one.smallest_margin[-1] / one.weight_norm[-1]), 3) for one in trajectories]
    [0.894, 0.894, 0.894]
    """
    _check_resumable(state, resume)
    if len(networks) == 0:
        raise ValueError("`networks` is empty: there is nothing to train")
    if isinstance(settings, Sequence) and (isinstance(settings, str) or None in list(settings)):
        raise TypeError(f"`settings` must be a TrainingSettings each, got {settings!r}")
    several = settings if isinstance(settings, Sequence) else [settings]
    each = [_checked(one) for one in several] * (len(networks) if len(several) == 1 else 1)
    if len(each) != len(networks):
        raise ValueError(
            f"got {len(each)} settings for {len(networks)} networks: give one, or one for each"
        )
    observing = [None] * len(networks) if observers is None else list(observers)
    if len(observing) != len(networks):
        raise ValueError(
            f"got {len(observing)} observers for {len(networks)} networks: give one for each"
        )
    networks = [with_gates(network) for network in networks]
    schedule = stacked_schedule(each, networks[0])
    with deferred_interrupts() as check:
        samples = _place(networks[0], X, y, gates, (X_val, gates_val), each[0].loss)
        one = len(networks) == 1
        stack = SingleNetwork(networks[0]) if one else StackedNetworks(networks)
        run = TrainingRun(stack, samples, each[0], observing, save_every=save_every)
        file = _file(run, state, resume)
        trajectories = run.train(schedule, callback, check, file)
    if all(failure is not None for failure in run.failures):
        raise FloatingPointError(str(run.failures[0]))
    return trajectories


def _check_resumable(state: Path | None, resume: bool) -> None:
    if resume and state is None:
        raise ValueError("`resume` needs `state`, the file that the run was saved in")


def _file(run: TrainingRun, state: Path | None, resume: bool) -> RunFile | None:
    """Return the file that a run is saved in, from which it goes on if that is asked for."""
    file = None if state is None else run.file(state)
    if resume and file is not None:
        run.restore(file)
    return file


def _checked(settings: TrainingSettings | None) -> TrainingSettings:
    if settings is None:
        return TrainingSettings()
    if not isinstance(settings, TrainingSettings):
        raise TypeError(
            f"`settings` must be a TrainingSettings, got {type(settings).__name__}: write "
            "TrainingSettings(**settings) for a dict of its fields"
        )
    return settings


def _place(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None,
    held_out: tuple[Inputs | None, Inputs | None],
    loss: LossName,
) -> Samples:
    X_val, gates_val = held_out
    if X_val is None and gates_val is not None:
        raise ValueError("`gates_val` are gates of `X_val`, which is missing: give both")
    placed = None if X_val is None else place_data(network, X_val, None, gates_val)
    return place_data(network, X, y, gates, loss), placed
