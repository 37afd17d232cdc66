"""The loop: steps, checkpoints, reports, interruption, one network or many."""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .batches import Batches
from .data import Inputs, place_data
from .recorder import Observer, Recorder
from .settings import TrainingSettings
from .stacked import OneRun, Runs, StackedRuns
from .state import RunState
from .threads import fitting_threads
from .trainers import check_trainer, get_trainer
from .trajectory import Trajectory

__all__ = ["Callback", "Observer", "train", "train_many"]

Callback = Callable[[int, int, float], None]
Monitor = tuple[Inputs, Inputs | None]

# Enough for a smooth progress bar; each report costs one forward pass over the training set.
_N_REPORTS = 100
# Seconds of work that a run may lose to a machine that stops.
_SAVE_EVERY = 30.0


def train(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None,
    *,
    settings: TrainingSettings | None = None,
    monitor: Monitor | None = None,
    callback: Callback | None = None,
    observer: Observer | None = None,
    state: Path | None = None,
    resume: bool = False,
) -> Trajectory:
    """Train `network` in place and return the trajectory of the run.

    Parameters
    ----------
    network : Module
        ``network(X, gates)`` gives scores (n,). Used where it has them: ``prepare(gates)``, called
        once, and ``unit_norms()``. Its weights are changed; data move to its dtype and device.
    X : (n, D)
        Inputs, NumPy or torch.
    y : (n,)
        Labels in {-1, +1}.
    gates : (n, ...) or None
        What the network's gates do on each sample, contexts for instance; never changed.
    settings : TrainingSettings, optional
    monitor : (inputs, gates), optional
        Further data whose scores enter the trajectory.
    callback : callable, optional
        ``callback(step, n_steps, log_loss)`` at every checkpoint and about 100 times in between.
    observer : callable, optional
        ``observer(network)`` returns numbers and arrays by name, measured at every checkpoint;
        they become ``trajectory.observed``. One that remembers has ``state_dict()`` and
        ``load_state_dict(state)``, arrays by name, for runs that are resumed.
    state : path, optional
        File in which the run keeps what it takes to go on: written at checkpoints, every half
        minute, and when it is interrupted.
    resume : bool
        Go on from `state`, which must be of the same settings, data and monitor, with `network`
        as it was at the start, or as that run left it. On the CPU, with as many threads, the
        result is that of a run that never stopped, to the bit, seconds apart.

    Returns
    -------
    Trajectory
        After a KeyboardInterrupt up to the last step done, with ``finished=False``.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, a label is not in {-1, +1}, or there is nothing
        fitting to resume, or the network is not of the kind that the trainer is for.
    FloatingPointError
        If the loss is not finite at a checkpoint: the run diverged.
    KeyboardInterrupt
        After a second Ctrl-C, which does not wait for a step to end: weights may be halfway
        through it, `state` is what was kept last.
    """
    settings = TrainingSettings() if settings is None else settings
    run = _Loop(OneRun(network), X, y, gates, settings, monitor, [observer])
    keeper = None if state is None else run.keeper(state)
    if resume:
        if keeper is None:
            raise ValueError("`resume` needs `state`, the file that the run was kept in")
        run.restore(keeper)
    trajectory = run.go(settings.schedule, callback, keeper)[0]
    if run.failures[0] is not None:
        raise FloatingPointError(run.failures[0])
    return trajectory


def train_many(
    networks: Sequence[torch.nn.Module],
    X: Inputs,
    y: Inputs,
    gates: Inputs | None,
    *,
    settings: TrainingSettings | Sequence[TrainingSettings] | None = None,
    monitor: Monitor | None = None,
    callback: Callback | None = None,
    observers: Sequence[Observer] | None = None,
) -> list[Trajectory]:
    """Train networks that differ in weights or learning rates as one batched computation.

    Parameters
    ----------
    networks : sequence of Module
        Of one class, with weights of the same shapes; trained in place.
    X, y, gates, monitor : as in `train`, the same for all networks.
    settings : TrainingSettings or one a network, optional
        One a network may differ in learning rates alone.
    callback : callable, optional
        As in `train`, with the largest loss.
    observers : sequence of callables, optional
        One a network.

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
        As `train` does; if networks or settings cannot go together.
    FloatingPointError
        If every run diverged, or a network has no finite loss to begin with.
    KeyboardInterrupt
        After a second Ctrl-C: weights are those of the last report.
    """
    if len(networks) == 0:
        raise ValueError("`networks` is empty: there is nothing to train")
    each = [settings or TrainingSettings()] if not isinstance(settings, Sequence) else settings
    each = list(each) * (len(networks) if len(each) == 1 else 1)
    if len(each) != len(networks):
        raise ValueError(
            f"got {len(each)} settings for {len(networks)} networks: give one, or one for each"
        )
    observing = [None] * len(networks) if observers is None else list(observers)
    if len(observing) != len(networks):
        raise ValueError(
            f"got {len(observing)} observers for {len(networks)} networks: give one for each"
        )
    schedule = _stacked_schedule(each, networks[0])
    run = _Loop(StackedRuns(networks), X, y, gates, each[0], monitor, observing)
    trajectories = run.go(schedule, callback, None)
    if all(failure is not None for failure in run.failures):
        raise FloatingPointError(str(run.failures[0]))
    return trajectories


def _stacked_schedule(
    settings: Sequence[TrainingSettings], network: torch.nn.Module
) -> tuple[tuple[int, float | Tensor | None], ...]:
    """The schedule of all runs, with rates (B,) where they differ."""
    first = settings[0]
    for other in settings[1:]:
        steps = [[phase[0] for phase in s.schedule] for s in (first, other)]
        alike = steps[0] == steps[1] and other.automatic == first.automatic
        if not alike or replace(other, schedule=first.schedule) != first:
            raise ValueError(
                "settings of networks that train as one may differ in learning rates alone, all of "
                f"them numbers or all None, got {first} and {other}"
            )
    phases: list[tuple[int, float | Tensor | None]] = []
    for parts in zip(*(s.schedule for s in settings), strict=True):
        rates = [rate for _, rate in parts]
        if len(set(rates)) == 1:
            phases.append((parts[0][0], rates[0]))
        else:
            device = next(network.parameters()).device
            phases.append((parts[0][0], torch.tensor(rates, dtype=torch.float64, device=device)))
    return tuple(phases)


class _Loop:
    """A run of one network or of several side by side."""

    def __init__(
        self,
        runs: Runs,
        X: Inputs,
        y: Inputs,
        gates: Inputs | None,
        settings: TrainingSettings,
        monitor: Monitor | None,
        observers: Sequence[Observer | None],
    ) -> None:
        self._runs, self._settings = runs, settings
        # Whether an interrupt now would leave weights, rows and batches of one and the same step.
        self._whole = False
        first = runs.networks[0]
        self.data = place_data(first, X, y, gates)
        watched = None if monitor is None else place_data(first, monitor[0], None, monitor[1])
        self._watched = watched
        self._recorders = [
            Recorder(network, self.data, watched, settings.loss, observer)
            for network, observer in zip(runs.networks, observers, strict=True)
        ]
        self.failures: list[str | None] = [None] * len(runs.networks)
        check_trainer(settings.trainer, first)
        self._stepper = get_trainer(settings.trainer).make(runs, settings, len(self.data.y))
        self._batches = Batches(self.data, settings.batch_size, settings.random_state)
        self._done, self._seconds_before = 0, 0.0

    def keeper(self, path: Path) -> RunState:
        """What keeps this run, not yet begun, in a file."""
        samples = [self.data] if self._watched is None else [self.data, self._watched]
        return RunState(path, self._settings, samples, self._runs.networks[0], self._runs.weights)

    def restore(self, keeper: RunState) -> None:
        """Take up a run where `keeper` left it."""
        saved = keeper.read(self._runs.weights, self._stepper.state)
        for weight, value in zip(self._runs.weights, saved.weights, strict=True):
            weight.copy_(value)
        self._stepper.state = saved.stepper
        self._batches.state = saved.batches
        self._recorders[0].rows = saved.rows
        self._recorders[0].restore_observer(saved.observer)
        self._done, self._seconds_before = saved.step, saved.seconds

    def go(
        self,
        schedule: Sequence[tuple[int, float | Tensor | None]],
        callback: Callback | None,
        keeper: RunState | None,
    ) -> list[Trajectory]:
        settings, n_steps = self._settings, self._settings.n_steps
        rows = set(settings.checkpoints())
        reports = set(rows)
        if callback is not None or keeper is not None:
            reports |= set(np.linspace(0, n_steps, _N_REPORTS + 1).round().astype(int).tolist())
        self._start = self._saved_at = time.perf_counter()
        rates = itertools.chain.from_iterable(itertools.repeat(r, k) for k, r in schedule)
        rate: float | Tensor | None = None
        try:
            with (
                fitting_threads(self._runs, self._batches.size),
                _interrupts_between_steps() as check,
            ):
                if not self._recorders[0].rows:
                    self._report(rate, rows, callback, keeper)
                    self._refuse_failures()
                self._whole = True
                check()
                for step, rate in enumerate(rates, start=1):
                    if step <= self._done:
                        continue
                    self._whole = False
                    self._stepper.step(self._batches.next(), rate)
                    self._done = step
                    if step in reports or (keeper is not None and self._late()):
                        self._report(rate, rows, callback, keeper)
                        if all(failure is not None for failure in self.failures):
                            break
                    self._whole = True
                    check()
        except KeyboardInterrupt:
            if not self._whole:
                raise
            self._runs.write_back()
            if keeper is not None and math.isfinite(self._measure(0, keep=False)):
                self._keep(keeper)
            for b, recorder in enumerate(self._recorders):
                if self._done != recorder.last_step and self.failures[b] is None:
                    self._measure(b, keep=True)
        self._runs.write_back()
        finished = self._done == n_steps
        return [
            recorder.trajectory(finished=finished and failure is None)
            for recorder, failure in zip(self._recorders, self.failures, strict=True)
        ]

    def _refuse_failures(self) -> None:
        """Without a finite loss there is nothing to descend, nor a row to return."""
        for failure in self.failures:
            if failure is not None:
                raise FloatingPointError(failure)

    def _late(self) -> bool:
        return time.perf_counter() - self._saved_at > _SAVE_EVERY

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._start

    def _measure(self, run: int, *, keep: bool) -> float:
        return self._recorders[run].measure(self._done, self._seconds(), keep=keep)

    def _report(
        self,
        rate: float | Tensor | None,
        rows: set[int],
        callback: Callback | None,
        keeper: RunState | None,
    ) -> None:
        self._runs.write_back()
        losses = []
        for b, recorder in enumerate(self._recorders):
            if self.failures[b] is not None:
                continue
            loss = self._measure(b, keep=self._done in rows)
            if math.isfinite(loss):
                losses.append(loss)
            else:
                self.failures[b] = _divergence(loss, self._done, rate, b, recorder.last_step)
        if keeper is not None and losses and (self._done in rows or self._late()):
            self._keep(keeper)
        self._whole = True
        if callback is not None and losses:
            callback(self._done, self._settings.n_steps, max(losses))

    def _keep(self, keeper: RunState) -> None:
        keeper.write(
            step=self._done,
            seconds=self._seconds(),
            weights=self._runs.weights,
            stepper=self._stepper.state,
            batches=self._batches.state,
            rows=self._recorders[0].rows,
            observer=self._recorders[0].observer_state(),
        )
        self._saved_at = time.perf_counter()


def _divergence(
    loss: float, step: int, rate: float | Tensor | None, run: int, last_step: int
) -> str:
    since = f"finite at step {last_step}" if last_step >= 0 else "from the start"
    own = float(rate[run]) if isinstance(rate, Tensor) else rate
    given = "" if own is None else f"learning rate {own:g}; "
    return (
        f"training diverged: the loss is {loss} at step {step} ({given}{since}): use a smaller "
        "learning rate or smaller initial weights"
    )


@contextlib.contextmanager
def _interrupts_between_steps() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until the function that this yields is called: weights are whole then.

    A second Ctrl-C is not held back. Nothing is where no signal would interrupt: outside the main
    thread, or in a process that ignores them.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield lambda: None
        return
    pressed = False

    def hold(number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hold)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, usual)
