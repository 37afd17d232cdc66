"""Training of the gates: soft ones, as they are or ever steeper, watched with hard gates too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..._support.pictures import draw
from ..._support.solve import to_numpy
from ...data.sample import Sample
from ...gates.layered import LinearGates
from ...measures.scalars import accuracy, scores
from ...networks.gated.dlgn import DLGN
from ...networks.losses.objectives import log_mean_loss
from ...quantities.formatting import loss_in_words
from ...quantities.measured import Measured, derived, part, quantity
from ...runs.folder import RunFolder
from ...training.loop import train
from ...training.settings import TrainingSettings
from ...training.training_run import Callback
from ...training.trajectory import Trajectory
from .regions import active_paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The file of each part of an unfinished training.
GATES_RUN = "gates-run-{}.safetensors"
# Equal parts of the second half of the steps in which beta rises to its last value.
STAGES = 4


class GateTraining(Measured):
    """The training of the gates, part after part, and how soft and hard gates have ended.

    Losses with soft gates and with the hard ones that they stand for may lie far apart.
    """

    betas: tuple[float, ...] = part("Steepness in each part of the training; none without a step.")
    trajectories: tuple[Trajectory, ...] = part(
        "One a part that was begun, with what `GateObserver` measures.", recorded=False
    )

    @derived("steps with soft gates", "d", recorded=True)
    def n_steps(self) -> int:
        """Gradient steps done."""
        return sum(int(one.step[-1]) for one in self.trajectories)

    log_loss: float = quantity(
        "loss with soft gates", loss_in_words, doc="Logarithm of the mean loss at the end."
    )
    hard_log_loss: float = quantity(
        "loss with hard gates", loss_in_words, doc="The same with hard gates."
    )
    accuracy: float = quantity("training accuracy, soft gates", ".2%")
    hard_accuracy: float = quantity("training accuracy, hard gates", ".2%")
    gate_changes: float = quantity()

    @property
    def finished(self) -> bool:
        """True if every part was finished."""
        return len(self.trajectories) == len(self.betas) and all(
            one.finished for one in self.trajectories
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the losses of the training; see `Limit.plot` for `ax`."""
        return draw("models.dlgn.figure:plot_gate_losses", self, ax=ax)

    def along(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps since the start, and the values observed by that name at them, parts in a row."""
        ends = np.cumsum([0, *(one.step[-1] for one in self.trajectories)])
        steps = [one.step + end for one, end in zip(self.trajectories, ends, strict=False)]
        values = [
            one.log_loss if name == "log_loss" else one.observed[name] for one in self.trajectories
        ]
        return np.concatenate(steps), np.concatenate(values)


class GateObserver:
    """An observer for `train`: a DLGN with hard gates, and what became of them.

    It measures "hard_log_loss", the logarithm of the mean loss with hard gates, "gate_changes",
    the share of hard gates that differ from those of `first`, and "log_paths", the mean logarithm
    of the number of open paths of samples with one.

    Parameters
    ----------
    sample : Sample
    loss : str
        Of margins.
    first : (n, gates) array
        Hard gates to compare with.
    """

    def __init__(self, sample: Sample, loss: str, first: np.ndarray) -> None:
        self._sample, self._loss, self._first = sample, loss, first

    def __call__(self, network: torch.nn.Module) -> dict[str, float]:
        """Measure `network`, a `DLGN`."""
        if not isinstance(network, DLGN):
            raise TypeError(f"`network` must be a DLGN, got {type(network).__name__}")
        gates = to_numpy(network.gates(self._sample.X))
        margins = self._sample.y * hard_scores(network, self._sample.X)
        paths = active_paths(gates, widths=network.widths)
        return {
            "hard_log_loss": float(log_mean_loss(torch.tensor(margins), self._loss)),
            "gate_changes": float(np.mean(gates != self._first)),
            "log_paths": float(np.mean(paths[np.isfinite(paths)])),
        }


def hard_scores(network: DLGN, X: Any) -> np.ndarray:
    """(n,) float64 scores of a DLGN with hard gates, whatever its `beta` is."""
    inputs = torch.as_tensor(np.array(X)).to(network.gating[0])
    with torch.no_grad():
        found = network.value(network.expert_inputs(inputs), network.gates(inputs).to(inputs))
    return np.asarray(to_numpy(found.double()))


def gating_of(network: DLGN) -> LinearGates:
    """The half-spaces that a network has now, as a gating of new inputs that can be saved."""
    layers = [to_numpy(layer.detach().double()) for layer in network.gating]
    gating = LinearGates(network.n_inputs, widths=network.widths, layers=layers)
    return gating.fit(np.zeros((1, network.n_inputs)))


def steepening(
    beta: float, final_beta: float | None, n_steps: int
) -> tuple[tuple[float, int], ...]:
    """Pairs (beta, steps): all at `beta`, or the second half ever steeper, by equal factors.

    Raises
    ------
    ValueError
        If a steepness is not positive and finite, or falls.
    """
    if not 0 < beta < math.inf or not (final_beta is None or beta <= final_beta < math.inf):
        raise ValueError(
            f"`beta` must be positive and finite, `final_beta` at least as large, got {beta} and "
            f"{final_beta}"
        )
    if n_steps == 0:
        return ()
    if final_beta is None:
        return ((beta, n_steps),)
    share = n_steps // 2 // STAGES
    betas = beta * (final_beta / beta) ** (np.arange(1, STAGES + 1) / STAGES)
    parts = [(beta, n_steps - STAGES * share), *((float(b), share) for b in betas)]
    return tuple(part for part in parts if part[1] > 0)


def train_gates(
    network: DLGN,
    sample: Sample,
    parts: Sequence[tuple[float, int]],
    *,
    settings: TrainingSettings,
    callback: Callback | None = None,
    folder: RunFolder | None = None,
) -> GateTraining:
    """Train all weights of a network with soft gates, in place; it has the last beta then.

    Parameters
    ----------
    network : DLGN
    sample : Sample
        Inputs and labels.
    parts : sequence of (beta, steps)
        As `steepening` makes them. The method begins afresh with each.
    settings : TrainingSettings
        Of a trainer that finds its own step sizes and takes networks of no degree; its schedule
        is not looked at.
    callback : callable, optional
        With the steps of one part.
    folder : RunFolder, optional
        Where each part keeps itself, and goes on if it has a file there.
    """
    first, folder = to_numpy(network.gates(sample.X)), folder or RunFolder()
    trajectories: list[Trajectory] = []
    for index, (beta, steps) in enumerate(parts):
        network.beta, name = beta, GATES_RUN.format(index)
        trajectory = train(
            network, sample.X, sample.y, None,
            settings=replace(settings, schedule=((steps, None),)),
            callback=callback,
            observer=GateObserver(sample, settings.loss, first),
            state=folder.state(name),
            resume=folder.resumes(name),
        )  # fmt: skip
        trajectories.append(trajectory)
        if not trajectory.finished:
            break
    soft = scores(network, Sample(sample.X, sample.y, None))
    hard = hard_scores(network, sample.X)
    log_loss, hard_log_loss = (
        float(log_mean_loss(torch.tensor(sample.y * values), settings.loss))
        for values in (soft, hard)
    )
    return GateTraining(
        betas=tuple(beta for beta, _ in parts),
        trajectories=tuple(trajectories),
        log_loss=log_loss,
        hard_log_loss=hard_log_loss,
        accuracy=accuracy(sample.y, soft),
        hard_accuracy=accuracy(sample.y, hard),
        gate_changes=float(np.mean(to_numpy(network.gates(sample.X)) != first)),
    )
