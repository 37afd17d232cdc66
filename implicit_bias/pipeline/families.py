"""The families of separable models: which gates, program and network each one puts together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram, Solution
from ..data.sample import Sample
from ..gates.hyperplanes import HyperplaneContexts, HyperplaneGates
from ..limits.limit import Limit
from ..models.gln.formulation import gln_limit, gln_program
from ..models.gln.l2 import gln_l2_limit, gln_l2_program
from ..models.gln.network import GLN
from ..models.gln.shallow import shallow_gln_limit, shallow_gln_program
from ..models.gln.shallow_network import ShallowGLN
from ..models.linear.formulation import linear_limit, linear_program
from ..models.linear.network import DeepLinear
from ..models.relu.formulation import frelu_limit, frelu_program
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


def _linear_program(sample: Sample, options: Options) -> MaxMarginProgram:
    return linear_program(sample.X, sample.y)


def _gln_program(sample: Sample, options: Options) -> MaxMarginProgram:
    return gln_program(*sample, n_contexts=options.contexts)


def _gln_l2_program(sample: Sample, options: Options) -> MaxMarginProgram:
    return gln_l2_program(*sample, n_contexts=options.contexts)


def _shallow_program(sample: Sample, options: Options) -> MaxMarginProgram:
    return shallow_gln_program(*sample)


def _frelu_program(sample: Sample, options: Options) -> MaxMarginProgram:
    return frelu_program(*sample)


def _linear_limit(program: MaxMarginProgram, solution: Solution, gates: Any) -> Limit:
    return linear_limit(program, solution)


def _gln_limit(program: MaxMarginProgram, solution: Solution, gates: Any) -> Limit:
    return gln_limit(program, solution)


def _gln_l2_limit(program: MaxMarginProgram, solution: Solution, gates: Any) -> Limit:
    return gln_l2_limit(program, solution, n_units=gates.shape[1])


def _frelu_limit(program: MaxMarginProgram, solution: Solution, gates: Any) -> Limit:
    return frelu_limit(program, solution)


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


FAMILIES = {
    "deep-linear": Family(
        _no_gates, _linear_program, _linear_limit, _deep_linear, "hard-margin SVM", "deep linear"
    ),
    "frelu": Family(
        _gates, _frelu_program, _frelu_limit, _frelu, "SVM-FReLU", "frozen-gate ReLU network"
    ),
    "gln": Family(_contexts, _gln_program, _gln_limit, _gln, "SVM-GLN", "GLN"),
    "gln-l2": Family(
        _contexts, _gln_l2_program, _gln_l2_limit, _gln, "SVM-L2", "GLN", control=True
    ),
    "linear": Family(
        _no_gates, _linear_program, _linear_limit, _linear, "hard-margin SVM", "linear predictor"
    ),
    "shallow-gln": Family(
        _contexts, _shallow_program, shallow_gln_limit, _shallow, "one SVM a context", "shallow GLN"
    ),
}
