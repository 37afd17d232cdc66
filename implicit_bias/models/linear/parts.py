"""Parts of a run of linear networks: hard-margin programs and a network of any depth."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...limits.exact.architecture import Architecture
from ...limits.exact.linear import HardMarginSVM
from ...runs.parts import ClassNetwork, Parts, n_outputs
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.deep_linear import DeepLinear
    from .model import DeepLinearOptions, LinearOptions


def linear(options: LinearOptions) -> Parts:
    """A linear predictor."""
    network = partial(_chain, options, ())
    return Parts(
        HardMarginSVM(),
        network,
        "linear predictor",
        architecture=Architecture(),
        joint=ClassNetwork(network),
    )


def deep_linear(options: DeepLinearOptions) -> Parts:
    """A chain of linear layers."""
    widths = (options.hidden_units,) * (options.depth - 1)
    network = partial(_chain, options, widths)
    return Parts(
        HardMarginSVM(),
        network,
        "deep linear network",
        architecture=Architecture(options.depth, narrowest=min(widths, default=None)),
        joint=ClassNetwork(network),
        size=f"{options.depth} layers" if widths else "",
    )


def _chain(
    options: LinearOptions, widths: tuple[int, ...], sample: Sample, seed: int
) -> DeepLinear:
    """Return an untrained network for a training sample."""
    from ...networks.deep_linear import DeepLinear  # and torch, where one is made

    return DeepLinear(
        sample.X.shape[1],
        hidden_widths=widths,
        n_outputs=n_outputs(sample),
        **start(options, seed),
    )
