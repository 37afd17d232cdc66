"""Parts of a run of networks with frozen gates: hyperplanes, the group lasso, a network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...gates.hyperplanes import HyperplaneGates
from ...limits.frelu import SVMFReLU
from ...runs.decay_programs import Layers
from ...runs.parts import JointParts, Parts, n_outputs, norms_of_trainers
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.copied import CopiedUnits
    from ...networks.frelu import FReLU
    from .model import FReLUOptions

__all__ = ["frelu"]


def frelu(options: FReLUOptions) -> Parts:
    """Return the parts of ReLU-like units behind random hyperplanes, one of them always open."""

    def gating(seed: int) -> HyperplaneGates:
        """Return unfitted gates drawn by a seed."""
        return HyperplaneGates(
            options.hidden_units, cutoffs=options.cutoffs, slope=options.slope, random_state=seed
        )

    def network(sample: Sample, seed: int) -> FReLU:
        """Return an untrained network for a training sample."""
        from ...networks.frelu import FReLU  # and torch, where one is made

        return FReLU(sample.X.shape[1], sample.gates.shape[1], **start(options, seed))

    def of_classes(sample: Sample, seed: int) -> CopiedUnits:
        """Return an untrained network with a unit a class behind every gate."""
        from ...networks.copied import CopiedUnits
        from ...networks.frelu import FReLU

        n_inputs, n_gates, copies = sample.X.shape[1], sample.gates.shape[1], n_outputs(sample)
        units = FReLU(n_inputs, n_gates * copies, n_outputs=copies, **start(options, seed))
        return CopiedUnits(units, copies)

    name = "frozen-gate ReLU network"
    descent = options.classes == "joint" and norms_of_trainers(options, 2) == ("l2", "l2")
    joint = JointParts(
        norm="sum-nuclear",
        name="sum of nuclear norms",
        program="min sum_h ||Z_h||_*  s.t.  sum_h g_h(x_n) <z_h,y(n) - z_h,k, x_n> >= 1 for k != "
        "y(n)",
        theorem="two-layer frozen-gate ReLU network of K outputs with K units behind every gate: "
        "the least weights of margin 1 have the least sum of nuclear norms, and training goes to "
        "KKT points of that problem (Lyu and Li, Gradient descent maximizes the margin of "
        "homogeneous neural networks), of which this is the best",
        source="this program: the least weights of its networks; training: Lyu and Li 2020",
        network=of_classes,
        network_name=name,
    )
    size = f"{options.hidden_units} unit{'s' * (options.hidden_units != 1)}"
    return Parts(
        SVMFReLU(),
        network,
        name,
        gating,
        form="gated layer",
        joint=joint if descent else None,
        decay=Layers(2, gated=True),
        size=size,
    )
