"""Gradient descent on the mean squared error, with the weights kept along the way."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

__all__ = ["RegressionSettings", "RegressionTrajectory", "train_regression"]

Array = NDArray[np.float64]
Inputs = ArrayLike | Tensor
Callback = Callable[[int, int, float], None]

_N_REPORTS = 100


@dataclass(frozen=True)
class RegressionSettings:
    """How to train on the loss ``1/2 <(y - f)^2>``.

    Parameters
    ----------
    learning_rate : float
        A full-batch step of it follows gradient flow with tau = 1 for that much time, and is
        stable below ``2 K^2 / lambda_max(A)`` for K averaged units.
    n_steps : int
    batch_size : int or None
        Samples a step: each epoch is a new permutation cut into batches. None: all of them.
    n_checkpoints : int
        Rows of the trajectory at most, spaced logarithmically, the first and last step included.
    random_state : int or numpy Generator
        Order of the mini-batches.

    Raises
    ------
    ValueError
        If a setting is out of its range.
    """

    learning_rate: float = 2.0
    n_steps: int = 2000
    batch_size: int | None = None
    n_checkpoints: int = 40
    random_state: int | np.random.Generator = 0

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(
                f"`learning_rate` must be positive and finite, got {self.learning_rate}"
            )
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1, got {self.n_steps}")
        if self.batch_size is not None and self.batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1 or None, got {self.batch_size}")
        if self.n_checkpoints < 2:
            raise ValueError(f"`n_checkpoints` must be at least 2, got {self.n_checkpoints}")

    def checkpoints(self) -> list[int]:
        """Return the increasing steps that a trajectory has rows for, 0 and `n_steps` included."""
        spaced = np.geomspace(self.n_steps, 1, self.n_checkpoints - 1).round().astype(int)
        return sorted({0, self.n_steps, *spaced.tolist()})


@dataclass(frozen=True, eq=False)
class RegressionTrajectory:
    """What a training run went through: one entry a checkpoint, read-only float64 arrays.

    Attributes
    ----------
    step : (T,)
        Gradient steps done.
    time : (T,)
        Time of the gradient flow (tau = 1) that as many steps approximate: step times rate.
    loss : (T,)
        ``1/2 <(y - f)^2>`` over the whole training set.
    weights : (T, K, D)
    sign_flips : (T,)
        Share of pairs (sample, unit) whose gate ``<w_k, x_n> >= 0`` differs from that at step 0;
        zeros for a network whose gates are given.
    seconds : (T,)
        Wall-clock time since the start, in seconds.
    finished : bool
        False if training was interrupted.
    """

    step: Array
    time: Array
    loss: Array
    weights: Array
    sign_flips: Array
    seconds: Array
    finished: bool

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name == "finished":
                continue
            array = np.array(getattr(self, field.name), dtype=np.float64)
            ndim = 3 if field.name == "weights" else 1
            if array.ndim != ndim or len(array) != len(self.step) or len(array) == 0:
                raise ValueError(
                    f"`{field.name}` must have {ndim} axes and one entry for each of "
                    f"{len(self.step)} checkpoints, got shape {array.shape}"
                )
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    def to_dict(self) -> dict[str, Any]:
        """Return nested lists and one bool, ready for JSON."""
        arrays = {f.name: getattr(self, f.name).tolist() for f in fields(self)[:-1]}
        return arrays | {"finished": self.finished}


def train_regression(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    settings: RegressionSettings | None = None,
    callback: Callback | None = None,
) -> RegressionTrajectory:
    """Train the weights `network.w` in place on the mean squared error.

    Parameters
    ----------
    network : GDLN or ReLUMean
        Anything with weights `w` (K, D) and ``network(X, gates)``; data move to its dtype and
        device.
    X : (n, D)
    y : (n,)
        Any finite targets.
    gates : (n, K) or None
        What ``network.prepare`` takes; None for a network that needs none.
    settings : RegressionSettings, optional
    callback : callable, optional
        ``callback(step, n_steps, loss)`` at every checkpoint and about 100 times in between.

    Returns
    -------
    RegressionTrajectory
        After a KeyboardInterrupt up to the last step done, with ``finished=False``.

    Raises
    ------
    ValueError
        If shapes disagree or a value is not finite.
    FloatingPointError
        If the loss is not finite, or above a thousand times its start, where it is looked at:
        the run diverged.
    """
    settings = RegressionSettings() if settings is None else settings
    data = _place(network, X, y, gates)
    recorder = _Recorder(network, data, settings)
    rows = set(settings.checkpoints())
    reports = rows | set(np.linspace(0, settings.n_steps, _N_REPORTS + 1).round().astype(int))
    batches = _batches(data, settings)
    weights = _weights(network)
    done = 0
    try:
        for done in range(settings.n_steps + 1):
            if done:
                batch = next(batches)
                error = network(batch.X, batch.gates) - batch.y
                loss = 0.5 * (error * error).mean()
                (gradient,) = torch.autograd.grad(loss, weights)
                weights.detach().sub_(gradient, alpha=settings.learning_rate)
            if done in reports:
                measured = recorder.measure(done, keep=done in rows)
                if callback is not None:
                    callback(done, settings.n_steps, measured)
    except KeyboardInterrupt:
        # An update is one tensor operation: the weights are those after `done` or done - 1 steps.
        if done != recorder.last_step:
            recorder.measure(done, keep=True)
    return recorder.trajectory()


class _Data(NamedTuple):
    X: Tensor
    y: Tensor
    gates: Tensor | None


class _Row(NamedTuple):
    step: int
    time: float
    loss: float
    weights: Array
    sign_flips: float
    seconds: float


class _Recorder:
    """Measures the network on the whole training set and keeps the rows of the trajectory."""

    def __init__(self, network: torch.nn.Module, data: _Data, settings: RegressionSettings) -> None:
        self._network, self._data, self._settings = network, data, settings
        self._start = time.perf_counter()
        self._rows: list[_Row] = []
        self._first_gates = self._open_gates()
        self._first_loss = math.inf

    @property
    def last_step(self) -> int:
        return self._rows[-1].step if self._rows else -1

    def measure(self, step: int, *, keep: bool) -> float:
        with torch.no_grad():
            error = (self._network(self._data.X, self._data.gates) - self._data.y).double()
            loss = 0.5 * float((error * error).mean())
        if step == 0:
            self._first_loss = loss
        # Far above where it began, descent is not descending: stop before it overflows.
        if not loss <= 1e3 * self._first_loss + 1e3 * float((self._data.y**2).mean()):
            raise FloatingPointError(
                f"training diverged: the loss is {loss:.3g} at step {step} (learning rate "
                f"{self._settings.learning_rate:g}): use a smaller `learning_rate`"
            )
        if keep:
            seconds = time.perf_counter() - self._start
            flow_time = step * self._settings.learning_rate
            weights = _weights(self._network).detach().double().cpu().numpy().copy()
            self._rows.append(_Row(step, flow_time, loss, weights, self._flips(), seconds))
        return loss

    def trajectory(self) -> RegressionTrajectory:
        columns = zip(*self._rows, strict=True)
        arrays = {name: np.array(c) for name, c in zip(_Row._fields, columns, strict=True)}
        return RegressionTrajectory(**arrays, finished=self.last_step == self._settings.n_steps)

    def _open_gates(self) -> Tensor | None:
        open_gates = getattr(self._network, "open_gates", None)
        return None if open_gates is None else open_gates(self._data.X)

    def _flips(self) -> float:
        now = self._open_gates()
        if now is None or self._first_gates is None:
            return 0.0
        return float((now != self._first_gates).double().mean())


def _place(network: torch.nn.Module, X: Inputs, y: Inputs, gates: Inputs | None) -> _Data:
    weights = _weights(network)
    inputs, targets = _tensor(X).to(weights), _tensor(y).to(weights)
    n = len(inputs) if inputs.ndim else 0
    if inputs.ndim != 2 or n == 0 or not bool(torch.isfinite(inputs).all()):
        raise ValueError(
            f"`X` must be finite, of shape (n, D) with n >= 1, got shape {tuple(inputs.shape)}"
        )
    if tuple(targets.shape) != (n,) or not bool(torch.isfinite(targets).all()):
        raise ValueError(
            f"`y` must be finite, of shape ({n},), got shape {tuple(targets.shape)}: "
            "one target a row of X"
        )
    if gates is None:
        return _Data(inputs, targets, None)
    prepare = getattr(network, "prepare", None)
    placed = _tensor(gates) if prepare is None else prepare(gates)
    if len(placed) != n:
        raise ValueError(f"`gates` must have {n} rows, got {len(placed)}: one a row of X")
    return _Data(inputs, targets, placed)


def _batches(data: _Data, settings: RegressionSettings) -> Iterator[_Data]:
    n, size = len(data.y), settings.batch_size
    rng = np.random.default_rng(settings.random_state)
    while size is None or size >= n:
        yield data
    while True:
        order = torch.from_numpy(rng.permutation(n)).to(data.y.device)
        for index in torch.split(order, size):
            gates = None if data.gates is None else data.gates[index]
            yield _Data(data.X[index], data.y[index], gates)


def _weights(network: torch.nn.Module) -> Tensor:
    weights = getattr(network, "w", None)
    if not isinstance(weights, torch.nn.Parameter) or not weights.requires_grad:
        raise ValueError("`network` must have trained weights `w` (K, D), as GDLN and ReLUMean do")
    return weights


def _tensor(values: Inputs) -> Tensor:
    # A copy: torch warns about sharing memory with read-only arrays.
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))
