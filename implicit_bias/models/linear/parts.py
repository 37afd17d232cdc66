"""Parts of a run of linear networks: hard-margin programs and a network of any depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..._solve import NormName
from ...data.sample import Sample
from ...limits.linear import HardMarginSVM
from ...runs.decay_programs import Layers
from ...runs.parts import JointParts, Parts, n_outputs, norms_of_trainers
from ...runs.setup import start

if TYPE_CHECKING:
    from ...networks.deep_linear import DeepLinear
    from .model import DeepLinearOptions, LinearOptions

__all__ = ["deep_linear", "linear"]

Make = Callable[[Sample, int], "DeepLinear"]
NORMS: Mapping[NormName, str] = {
    "l2": "||B||_F",
    "nuclear": "||B||_*",
    "spectral": "||B||_op",
    "linf": "max |b_kd|",
    "l1": "sum |b_kd|",
}


def linear(options: LinearOptions) -> Parts:
    """A linear predictor."""
    network, name = _chain(options, ()), "linear predictor"
    joint = _joint(options, network, name, ())
    return Parts(HardMarginSVM(), network, name, form="one layer", joint=joint, decay=Layers(1))


def deep_linear(options: DeepLinearOptions) -> Parts:
    """A chain of linear layers."""
    widths = (options.hidden_units,) * (options.depth - 1)
    network, name = _chain(options, widths), "deep linear network"
    return Parts(
        HardMarginSVM(),
        network,
        name,
        form="linear layers" if widths else "one layer",
        joint=_joint(options, network, name, widths),
        decay=Layers(options.depth),
        size=f"{options.depth} layers" if widths else "",
    )


# What is known of training beside the program, by the norms in which the layers go steepest.
DESCENT = (
    "directional limit of a linear predictor of K classes under softmax is the multi-class "
    "hard-margin SVM (Soudry et al., The implicit bias of gradient descent on separable data; "
    "Ravi, Scott, Soudry and Wang, The implicit bias of gradient descent on separable "
    "multiclass data)",
    "Ravi, Scott, Soudry and Wang 2024",
)
STEEPEST = (
    "steepest descent of a linear predictor of K classes under softmax, in steps that fall like "
    "t^(-1/2), reaches the largest margin in its own norm, of which there may be several solutions "
    "(Fan, Schmidt and Thrampoulidis, Implicit bias of spectral descent and Muon on multiclass "
    "separable data)",
    "Fan, Schmidt and Thrampoulidis 2025",
)
LEAST_WEIGHTS = "this program: the least weights of its networks; training: Lyu and Li 2020"
TWO_LAYERS = (
    "two linear layers of K outputs: the least weights of margin 1 have the least nuclear norm end "
    "to end, and training goes to KKT points of that problem (Lyu and Li, Gradient descent "
    "maximizes the margin of homogeneous neural networks), of which this is the best",
    LEAST_WEIGHTS,
)
MORE_LAYERS = (
    "no convex program is the limit of more than two linear layers of K outputs: what they "
    "minimise, the sum of s^(2/L) over singular values s, bounds this nuclear norm, and training "
    "goes to KKT points (Lyu and Li, Gradient descent maximizes the margin of homogeneous neural "
    "networks)",
    LEAST_WEIGHTS,
)
SPECTRAL_LAYERS = (
    "linear layers that go steepest in the spectral norm: the least product of their norms at "
    "margin 1 is the least spectral norm end to end, whatever the depth, as that norm is "
    "submultiplicative; training goes to KKT points (Tsilivis, Gronich, Vardi and Kempe, Flavors "
    "of margin), of which this is the best",
    "this program: the least weights of its networks; training: Tsilivis et al. 2024",
)


def _joint(
    options: LinearOptions, network: Make, name: str, widths: tuple[int, ...]
) -> JointParts | None:
    """Return the program of all classes at once by the norms in which the layers go steepest."""
    if options.classes != "joint":
        return None
    norms = norms_of_trainers(options, len(widths) + 1)
    norm: NormName = norms[0]
    theory = DESCENT if norm == "l2" else STEEPEST
    if widths:
        if len(set(norms)) > 1 or norm not in ("l2", "spectral"):
            return None
        theory = TWO_LAYERS if len(widths) == 1 else MORE_LAYERS
        if norm == "spectral":
            theory = SPECTRAL_LAYERS
        else:
            norm = "nuclear"
    return JointParts(
        norm=norm,
        name="multi-class SVM" if norm == "l2" else f"multi-class SVM, {norm} norm",
        program=f"min {NORMS[norm]}  s.t.  <b_y(n) - b_k, x_n> >= 1 for k != y(n)",
        theorem=theory[0],
        source=theory[1],
        network=network,
        network_name=name,
        bound=theory is MORE_LAYERS,
        narrowest=min(widths, default=None),
    )


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
