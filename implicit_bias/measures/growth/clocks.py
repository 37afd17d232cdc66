"""Steps that a trainer takes to a given log(1/loss), by a law or as a run has shown.

Under gradient flow what happens to a direction is a function of log(1/loss); a clock says when.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Protocol, get_args

import torch

from ..._support.doors import door, parameters, result
from ..._support.kinds import anything, extended
from ..._support.solve import Status
from ..._support.words import PacedTrainer, TrainerName
from ...networks.placed_data import Inputs, place_data, trained_weights
from ...training.catalogue import TRAINERS
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.trajectory import Trajectory
from ..fit.gradients import margins
from .rates import fit_rate

# Trainers whose steps follow the gradient of the loss, if in a time of their own.
FLOWS = frozenset({"constant", "normalised", "momentum"})
# Those of them whose pace is measured, since no law has its constant.
PACED: tuple[PacedTrainer, ...] = get_args(PacedTrainer)


class State(Protocol):
    """A network near a KKT point, as far as the pace of its descent depends on it."""

    @property
    def degree(self) -> int:
        """L, of homogeneity."""

    @property
    def mean_margin(self) -> float:
        """Mean margin of the samples, weighted by their share of the loss gradient."""

    @property
    def squared_norm(self) -> float:
        """Squared norm of all trained weights."""

    @property
    def offset(self) -> float:
        """log(1/loss) - mean margin, which tends to a constant."""


class Clock(Protocol):
    """A law of log(1/loss) over the steps of a trainer."""

    @property
    def name(self) -> str:
        """Name of the trainer, for tables."""

    @property
    def is_flow(self) -> bool:
        """True where steps follow gradient flow, so that laws of the flow hold at its times."""

    def log10_steps(self, log_inverse_loss: float, state: State) -> float:
        """Decimal logarithm of the steps, from the start on, that lead to log(1/loss)."""


@parameters()
@dataclass(frozen=True)
class ConstantClock:
    r"""Constant steps along the gradient of the mean loss, near a KKT point.

    There the gradient of log(loss) points along the weights w, of degree L, and has the length
    :math:`L M / \|w\|`, with M the mean margin in the loss's own weights, so that
    :math:`ds/dt = \eta\, e^{-s} L^2 M^2 / \|w\|^2` for s = log(1/loss): t is
    :math:`e^s \|w\|^2 / (\eta L^2 M^2)`, times 1 + (2 - 2/L) / M and terms in 1 / M^2. As M grows
    like s and :math:`\|w\|^2` like :math:`s^{2/L}`, this is Lyu and Li's loss
    :math:`\Theta(1 / (t \log(t)^{2 - 2/L}))`, with its constant.

    Attributes
    ----------
    learning_rate : float
        Size of the steps, divided by 1 - momentum if there is momentum.

    References
    ----------
    K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks", theorem
    4.3, the rate of the loss.

    Examples
    --------
    >>> ib.dynamics.ConstantClock(learning_rate=0.1).name
    'constant (0.1)'
    """

    learning_rate: float = TRAINERS["constant"].learning_rates[-1]

    @property
    def name(self) -> str:
        """The trainer and its rate."""
        return f"constant ({self.learning_rate:.2g})"

    @property
    def is_flow(self) -> bool:
        """True."""
        return True

    @door(log_inverse_loss=extended)
    def log10_steps(self, log_inverse_loss: float, state: State) -> float:
        """Predict the steps up to log(1/loss); NaN where the mean margin would not be positive."""
        margin = log_inverse_loss - state.offset
        if not 0 < margin < math.inf:
            return margin if margin > 0 else math.nan
        power = 2 - 2 / state.degree
        size = state.squared_norm / (self.learning_rate * (state.degree * state.mean_margin) ** 2)
        natural = log_inverse_loss + math.log(size) - power * math.log(margin / state.mean_margin)
        return (natural + math.log1p(power / margin)) / math.log(10)


@result()
@dataclass(frozen=True)
class PowerClock:
    """The power of the steps like which log(1/loss) was growing when a run ended.

    Attributes
    ----------
    trainer : str
    steps, log_inverse_loss : float
        Their values at the end of the run.
    exponent : float
        Slope of log(log(1/loss)) against log(steps) over the last half of the checkpoints.
    error : float
        Standard error of the exponent.

    Examples
    --------
    >>> clock = ib.dynamics.PowerClock("normalised", 100.0, 50.0, exponent=1.0, error=0.01)
    >>> clock.name
    'normalised'
    """

    trainer: TrainerName
    steps: float
    log_inverse_loss: float
    exponent: float
    error: float

    @property
    def name(self) -> str:
        """The trainer."""
        return self.trainer

    @property
    def is_flow(self) -> bool:
        """True where steps follow gradient flow, so that laws of the flow hold at its times."""
        return self.trainer in FLOWS

    @door(log_inverse_loss=extended)
    def log10_steps(self, log_inverse_loss: float, state: State) -> float:
        """Predict the steps up to log(1/loss) from the end of the run, which is the state."""
        further = math.log10(log_inverse_loss / self.log_inverse_loss)
        return math.log10(self.steps) + further / self.exponent


@door()
def clock_of(trajectory: Trajectory, settings: TrainingSettings) -> PowerClock | None:
    """Fit the clock of a run to its own log(1/loss).

    Parameters
    ----------
    trajectory : Trajectory
        The run, as `train` returns it.
    settings : TrainingSettings
        The settings that it was trained with.

    Returns
    -------
    PowerClock or None
        None where the run shows no power, and for constant steps, which follow `ConstantClock`.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.2], [0.3, -1.0], [-0.8, 0.5]]), np.array([1.0, 1.0, -1.0])
    >>> settings = ib.TrainingSettings(trainer="normalised", schedule=((100, 0.1),))
    >>> network = ib.DeepLinear(2, hidden_widths=(3,), random_state=0)
    >>> run = ib.train(network, X, y, settings=settings)
    >>> ib.dynamics.clock_of(run, settings).name
    'normalised'
    """
    if settings.trainer == "constant":
        return None
    reached = -trajectory.log_loss
    rate = fit_rate(trajectory.step, reached, names=("log(1/loss)", "t"))
    if rate.status is not Status.ESTIMATED or not rate.exponent > 0:
        return None
    ends = float(trajectory.step[-1]), float(reached[-1])
    return PowerClock(settings.trainer, *ends, rate.exponent, float(rate.error))


@door(trainer=anything)
def pace_of(
    network: torch.nn.Module,
    X: Inputs,
    y: Inputs,
    gates: Inputs | None = None,
    *,
    trainer: PacedTrainer,
    n_steps: int = 300,
) -> PowerClock | None:
    """Measure the clock of another trainer by a short run of it from a trained network.

    A copy of the network begins at its direction and a smallest margin of 1, so that nothing but
    log(1/loss) has far to go, and takes `n_steps`; its steps count from there. What a run from
    random weights needs to find the direction is not in it.

    Parameters
    ----------
    network : Module
        Homogeneous, with positive margins; it is not modified.
    X : (n, D) array
        Inputs, of any real dtype.
    y : (n,) array
        Labels in {-1, +1}.
    gates : (n, ...) array, optional
        Gate values or integer contexts of each sample, for networks that take them.
    trainer : {"normalised", "momentum"}
        The trainer whose clock is wanted: one whose steps follow gradient flow.
    n_steps : int
        Steps of the short run.

    Returns
    -------
    PowerClock or None
        None where the run shows no power.

    Raises
    ------
    ValueError
        If the trainer is another, data are malformed, or some sample has no positive margin.

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.2], [0.3, -1.0], [-0.8, 0.5]]), np.array([1.0, 1.0, -1.0])
    >>> network = ib.DeepLinear(2, hidden_widths=(3,), random_state=0)
    >>> settings = ib.TrainingSettings(trainer="normalised", schedule=((100, 0.1),))
    >>> run = ib.train(network, X, y, settings=settings)
    >>> clock = ib.dynamics.pace_of(network, X, y, trainer="momentum", n_steps=100)
    >>> clock.exponent > 1
    True
    """
    if not isinstance(trainer, str) or trainer not in PACED:
        raise ValueError(
            f"`trainer` must be one of {list(PACED)}, got {trainer!r}: constant steps have a law, "
            "`ConstantClock`, and the others do not follow the flow"
        )
    settings = TrainingSettings(
        trainer=trainer, batch_size=0, schedule=((n_steps, None),), n_checkpoints=60
    )
    begin = copy.deepcopy(network)
    data = place_data(begin, X, y, gates)
    with torch.no_grad():
        smallest = float(margins(begin, data).min())
        if not smallest > 0:
            raise ValueError(
                f"a pace is measured near the end of training, and the smallest margin is "
                f"{smallest:.3g}: train until it is positive"
            )
        for weight in trained_weights(begin):
            weight.mul_(smallest ** (-1 / begin.degree))  # type: ignore[operator]
    return clock_of(train(begin, X, y, gates, settings=settings), settings)
