"""A training run: steps, checkpoints, reports and interruption, of one network or several."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .._support.solve import THREADS, few_threads
from ..networks.losses.margins import n_margins
from ..networks.placed_data import GatedData
from .batches import Batches
from .network_stack import NetworkStack, Rate, refuse_autocast
from .run_file import RunFile, RunState
from .settings import TrainingSettings
from .trainers import make_stepper
from .trajectory import Trajectory
from .trajectory_recorder import Observer, TrajectoryRecorder

log = logging.getLogger(__name__)

# Multiplications of a forward pass below which a second thread gains nothing worth having, and
# loses much on a machine with other work: threads that wait for one another spin meanwhile.
SMALL_STEP = 3e7

Callback = Callable[[int, int, float], None]
Samples = tuple[GatedData, GatedData | None]  # training samples, and held-out ones

# Enough for a smooth progress bar; each report costs one forward pass over the training set.
_N_REPORTS = 100


class TrainingRun:
    """A training run of one network or of several side by side.

    Parameters
    ----------
    stack : NetworkStack
    samples : pair of GatedData, the second one or None
    settings : TrainingSettings
    observers : sequence of callables or None
        One a network.
    save_every : float
        Seconds between two checkpoints after which the run is saved.

    Attributes
    ----------
    failures : list of str or None
        One a network: why its run ended, where it has diverged.
    """

    def __init__(
        self,
        stack: NetworkStack,
        samples: Samples,
        settings: TrainingSettings,
        observers: Sequence[Observer | None],
        *,
        save_every: float = math.inf,
    ) -> None:
        refuse_autocast(stack.weights)
        self._stack, self._samples, self._settings = stack, samples, settings
        data = samples[0]
        self._recorders = [
            TrajectoryRecorder(network, samples, settings.loss, observer)
            for network, observer in zip(stack.networks, observers, strict=True)
        ]
        self.failures: list[str | None] = [None] * len(stack.networks)
        self._stepper = make_stepper(stack, settings, n_margins(data.y))
        self._batches = Batches(data, settings.batch_size, settings.random_state)
        self._rows = set(settings.checkpoints())
        self._done, self._seconds_before = 0, 0.0
        self._save_every = save_every
        self._made_by = _made_by(stack, self._batches.size)
        self._lost = False  # the last attempt to save it failed

    def file(self, path: Path) -> RunFile:
        """Return the file in which this run, not yet begun, is saved."""
        samples = [sample for sample in self._samples if sample is not None]
        stack = self._stack
        return RunFile(path, self._settings, samples, stack.networks[0], stack.weights)

    def restore(self, file: RunFile) -> None:
        """Go on from what was saved in `file`."""
        saved = file.read(self._stack.weights, self._stepper.state)
        for weight, value in zip(self._stack.weights, saved.weights, strict=True):
            weight.copy_(value)
        # Copies: sums of products may be rounded otherwise where memory is aligned otherwise.
        self._stepper.state = {name: value.clone() for name, value in saved.stepper.items()}
        self._batches.state = saved.batches
        for b, recorder in enumerate(self._recorders):
            recorder.rows = saved.rows[b]
            recorder.restore_observer(saved.observers[b])
        self.failures = saved.failures
        self._done, self._seconds_before = saved.step, saved.seconds
        log.info("training goes on at step %d of %d", saved.step, self._settings.n_steps)
        changed = [
            f"{name} {saved.made_by.get(name, 'unknown')} then, {now} now"
            for name, now in self._made_by.items()
            if saved.made_by.get(name) != now
        ]
        if changed:
            log.warning(
                "the run goes on otherwise than it began (%s): it ends as if it had never stopped "
                "up to rounding, and no longer to the bit", "; ".join(changed),
            )  # fmt: skip

    def train(
        self,
        schedule: Sequence[tuple[int, Rate]],
        callback: Callback | None,
        check: Callable[[], None],
        file: RunFile | None = None,
    ) -> list[Trajectory]:
        """Descend to the end of the schedule, or until all networks diverged or `check` raises.

        Parameters
        ----------
        schedule : sequence of (steps, rate)
        callback : callable or None
            ``callback(step, n_steps, log_loss)`` at reports, with the largest log(loss);
            StopIteration ends the run, as an interrupt does.
        check : callable
            Called between steps; raises KeyboardInterrupt where training is to end.
        file : RunFile, optional
            Where the run is saved.
        """
        self._check_rates(schedule)
        self._callback, self._check, self._file = callback, check, file
        self._start = self._saved_at = time.perf_counter()
        with few_threads(_threads_for(self._stack, self._batches.size)):
            self._descend(schedule)
            self._stepper.settle()
        self._stack.write_back()
        finished = self._done == self._settings.n_steps
        return [
            recorder.trajectory(
                finished=finished and failure is None,
                stopped="" if failure is not None else self._stopped(recorder),
            )
            for recorder, failure in zip(self._recorders, self.failures, strict=True)
        ]

    def _check_rates(self, schedule: Sequence[tuple[int, Rate]]) -> None:
        """Raise FloatingPointError for a rate that overflows in the dtype of the weights."""
        narrow = min((w.dtype for w in self._stack.weights), key=lambda d: torch.finfo(d).max)
        largest = torch.finfo(narrow).max
        for _, rate in schedule:
            if isinstance(rate, float) and rate > largest:
                raise FloatingPointError(
                    f"the learning rate {rate:g} is above the largest number of {narrow} weights, "
                    f"{largest:.3g}: use a smaller learning rate"
                )

    def _stopped(self, recorder: TrajectoryRecorder) -> str:
        """Return why a network stands still, and warn of one that is stuck; empty otherwise."""
        stop = recorder.stop(self._settings)
        if stop is None:
            return ""
        if stop.stuck and not self._stepper.stopped:
            log.warning("training has stopped: %s", stop.text)
        return stop.text

    def _descend(self, schedule: Sequence[tuple[int, Rate]]) -> None:
        reports = self._reports()
        rates = itertools.chain.from_iterable(itertools.repeat(r, k) for k, r in schedule)
        going = self._between_steps(None, report=not self._recorders[0].rows)
        for rate in itertools.islice(rates, self._done, None):
            if not going:
                break
            self._stepper.step(self._batches.next(), rate)
            self._done += 1
            due = self._file is not None and self._save_due()
            going = self._between_steps(rate, report=due or self._done in reports)

    def _reports(self) -> set[int]:
        """The steps at which losses are measured: those of the rows, and some in between."""
        wanted = self._rows.union(*(recorder.seen for recorder in self._recorders))
        if self._callback is None and self._file is None:
            return wanted
        spaced = np.linspace(0, self._settings.n_steps, _N_REPORTS + 1).round().astype(int)
        return wanted.union(spaced.tolist())

    def _between_steps(self, rate: Rate, *, report: bool) -> bool:
        """Report, and check for interrupts; return whether to go on.

        Weights, rows and batches are those of one and the same step here, so that an interrupt
        leaves a run that can be saved and shown.
        """
        if report:
            self._stepper.settle()
        losses = self._report(rate) if report else []
        if all(failure is not None for failure in self.failures):
            return False
        try:
            if losses and self._callback is not None:
                self._callback(self._done, self._settings.n_steps, max(losses))
            self._check()
        except (KeyboardInterrupt, StopIteration):
            self._stop()
            return False
        return True

    def _stop(self) -> None:
        """Save the run as it is, and add a last row."""
        self._stepper.settle()
        self._stack.write_back()
        going = [b for b, failure in enumerate(self.failures) if failure is None]
        losses = {b: self._measure(b, keep=False) for b in going if self._file is not None}
        diverged = any(self._recorders[b].diverged(loss) for b, loss in losses.items())
        if self._file is not None and not diverged:
            self._save(self._file)
        for b in going:
            if self._done != self._recorders[b].last_step:
                self._measure(b, keep=True)

    def _save_due(self) -> bool:
        return time.perf_counter() - self._saved_at > self._save_every

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._start

    def _measure(self, b: int, *, keep: bool) -> float:
        return self._recorders[b].measure(self._done, self._seconds(), keep=keep)

    def _report(self, rate: Rate) -> list[float]:
        """Measure log(loss) of the networks that still descend, and save the run if that is due."""
        self._stack.write_back()
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
        if self._file is not None and losses and (self._done in self._rows or self._save_due()):
            self._save(self._file)
        return losses

    def _save(self, file: RunFile) -> None:
        """Save the run; a full disk does not end it."""
        state = RunState(
            step=self._done,
            seconds=self._seconds(),
            weights=self._stack.weights,
            stepper=self._stepper.state,
            batches=self._batches.state,
            rows=[recorder.rows for recorder in self._recorders],
            observers=[recorder.observer_state() for recorder in self._recorders],
            failures=self.failures,
            made_by=self._made_by,
        )
        try:
            file.write(state)
            self._lost = False
        except OSError as error:
            if not self._lost:
                log.warning(
                    "the run could not be saved at step %d (%s): training goes on, and tries to "
                    "save it again later", self._done, error,
                )  # fmt: skip
            self._lost = True
        self._saved_at = time.perf_counter()


def _made_by(stack: NetworkStack, n_samples: int) -> dict[str, str]:
    """On what rounding depends beside a run itself."""
    return {
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": str(_threads_for(stack, n_samples)),
        "device": stack.weights[0].device.type,
        "processor": torch.backends.cpu.get_cpu_capability(),
    }


def _divergence(loss: float, step: int, rate: Rate, b: int, last_step: int) -> str:
    """The message for network b, whose loss diverged."""
    since = f"finite at step {last_step}" if last_step >= 0 else "from the start"
    own = float(rate[b]) if isinstance(rate, Tensor) else rate
    given = "" if own is None else f"learning rate {own:g}; "
    with np.errstate(over="ignore"):
        shown = loss if not math.isfinite(loss) else float(np.exp(loss))
    what = (
        "the norm of weights or loss overflows" if math.isnan(shown) else f"the loss is {shown:g}"
    )
    return (
        f"training diverged: {what} at step {step} ({given}{since}): use a smaller learning rate "
        "or smaller initial weights"
    )


def _threads_for(stack: NetworkStack, n_samples: int) -> int:
    """Return the threads of torch for steps of `n_samples`: one on the CPU where they are small."""
    work = n_samples * sum(w.numel() for w in stack.weights)
    small = stack.weights[0].device.type == "cpu" and work <= SMALL_STEP
    return 1 if small else THREADS.limit_of("torch", torch.get_num_threads())
