"""Classifiers beside a deep gated network: its local limit, path lasso, machines of two kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..._solve import to_numpy
from ...data.sample import Sample
from ...kernels.margin import KernelLimit, solve_kernel_svm
from ...kernels.overlap import neural_path_kernel
from ...kernels.tangent import empirical_ntk
from ...limits.path_limit import PathLimit
from ...local_limits.limit import LocalLimit
from ...runs.setup import SampleSetup
from .comparison import Predicted, compare_scores
from .parts import make_network, path_gates

__all__ = ["predicted_beside"]


def predicted_beside(
    setup: SampleSetup,
    local: LocalLimit,
    bound: PathLimit,
    train_sample: Sample,
    held_out: Sample | None,
    scores: Any,
) -> dict[str, Predicted]:
    """Every classifier beside the network, with its certificate."""
    y = setup.held_out.y
    beside = partial(compare_scores, trained=scores, y=y)
    own = bound_scores = None
    if held_out is not None:
        own = local.predictor(held_out.X, held_out.gates)
        bound_scores = to_numpy(bound.predictor(held_out.X, held_out.gates))
    found = {
        "local limit": beside(local.status.name, local.residual, own),
        "path lasso": beside(bound.status.name, bound.gap, bound_scores),
    }
    for name, (machine, cross) in _machines(setup, train_sample, held_out).items():
        usable_one = machine.certificate.proves_separability() and cross is not None
        known = machine.predictor(cross) if usable_one else None
        found[name] = beside(machine.status.name, machine.gap, known)
    return found


def _machines(
    setup: SampleSetup, train_sample: Sample, held_out: Sample | None
) -> dict[str, tuple[KernelLimit, Any]]:
    """Hard-margin SVMs of the path kernel and of the tangent kernel at the start."""
    options = setup.options
    X, y, gates = train_sample
    columns, widths = path_gates(options, gates)
    at_start = make_network(options, X.shape[1], setup.seeds.weights)
    kernels = {
        "NPK": neural_path_kernel(X, columns, widths=widths),
        "NTK": empirical_ntk(at_start, X, gates),
    }
    crosses: dict[str, Any] = dict.fromkeys(kernels)
    if held_out is not None:
        new = path_gates(options, held_out.gates)[0]
        crosses = {
            "NPK": neural_path_kernel(held_out.X, new, X, columns, widths=widths),
            "NTK": empirical_ntk(at_start, held_out.X, held_out.gates, X, gates),
        }
    return {
        name: (solve_kernel_svm(kernel, y, tol=options.tol), crosses[name])
        for name, kernel in kernels.items()
    }
