"""The network that learns its gates: the setup of its run, and what watches its training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..._support.solve import to_numpy
from ...data.arrays import Floats
from ...measures.distances import Distances
from ...networks.relu import DeepReLU, ReLU
from ...runs.drawing.map_rows import plane_snapshots
from ...runs.setup import SampleSetup, start

if TYPE_CHECKING:
    from ...training.network_snapshots import NetworkSnapshots

LEARNS = "ReLU network"
"""What verdicts call a network that learns its gates."""
_KEPT = "kept."


class KeptWeights:
    """An observer for `train` that keeps the weights of some steps, beside another observer.

    As part of the state of a run that is saved they are there in one that is resumed.

    Parameters
    ----------
    observer : Distances
        Whose measurements are those of the run.
    steps : iterable of int
        When to keep them.
    """

    def __init__(self, observer: Distances, steps: Iterable[int]) -> None:
        self._observer, self.steps = observer, frozenset(steps)
        self._weights: dict[str, Floats] = {}

    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Measure the network."""
        return self._observer(network)

    def see(self, step: int, network: torch.nn.Module) -> None:
        """Keep the weights of one of the steps."""
        for name, weight in network.named_parameters():
            self._weights[f"{_KEPT}{step}.{name}"] = to_numpy(weight).astype(float)

    def state_dict(self) -> dict[str, Floats]:
        """Return the state of the other observer, and what was kept, for a resumed run."""
        return {**self._observer.state_dict(), **self._weights}

    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Take up what `state_dict` gave."""
        self._weights = {k: np.asarray(v) for k, v in state.items() if k.startswith(_KEPT)}
        self._observer.load_state_dict({k: v for k, v in state.items() if k not in self._weights})

    def give(self, step: int, network: torch.nn.Module) -> bool:
        """Give a network the weights of a step; return whether training came to it."""
        own = f"{_KEPT}{step}."
        then = {k.removeprefix(own): v for k, v in self._weights.items() if k.startswith(own)}
        if then:
            network.load_state_dict({name: torch.as_tensor(v) for name, v in then.items()})
        return bool(then)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReLUSetup(SampleSetup):
    """The setup of a run, with its network and what watches its training.

    Attributes
    ----------
    local : bool
        True if the local optimum next to the network is looked for: that of one hidden layer,
        unless told not.
    freeze_at : int or None
        The step at which a copy of the network freezes its gates; None where none does.
    """

    local: bool
    freeze_at: int | None

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer."""
        widths: tuple[int, ...] = (self.options.hidden_units,) * (self.options.depth - 1)
        return widths

    @property
    def name(self) -> str:
        """Name of the network, its size included."""
        options, n_hidden = self.options, len(self.widths)
        layers = f"{n_hidden} hidden layers of " if n_hidden > 1 else ""
        units = f"{options.hidden_units} unit" + ("" if options.hidden_units == 1 else "s")
        leaky = f"leaky ReLU network (slope {options.slope:g})" if options.slope else LEARNS
        return f"{leaky} of {layers}{units}"

    def make(self, seed: int) -> DeepReLU:
        """Return an untrained network."""
        options, n_inputs = self.options, self.train.X.shape[1]
        begins = start(options, seed)
        if len(self.widths) == 1:
            return ReLU(n_inputs, options.hidden_units, slope=options.slope, **begins)
        return DeepReLU(n_inputs, self.widths, slope=options.slope, **begins)

    @cached_property
    def network(self) -> DeepReLU:
        """The network, which learns its gates."""
        return self.make(self.seeds.weights)

    @cached_property
    def half_step(self) -> int | None:
        """The first checkpoint at or after half of the steps and before the last, if there is one.

        There is none where the checkpoints are few.
        """
        *steps, last = self.settings.checkpoints()
        return next((step for step in steps if last <= 2 * step), None)

    def network_at(self, step: int | None) -> DeepReLU | None:
        """Return the network at `half_step` or `freeze_at`, None where it was never there."""
        then = self.make(self.seeds.weights)
        return then if step is not None and self.kept.give(step, then) else None

    @cached_property
    def snapshots(self) -> NetworkSnapshots | None:
        """The network at steps of its training, on the plane."""
        return plane_snapshots(self.network, self.train.X, self.settings.n_steps)

    @cached_property
    def kept(self) -> KeptWeights:
        """What is measured on the way of training, with weights of steps that are needed later."""
        observer = Distances(None, *self.samples, loss=self.options.loss)
        steps = (self.half_step if self.local else None, self.freeze_at)
        return KeptWeights(observer, (step for step in steps if step is not None))
