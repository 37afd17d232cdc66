"""A run: steps, checkpoints, reports, interruption, of one network or several side by side."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from .batches import Batches
from .data import GatedData
from .recorder import Observer, Recorder
from .settings import TrainingSettings
from .stacked import Rate, Runs
from .state import RunState
from .threads import fitting_threads
from .trainers import make_stepper
from .trajectory import Trajectory

__all__ = ["Callback", "Run", "Samples"]

log = logging.getLogger(__name__)

Callback = Callable[[int, int, float], None]
Samples = tuple[GatedData, GatedData | None]  # those of training, and those that are watched

# Enough for a smooth progress bar; each report costs one forward pass over the training set.
_N_REPORTS = 100
# Seconds of work that a run may lose to a machine that stops.
_SAVE_EVERY = 30.0


class Run:
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
        # Copies: sums of products may be rounded otherwise where memory is aligned otherwise.
        self._stepper.state = {name: value.clone() for name, value in saved.stepper.items()}
        self._batches.state = saved.batches
        self._recorders[0].rows = saved.rows
        self._recorders[0].restore_observer(saved.observer)
        self._done, self._seconds_before = saved.step, saved.seconds
        log.info("training goes on at step %d of %d", saved.step, self._settings.n_steps)

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
