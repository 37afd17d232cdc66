"""Parts of a run of linear networks: hard-margin programs and a network of any depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...data.sample import Sample
from ...limits.linear import HardMarginSVM
from ...runs.parts import JointParts, Parts, n_outputs
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.deep_linear import DeepLinear
    from .model import DeepLinearOptions, LinearOptions

__all__ = ["deep_linear", "linear"]

Make = Callable[[Sample, int], "DeepLinear"]


def linear(options: LinearOptions) -> Parts:
    """A linear predictor."""
    network, name = _chain(options, ()), "linear predictor"
    joint = JointParts(
        norm="l2",
        name="multi-class SVM",
        program="min ||B||_F  s.t.  <b_y(n) - b_k, x_n> >= 1 for k != y(n)",
        theorem="directional limit of a linear predictor of K classes under softmax is the "
        "multi-class hard-margin SVM (Soudry et al., The implicit bias of gradient descent on "
        "separable data; Ravi, Scott, Soudry and Wang, The implicit bias of gradient descent on "
        "separable multiclass data)",
        source="Ravi, Scott, Soudry and Wang 2024",
        network=network,
        network_name=name,
    )
    return Parts(HardMarginSVM(), network, name, joint=joint)


def deep_linear(options: DeepLinearOptions) -> Parts:
    """A chain of linear layers."""
    widths = (options.hidden_units,) * (options.depth - 1)
    network, name = _chain(options, widths), "deep linear network"
    if not widths:
        return linear(options)
    known = (
        "two linear layers of K outputs: the least weights of margin 1 have the least nuclear norm "
        "end to end, and training goes to KKT points of that problem (Lyu and Li, Gradient descent "
        "maximizes the margin of homogeneous neural networks), of which this is the best"
    )
    bounded = (
        "no convex program is the limit of more than two linear layers of K outputs: what they "
        "minimise, the sum of s^(2/L) over singular values s, is at least this nuclear norm, and "
        "training goes to KKT points (Lyu and Li, Gradient descent maximizes the margin of "
        "homogeneous neural networks)"
    )
    joint = JointParts(
        norm="nuclear",
        name="least nuclear norm",
        program="min ||B||_*  s.t.  <b_y(n) - b_k, x_n> >= 1 for k != y(n)",
        theorem=known if options.depth == 2 else bounded,
        source="this program: the least weights of its networks; training: Lyu and Li 2020",
        network=network,
        network_name=name,
        bound=options.depth > 2,
        narrowest=min(widths),
    )
    size = f"{options.depth} layers"
    return Parts(HardMarginSVM(), network, name, joint=joint, size=size)


def _chain(options: LinearOptions, widths: tuple[int, ...]) -> Make:
    def network(sample: Sample, seed: int) -> DeepLinear:
        """Return an untrained network for a training sample."""
        from ...networks.deep_linear import DeepLinear  # and torch, where one is made

        return DeepLinear(
            sample.X.shape[1],
            hidden_widths=widths,
            n_outputs=n_outputs(sample),
            **start(options, seed),
        )

    return network
