"""Training by (stochastic) gradient descent of any network with frozen gates.

The trainer knows no formulation: with a prediction it shares data and gating, nothing else.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from implicit_bias.losses import get_loss, log_mean_loss, log_mean_loss_gradient, mean_loss_gradient
from implicit_bias.trajectory import Trajectory

__all__ = ["GatedData", "TrainingSettings", "Trajectory", "place_data", "train"]

Array = NDArray[np.float64]
Inputs = ArrayLike | Tensor
Callback = Callable[[int, int, float], None]

# Enough for a smooth progress bar; each report costs one forward pass over the training set.
_N_REPORTS = 100


@dataclass(frozen=True)
class TrainingSettings:
    r"""How to train; the defaults are those of the published GLN experiment (seed 004, A.2).

    Parameters
    ----------
    loss : {"logistic", "exponential"}
    batch_size : int or None
        Samples a step: each epoch is a new permutation cut into batches, the last one as small as
        it falls. None: the full training set, every step.
    schedule : tuple of (steps, learning rate)
        Phases, one after the other.
    momentum : float
        Heavy-ball momentum in [0, 1).
    normalise : bool
        Follow the gradient of the logarithm of the mean loss,
        :math:`d\theta/ds = -\nabla\ell/\ell`: gradient flow in rescaled time, which goes on where
        the loss has long underflowed. Full batch only: batches that each divide by a loss of
        their own weigh samples differently and have another limit.
    n_checkpoints : int
        Rows of the trajectory at most, spaced logarithmically, the first and last step included.
    random_state : int or numpy Generator
        Order of the mini-batches; drawn on the CPU, so the same for every device.

    Raises
    ------
    ValueError
        If a setting is out of its range.
    """

    loss: str = "logistic"
    batch_size: int | None = 128
    schedule: tuple[tuple[int, float], ...] = ((1600, 0.04), (1600, 0.01))
    momentum: float = 0.0
    normalise: bool = False
    n_checkpoints: int = 40
    random_state: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        get_loss(self.loss)
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1 or None, got {self.batch_size}")
        if self.normalise and self.batch_size is not None:
            raise ValueError(
                "`normalise` divides by the loss over all samples, so it needs batch_size=None "
                f"(full batch), got batch_size={self.batch_size}"
            )
        phases = tuple((int(steps), float(rate)) for steps, rate in self.schedule)
        if not phases or not all(steps > 0 and 0 < rate < math.inf for steps, rate in phases):
            raise ValueError(
                "`schedule` must be pairs (steps, learning rate), at least one, all numbers "
                f"positive and finite, got {self.schedule}"
            )
        object.__setattr__(self, "schedule", phases)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"`momentum` must lie in [0, 1), got {self.momentum}")
        if self.n_checkpoints < 2:
            raise ValueError(f"`n_checkpoints` must be at least 2, got {self.n_checkpoints}")

    @property
    def n_steps(self) -> int:
        """Number of gradient steps of all phases together."""
        return sum(steps for steps, _ in self.schedule)

    def checkpoints(self) -> list[int]:
        """Return the increasing steps at which a trajectory has a row, 0 and `n_steps` among them.

        Spaced logarithmically, since directions converge like 1 / log(step).
        """
        spaced = np.geomspace(self.n_steps, 1, self.n_checkpoints - 1).round().astype(int)
        return sorted({0, self.n_steps, *spaced.tolist()})


class GatedData(NamedTuple):
    """Inputs (n, D), labels (n,) and gates (n, ...) as tensors where a network wants them."""

    X: Tensor
    y: Tensor
    gates: Tensor | None

    def take(self, index: Tensor) -> "GatedData":
        """Return the samples with these indices."""
        gates = None if self.gates is None else self.gates[index]
        return GatedData(self.X[index], self.y[index], gates)


def train(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None,
    *,
    settings: TrainingSettings | None = None,
    monitor: tuple[Inputs, Inputs | None] | None = None,
    callback: Callback | None = None,
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

    Returns
    -------
    Trajectory
        After a KeyboardInterrupt up to the last step done, with ``finished=False``. An interrupt
        may fall between the updates of two layers.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite or a label is not in {-1, +1}.
    FloatingPointError
        If the loss is not finite at a checkpoint: the run diverged.
    """
    settings = TrainingSettings() if settings is None else settings
    data = place_data(network, X, y, gates)
    watched = None if monitor is None else place_data(network, monitor[0], None, monitor[1])
    recorder = _Recorder(network, data, watched, settings.loss)
    rows = set(settings.checkpoints())
    reports = set(rows)
    if callback is not None:
        reports |= set(np.linspace(0, settings.n_steps, _N_REPORTS + 1).round().astype(int))
    descent = _Descent(network, settings)
    rng = np.random.default_rng(settings.random_state)
    done, rate = 0, settings.schedule[0][1]

    def report() -> None:
        log_loss = recorder.measure(done, rate, keep=done in rows)
        if callback is not None:
            callback(done, settings.n_steps, log_loss)

    try:
        report()
        batches = _batches(data, settings.batch_size, rng)
        for step, rate in enumerate(_rates(settings), start=1):
            descent.step(next(batches), rate)
            done = step
            if step in reports:
                report()
    except KeyboardInterrupt:
        if done != recorder.last_step:
            recorder.measure(done, rate, keep=True)
    return recorder.trajectory(finished=done == settings.n_steps)


class _Descent:
    """Heavy-ball gradient descent on the mean loss or on its logarithm."""

    def __init__(self, network: torch.nn.Module, settings: TrainingSettings) -> None:
        self._network = network
        self._parameters = _trained(network)
        # Detached tensors share memory with the parameters and may be changed without autograd.
        self._weights = [p.detach() for p in self._parameters]
        self._momentum = settings.momentum
        self._velocity = [torch.zeros_like(w) for w in self._weights] if settings.momentum else []
        self._kind = settings.loss
        self._gradient = log_mean_loss_gradient if settings.normalise else mean_loss_gradient

    def step(self, batch: GatedData, rate: float) -> None:
        scores = self._network(batch.X, batch.gates)
        in_margins = self._gradient(batch.y * scores.detach(), self._kind)
        directions = torch.autograd.grad(scores, self._parameters, batch.y * in_margins)
        if self._momentum:
            for v, g in zip(self._velocity, directions, strict=True):
                v.mul_(self._momentum).add_(g)
            directions = tuple(self._velocity)
        for w, g in zip(self._weights, directions, strict=True):
            w.sub_(g, alpha=rate)


class _Recorder:
    """Measures the network on the whole training set and keeps the rows of the trajectory."""

    def __init__(
        self, network: torch.nn.Module, data: GatedData, watched: GatedData | None, kind: str
    ) -> None:
        self._network, self._data, self._watched, self._kind = network, data, watched, kind
        self._rows: list[_Row] = []
        self._start = time.perf_counter()

    @property
    def last_step(self) -> int:
        return self._rows[-1].step if self._rows else -1

    def measure(self, step: int, rate: float, *, keep: bool) -> float:
        with torch.no_grad():
            margins = (self._data.y * self._network(self._data.X, self._data.gates)).double()
            log_loss = float(log_mean_loss(margins, self._kind))
            if not math.isfinite(log_loss):
                raise FloatingPointError(
                    f"training diverged: the loss is {log_loss} at step {step} (learning rate "
                    f"{rate:g}; {self._since()}): use a smaller learning rate or smaller initial "
                    "weights"
                )
            if keep:
                self._rows.append(self._row(step, log_loss, float(margins.min())))
        return log_loss

    def _since(self) -> str:
        if not self._rows:
            return "from the start"
        return f"finite at step {self.last_step}"

    def _row(self, step: int, log_loss: float, smallest_margin: float) -> "_Row":
        norms = np.empty(0)
        unit_norms = getattr(self._network, "unit_norms", None)
        if unit_norms is not None:
            norms = _to_numpy(unit_norms())
        total = float(norms.sum()) or math.nan
        log_sum = log_loss + math.log(len(self._data.y))
        scores = np.empty(0)
        if self._watched is not None:
            scores = _to_numpy(self._network(self._watched.X, self._watched.gates))
        weight_norm = math.hypot(*(float(w.double().norm()) for w in _trained(self._network)))
        with np.errstate(over="ignore"):
            loss = float(np.exp(log_loss))
        seconds = time.perf_counter() - self._start
        return _Row(
            step, loss, log_loss, smallest_margin, smallest_margin / total, -log_sum / total,
            weight_norm, norms, scores, seconds,
        )  # fmt: skip

    def trajectory(self, *, finished: bool) -> Trajectory:
        columns = zip(*self._rows, strict=True)
        arrays = {name: np.array(c) for name, c in zip(_Row._fields, columns, strict=True)}
        return Trajectory(**arrays, finished=finished)


class _Row(NamedTuple):
    step: int
    loss: float
    log_loss: float
    smallest_margin: float
    normalised_margin: float
    smooth_margin: float
    weight_norm: float
    unit_norms: Array
    scores: Array
    seconds: float


def place_data(
    network: torch.nn.Module, X: Inputs, y: Inputs | None, gates: Inputs | None
) -> GatedData:
    """Check data and move them to the dtype and device of the network's weights.

    Without labels (`y` None) ones stand in for them.

    Floating-point gates take the dtype too, integer ones (contexts) keep theirs; a network with a
    method ``prepare(gates)`` has the last word on them.

    Raises
    ------
    ValueError
        If shapes disagree, a value is not finite, a label is not in {-1, +1}, or the network has
        no weights to train.
    """
    weight = _trained(network)[0]
    inputs = _tensor(X).to(weight)
    if inputs.ndim != 2 or len(inputs) == 0 or not bool(torch.isfinite(inputs).all()):
        raise ValueError(
            "`X` must be finite, of shape (n, D) with n >= 1, got shape "
            f"{tuple(inputs.shape)}: look for NaN and infinite entries"
        )
    n = len(inputs)
    labels = weight.new_ones(n) if y is None else _tensor(y).to(weight)
    if tuple(labels.shape) != (n,) or not bool((labels.abs() == 1).all()):
        raise ValueError(
            f"`y` must have shape ({n},) and values in {{-1, +1}}, got shape "
            f"{tuple(labels.shape)}: one label a row of X; map two classes with 2 * (y == a) - 1"
        )
    if gates is None:
        return GatedData(inputs, labels, None)
    placed = _tensor(gates)
    if placed.ndim == 0 or len(placed) != n:
        raise ValueError(
            f"`gates` must have {n} rows, got shape {tuple(placed.shape)}: one a row of X"
        )
    placed = placed.to(weight) if placed.is_floating_point() else placed.to(weight.device)
    prepare = getattr(network, "prepare", None)
    return GatedData(inputs, labels, placed if prepare is None else prepare(placed))


def _batches(
    data: GatedData, batch_size: int | None, rng: np.random.Generator
) -> Iterator[GatedData]:
    n = len(data.y)
    if batch_size is None or batch_size >= n:
        yield from itertools.repeat(data)
        return
    while True:
        order = torch.from_numpy(rng.permutation(n)).to(data.y.device)
        for index in torch.split(order, batch_size):
            yield data.take(index)


def _rates(settings: TrainingSettings) -> Iterator[float]:
    return itertools.chain.from_iterable(itertools.repeat(r, k) for k, r in settings.schedule)


def _trained(network: torch.nn.Module) -> list[torch.nn.Parameter]:
    parameters = [p for p in network.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("`network` has no parameter with requires_grad=True: nothing to train")
    return parameters


def _tensor(values: Inputs) -> Tensor:
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))


def _to_numpy(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()
