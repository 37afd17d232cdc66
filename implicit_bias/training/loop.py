"""The loop: steps, checkpoints, reports, interruption, one network or many."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .batches import Batches
from .data import GatedData, Inputs, place_data
from .interrupts import interrupts_held
from .recorder import Observer, Recorder
from .settings import TrainingSettings
from .stacked import OneRun, Rate, Runs, StackedRuns, stacked_schedule
from .state import RunState
from .threads import fitting_threads
from .trainers import make_stepper
from .trajectory import Trajectory

__all__ = ["Callback", "Observer", "train", "train_many"]

Callback = Callable[[int, int, float], None]
Monitor = tuple[Inputs, Inputs | None]
Samples = tuple[GatedData, GatedData | None]  # those of training, and those that are watched

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
        ``network(X, gates)`` gives scores (n,). What else it may have is written down in
        `training.network`. Its weights are changed; data move to its dtype and device.
    X : (n, D)
        Inputs, NumPy or torch.
    y : (n,)
        Labels in {-1, +1}; any finite targets for the squared loss.
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
        After Ctrl-C or SIGTERM up to the last step done, the row of the start at least, with
        ``finished=False``.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, a target is not one of the loss, or there is
        nothing fitting to resume, or the network is not of the kind that the trainer is for.
    FloatingPointError
        If the run diverged: the loss is not finite where it is looked at, or the squared loss a
        thousand times what it was.
    KeyboardInterrupt
        After a second signal, which does not wait for a step to end: weights may be halfway
        through it, `state` is what was kept last.
    """
    settings = _checked(settings)
    if resume and state is None:
        raise ValueError("`resume` needs `state`, the file that the run was kept in")
    with interrupts_held() as check:
        samples = _place(network, X, y, gates, monitor, settings.loss)
        run = _Loop(OneRun(network), samples, settings, [observer])
        keeper = None if state is None else run.keeper(state)
        if resume and keeper is not None:
            run.restore(keeper)
        trajectory = run.go(settings.phases, callback, check, keeper)[0]
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
        After a second signal: weights are those of the last report.
    """
    if len(networks) == 0:
        raise ValueError("`networks` is empty: there is nothing to train")
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
    schedule = stacked_schedule(each, networks[0])
    with interrupts_held() as check:
        samples = _place(networks[0], X, y, gates, monitor, each[0].loss)
        run = _Loop(StackedRuns(networks), samples, each[0], observing)
        trajectories = run.go(schedule, callback, check)
    if all(failure is not None for failure in run.failures):
        raise FloatingPointError(str(run.failures[0]))
    return trajectories


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
    monitor: Monitor | None,
    loss: str,
) -> Samples:
    watched = None if monitor is None else place_data(network, monitor[0], None, monitor[1])
    return place_data(network, X, y, gates, loss), watched


class _Loop:
    """A run of one network or of several side by side."""

    def __init__(
        self,
        runs: Runs,
        samples: Samples,
        settings: TrainingSettings,
        observers: Sequence[Observer | None],
    ) -> None:
        self._runs, self._samples, self._settings = runs, samples, settings
        data = samples[0]
        self._recorders = [
            Recorder(network, samples, settings.loss, observer)
            for network, observer in zip(runs.networks, observers, strict=True)
        ]
        self.failures: list[str | None] = [None] * len(runs.networks)
        self._stepper = make_stepper(runs, settings, len(data.y))
        self._batches = Batches(data, settings.batch_size, settings.random_state)
        self._rows = set(settings.checkpoints())
        self._done, self._seconds_before = 0, 0.0

    def keeper(self, path: Path) -> RunState:
        """What keeps this run, not yet begun, in a file."""
        samples = [sample for sample in self._samples if sample is not None]
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
        schedule: Sequence[tuple[int, Rate]],
        callback: Callback | None,
        check: Callable[[], None],
        keeper: RunState | None = None,
    ) -> list[Trajectory]:
        """Descend to the end of the schedule, or until all runs diverged or `check` interrupts."""
        self._callback, self._check, self._keeper = callback, check, keeper
        self._start = self._saved_at = time.perf_counter()
        with fitting_threads(self._runs, self._batches.size):
            self._descend(schedule)
        self._runs.write_back()
        finished = self._done == self._settings.n_steps
        return [
            recorder.trajectory(finished=finished and failure is None)
            for recorder, failure in zip(self._recorders, self.failures, strict=True)
        ]

    def _descend(self, schedule: Sequence[tuple[int, Rate]]) -> None:
        reports = self._reports()
        rates = itertools.chain.from_iterable(itertools.repeat(r, k) for k, r in schedule)
        going = self._pause(None, report=not self._recorders[0].rows)
        for rate in itertools.islice(rates, self._done, None):
            if not going:
                break
            self._stepper.step(self._batches.next(), rate)
            self._done += 1
            late = self._keeper is not None and self._late()
            going = self._pause(rate, report=late or self._done in reports)

    def _reports(self) -> set[int]:
        """The steps at which the run is looked at: those of its rows, and some in between."""
        if self._callback is None and self._keeper is None:
            return self._rows
        spaced = np.linspace(0, self._settings.n_steps, _N_REPORTS + 1).round().astype(int)
        return self._rows.union(spaced.tolist())

    def _pause(self, rate: Rate, *, report: bool) -> bool:
        """Between two steps: report, and listen; whether to go on.

        Weights, rows and batches are those of one and the same step here, so an interrupt that is
        heard here leaves a run that can be kept and shown.
        """
        losses = self._report(rate) if report else []
        if all(failure is not None for failure in self.failures):
            return False
        try:
            if losses and self._callback is not None:
                self._callback(self._done, self._settings.n_steps, max(losses))
            self._check()
        except KeyboardInterrupt:
            self._stop()
            return False
        return True

    def _stop(self) -> None:
        """Keep the run as it is, and give it a last row."""
        self._runs.write_back()
        diverged = self._recorders[0].diverged
        if self._keeper is not None and not diverged(self._measure(0, keep=False)):
            self._keep(self._keeper)
        for b, recorder in enumerate(self._recorders):
            if self._done != recorder.last_step and self.failures[b] is None:
                self._measure(b, keep=True)

    def _late(self) -> bool:
        return time.perf_counter() - self._saved_at > _SAVE_EVERY

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._start

    def _measure(self, run: int, *, keep: bool) -> float:
        return self._recorders[run].measure(self._done, self._seconds(), keep=keep)

    def _report(self, rate: Rate) -> list[float]:
        """Measure the runs that still descend, and keep them; their log(loss)."""
        self._runs.write_back()
        losses = []
        for b, recorder in enumerate(self._recorders):
            if self.failures[b] is not None:
                continue
            loss = self._measure(b, keep=self._done in self._rows)
            if not recorder.diverged(loss):
                losses.append(loss)
                continue
            failure = _divergence(loss, self._done, rate, b, recorder.last_step)
            if not recorder.rows:  # nothing to descend, nor a row to return
                raise FloatingPointError(failure)
            self.failures[b] = failure
        if self._keeper is not None and losses and (self._done in self._rows or self._late()):
            self._keep(self._keeper)
        return losses

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


def _divergence(loss: float, step: int, rate: Rate, run: int, last_step: int) -> str:
    since = f"finite at step {last_step}" if last_step >= 0 else "from the start"
    own = float(rate[run]) if isinstance(rate, Tensor) else rate
    given = "" if own is None else f"learning rate {own:g}; "
    with np.errstate(over="ignore"):
        shown = loss if not math.isfinite(loss) else float(np.exp(loss))
    return (
        f"training diverged: the loss is {shown:g} at step {step} ({given}{since}): use a smaller "
        "learning rate or smaller initial weights"
    )
