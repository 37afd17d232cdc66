"""The network that learns its gates: the setup of its run, and what watches its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import to_numpy
from ...data.arrays import Floats
from ...measures.distances import Distances
from ...networks.relu import DeepReLU, ReLU
from ...runs.drawing.map_rows import plane_snapshots
from ...runs.setup import SampleSetup, start

if TYPE_CHECKING:
    import torch

    from ...training.network_snapshots import NetworkSnapshots

LEARNS = "ReLU network"
"""What verdicts call a network that learns its gates."""


class HalfWay:
    """An observer for `train` that keeps the weights of a checkpoint, beside another observer.

    It is the first checkpoint at or after half of the steps and before the last, if there is one:
    not where the checkpoints are few. As part of the state of a run that is saved, the weights are
    there in one that is resumed.

    Parameters
    ----------
    observer : Distances
        Whose measurements are those of the run.
    steps : sequence of int
        Of the checkpoints.
    slope : float
        Of the network's units where they are closed.
    """

    def __init__(self, observer: Distances, steps: Sequence[int], *, slope: float = 0.0) -> None:
        self._observer, self._steps = observer, list(steps)
        last = self._steps[-1]
        between = (i for i, step in enumerate(self._steps) if last <= 2 * step < 2 * last)
        self._index = next(between, None)
        self._count, self._slope = 0, slope
        self._weights: dict[str, Floats] = {}

    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Measure the network, and keep its weights where it is half way."""
        if self._count == self._index:
            named = network.named_parameters()
            self._weights = {name: to_numpy(p).astype(float) for name, p in named}
        self._count += 1
        return self._observer(network)

    def state_dict(self) -> dict[str, Floats]:
        """Return the state of the other observer, and what was kept, for a resumed run."""
        own = {f"half_way.{name}": array for name, array in self._weights.items()}
        return {**self._observer.state_dict(), **own, "half_way_count": np.array(self._count)}

    def load_state_dict(self, state: Mapping[str, Floats]) -> None:
        """Take up what `state_dict` gave."""
        own = {name for name in state if name.startswith("half_way")}
        self._observer.load_state_dict({k: v for k, v in state.items() if k not in own})
        self._count = int(state["half_way_count"])
        self._weights = {
            name.removeprefix("half_way."): np.asarray(state[name])
            for name in sorted(own - {"half_way_count"})
        }

    @property
    def copy(self) -> tuple[int, ReLU] | None:
        """The step and the network there; None without one, or if training did not come so far."""
        if not self._weights or self._index is None:
            return None
        then = ReLU.from_weights(*self._weights.values(), slope=self._slope)
        return self._steps[self._index], then


@dataclass(frozen=True, eq=False, kw_only=True)
class ReLUSetup(SampleSetup):
    """The setup of a run, with its network and what watches its training.

    Attributes
    ----------
    local : bool
        True if the local optimum next to the network is looked for: that of one hidden layer,
        unless told not.
    freeze_at : int or None
        The step at which the twin of the network freezes its gates; None where none does.
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
    def twin(self) -> DeepReLU:
        """A network that begins alike, and freezes its gates."""
        return self.make(self.seeds.weights)

    @cached_property
    def snapshots(self) -> NetworkSnapshots | None:
        """The network at steps of its training, on the plane."""
        return plane_snapshots(self.network, self.train.X, self.settings.n_steps)

    @cached_property
    def half(self) -> HalfWay:
        """The network at half of its steps, and what is measured on the way."""
        observer = Distances(None, *self.samples, loss=self.options.loss)
        return HalfWay(observer, self.settings.checkpoints(), slope=self.options.slope)
