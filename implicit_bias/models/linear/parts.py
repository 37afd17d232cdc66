"""Parts of a run of linear networks: the hard-margin SVM and a network of any depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...limits.linear import HardMarginSVM
from ...limits.optimiser_norms import Form
from ...runs.parts import Parts
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.deep_linear import DeepLinear
    from .model import DeepLinearOptions, LinearOptions

__all__ = ["deep_linear", "linear"]


def linear(options: LinearOptions) -> Parts:
    """A linear predictor."""
    return _chain(options, (), "linear predictor")


def deep_linear(options: DeepLinearOptions) -> Parts:
    """A chain of linear layers."""
    return _chain(options, (options.hidden_units,) * (options.depth - 1), "deep linear network")


def _chain(options: LinearOptions, widths: tuple[int, ...], name: str) -> Parts:
    def network(sample: Sample, seed: int) -> DeepLinear:
        """Return an untrained network for a training sample."""
        from ...networks.deep_linear import DeepLinear  # and torch, where one is made

        return DeepLinear(sample.X.shape[1], hidden_widths=widths, **start(options, seed))

    size = f"{len(widths) + 1} layers" if widths else ""
    form: Form = "linear layers" if widths else "one layer"
    return Parts(HardMarginSVM(), network, name, form=form, size=size)
