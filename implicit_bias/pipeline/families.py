"""The families of separable models: which gates, program and network each one puts together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..data.sample import Sample
from ..gates.hyperplanes import HyperplaneContexts, HyperplaneGates
from ..limits.formulation import Formulation
from ..models.gln.formulation import SVMGLN
from ..models.gln.l2 import SVML2
from ..models.gln.network import GLN
from ..models.gln.shallow import ContextSVMs
from ..models.gln.shallow_network import ShallowGLN
from ..models.linear.formulation import HardMarginSVM
from ..models.linear.network import DeepLinear
from ..models.relu.formulation import SVMFReLU
from ..models.relu.frozen_network import FReLU
from .classification import torch_dtype
from .options import Options
from .separable import Family

if TYPE_CHECKING:
    import torch

__all__ = ["FAMILIES"]


def _contexts(options: Options, seed: int) -> HyperplaneContexts:
    return HyperplaneContexts(
        options.hidden_units, options.contexts, cutoffs=options.cutoffs, random_state=seed
    )


def _start(options: Options, seed: int) -> dict[str, Any]:
    """What every network takes: how its weights begin, in which precision, and where."""
    return {
        "init": options.init,
        "init_scale": options.init_scale,
        "random_state": seed,
        "dtype": torch_dtype(options.dtype),
        "device": options.device,
    }


def _no_gates(options: Options, seed: int) -> None:
    return None


def _gates(options: Options, seed: int) -> HyperplaneGates:
    return HyperplaneGates(options.hidden_units, cutoffs=options.cutoffs, random_state=seed)


def _gln(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return GLN(sample.X.shape[1], options.hidden_units, options.contexts, **_start(options, seed))


def _shallow(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return ShallowGLN(sample.X.shape[1], sample.gates, **_start(options, seed))


def _linear(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return DeepLinear(sample.X.shape[1], **_start(options, seed))


def _deep_linear(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    assert options.depth is not None  # the model's defaults name one
    widths = (options.hidden_units,) * (options.depth - 1)
    return DeepLinear(sample.X.shape[1], hidden_widths=widths, **_start(options, seed))


def _frelu(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return FReLU(sample.X.shape[1], sample.gates.shape[1], **_start(options, seed))


def _family(
    gating: Callable[[Options, int], Any],
    formulation: Callable[[Options], Formulation[Any]],
    network: Callable[[Sample, Options, int], torch.nn.Module],
    network_name: str,
    *,
    control: bool = False,
) -> Family:
    usual = formulation(Options())
    return Family(
        gating,
        lambda sample, options: formulation(options).program(*sample),
        usual.limit,
        network,
        usual.name,
        network_name,
        control,
    )


FAMILIES = {
    "deep-linear": _family(_no_gates, lambda _: HardMarginSVM(), _deep_linear, "deep linear"),
    "frelu": _family(_gates, lambda _: SVMFReLU(), _frelu, "frozen-gate ReLU network"),
    "gln": _family(_contexts, lambda o: SVMGLN(o.contexts), _gln, "GLN"),
    "gln-l2": _family(_contexts, lambda o: SVML2(o.contexts), _gln, "GLN", control=True),
    "linear": _family(_no_gates, lambda _: HardMarginSVM(), _linear, "linear predictor"),
    "shallow-gln": _family(_contexts, lambda _: ContextSVMs(), _shallow, "shallow GLN"),
}
