"""The families of separable models: which gates, program and network each one puts together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..comparison import Sample
from ..formulations.frelu import solve_frelu_svm
from ..formulations.gln import solve_gln_svm
from ..formulations.gln_l2 import solve_gln_l2_svm
from ..formulations.linear import solve_linear_svm
from ..formulations.shallow_gln import solve_shallow_gln_svm
from ..gating import HyperplaneContexts
from ..limit import Limit
from ..networks.frelu import FReLU
from ..networks.gln import GLN
from ..networks.linear import DeepLinear
from ..networks.shallow_gln import ShallowGLN
from ..options import Options
from ..relu_gating import HyperplaneGates
from .classification import torch_dtype
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


def _solver(options: Options) -> dict[str, Any]:
    return {"solver": options.solver, "tol": options.tol}


def _no_gates(options: Options, seed: int) -> None:
    return None


def _gates(options: Options, seed: int) -> HyperplaneGates:
    return HyperplaneGates(options.hidden_units, cutoffs=options.cutoffs, random_state=seed)


def _solve_gln(sample: Sample, options: Options) -> Limit:
    return solve_gln_svm(*sample, n_contexts=options.contexts, **_solver(options))


def _solve_gln_l2(sample: Sample, options: Options) -> Limit:
    return solve_gln_l2_svm(*sample, n_contexts=options.contexts, **_solver(options))


def _solve_shallow(sample: Sample, options: Options) -> Limit:
    return solve_shallow_gln_svm(*sample, **_solver(options))


def _solve_linear(sample: Sample, options: Options) -> Limit:
    return solve_linear_svm(sample.X, sample.y, **_solver(options))


def _solve_frelu(sample: Sample, options: Options) -> Limit:
    return solve_frelu_svm(*sample, **_solver(options))


def _gln(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return GLN(sample.X.shape[1], options.hidden_units, options.contexts, **_start(options, seed))


def _shallow(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return ShallowGLN(sample.X.shape[1], sample.gates, **_start(options, seed))


def _linear(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return DeepLinear(sample.X.shape[1], **_start(options, seed))


def _deep_linear(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    widths = (options.hidden_units,) * (options.depth - 1)
    return DeepLinear(sample.X.shape[1], hidden_widths=widths, **_start(options, seed))


def _frelu(sample: Sample, options: Options, seed: int) -> torch.nn.Module:
    return FReLU(sample.X.shape[1], sample.gates.shape[1], **_start(options, seed))


FAMILIES = {
    "deep-linear": Family(_no_gates, _solve_linear, _deep_linear, "hard-margin SVM", "deep linear"),
    "frelu": Family(_gates, _solve_frelu, _frelu, "SVM-FReLU", "frozen-gate ReLU network"),
    "gln": Family(_contexts, _solve_gln, _gln, "SVM-GLN", "GLN"),
    "gln-l2": Family(_contexts, _solve_gln_l2, _gln, "SVM-L2", "GLN"),
    "linear": Family(_no_gates, _solve_linear, _linear, "hard-margin SVM", "linear predictor"),
    "shallow-gln": Family(_contexts, _solve_shallow, _shallow, "one SVM a context", "shallow GLN"),
}
