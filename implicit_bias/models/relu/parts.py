"""Parts of a run of networks with frozen gates: hyperplanes, the group lasso, a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...gates.hyperplanes import HyperplaneGates
from ...limits.exact.architecture import Architecture
from ...limits.exact.frelu import SVMFReLU
from ...runs.parts import ClassNetwork, Parts, n_outputs
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.copied import CopiedUnits
    from ...networks.gated.frelu import FReLU
    from .model import FReLUOptions


def frelu(options: FReLUOptions) -> Parts:
    """Return the parts of ReLU-like units behind random hyperplanes, one of them always open."""

    def gating(seed: int) -> HyperplaneGates:
        """Return unfitted gates drawn by a seed."""
        return HyperplaneGates(
            options.hidden_units, cutoffs=options.cutoffs, slope=options.slope, random_state=seed
        )

    def network(sample: Sample, seed: int) -> FReLU:
        """Return an untrained network for a training sample."""
        from ...networks.gated.frelu import FReLU  # and torch, where one is made

        return FReLU(sample.X.shape[1], sample.required_gates.shape[1], **start(options, seed))

    def of_classes(sample: Sample, seed: int) -> CopiedUnits:
        """Return an untrained network with a unit a class behind every gate."""
        from ...networks.copied import CopiedUnits
        from ...networks.gated.frelu import FReLU

        n_inputs, copies = sample.X.shape[1], n_outputs(sample)
        n_units = sample.required_gates.shape[1] * copies
        units = FReLU(n_inputs, n_units, n_outputs=copies, **start(options, seed))
        return CopiedUnits(units, copies)

    size = f"{options.hidden_units} unit{'s' * (options.hidden_units != 1)}"
    name = "frozen-gate ReLU network"
    if options.slope:
        name = f"frozen-gate leaky ReLU network (slope {options.slope:g})"
    return Parts(
        SVMFReLU(),
        network,
        name,
        gating,
        architecture=Architecture(2, gated=True),
        joint=ClassNetwork(of_classes),
        size=size,
    )
