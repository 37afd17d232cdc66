"""Parts of a run of linear convolutions: the margin of frequencies, and a network."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...limits.convolution.frequencies import FrequencyMargin
from ...runs.parts import Parts
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.structured.convolution import LinearConvolution
    from .model import ConvolutionOptions


def convolution(options: ConvolutionOptions) -> Parts:
    """Return the parts of convolutions below a linear layer."""
    circles = " x ".join(map(str, options.group or ()))
    return Parts(
        FrequencyMargin(options.depth, options.group),
        partial(network, options),
        "linear convolution",
        size=f"{options.depth} layers" + (f" over circles of {circles}" if circles else ""),
    )


def network(options: ConvolutionOptions, sample: Sample, seed: int) -> LinearConvolution:
    """Return an untrained network for a training sample."""
    from ...networks.structured.convolution import LinearConvolution  # and torch, where one is made

    D = sample.X.shape[1]
    return LinearConvolution(D, options.depth, group=options.group, **start(options, seed))
