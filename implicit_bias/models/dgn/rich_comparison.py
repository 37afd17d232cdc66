"""The rich regime measured: values along training, classifiers, and which limit each start has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.arrays import Floats
from ...data.sample import Sample
from ...limits.exact.path_limit import PathLimit
from ...limits.kernels.margin import solve_kernel_svm
from ...limits.kernels.overlap import neural_path_kernel
from ...limits.kernels.tangent import empirical_ntk
from ...limits.local.limit import LocalLimit
from ...limits.local.orbits import lowest_curvature
from ...measures.bounded_value import BoundedValue, flat_weights, value_of
from ...measures.classifiers import ClassifierComparison, compare_classifier
from ...measures.kkt import kkt_distance
from ...quantities.formatting import DASH, number
from ...quantities.said import Table
from ...quantities.table import TABLE
from ...runs.reports.bounds import LASSO, LOCAL
from .gated_layers import DGNSetup, held_out_of, path_gates, widths_of

if TYPE_CHECKING:
    import torch

    from ...training.trajectory import Trajectory


class ValueObserver:
    """An observer for `train`: the value, the distance from the KKT conditions, and the weights.

    Parameters
    ----------
    train : Sample
        Numbers are NaN while the network does not separate it.
    """

    def __init__(self, train: Sample) -> None:
        self._train = train

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        """Measure `network`: "value", "kkt_residual" and "weights" (P,)."""
        value, residual = value_of(network, self._train), math.nan
        if math.isfinite(value):
            residual = kkt_distance(network, *self._train, kinks=False).residual
        return {"value": value, "kkt_residual": residual, "weights": flat_weights(network)}


def distances_along(trajectory: Trajectory, local: LocalLimit) -> Floats:
    """(T,) distances of the weights at checkpoints from a local limit, all at smallest margin 1.

    As shares of the norm of the limit; NaN where the network does not separate.
    """
    weights, limiting = trajectory.observed["weights"], flat_weights(local.network)
    degree = len(list(local.network.parameters()))
    squares = np.sum(weights**2, axis=1)
    # The value at smallest margin 1 is (||w||^2 / L)^(L/2).
    norms = np.sqrt(degree * trajectory.observed["value"] ** (2 / degree))
    unit = weights / np.sqrt(squares)[:, None]
    found: Floats = np.linalg.norm(norms[:, None] * unit - limiting, axis=1)
    return found / float(np.linalg.norm(limiting))


def compare_classifiers(
    setup: DGNSetup, local: LocalLimit, bound: PathLimit, trained: Floats | None
) -> dict[str, ClassifierComparison]:
    """Compare the local limit, the path lasso and SVMs of two kernels with the network.

    Parameters
    ----------
    setup : DGNSetup
    local : LocalLimit
    bound : PathLimit
    trained : (m,) array or None
        Held-out scores of the network.

    Returns
    -------
    mapping of str to ClassifierComparison
        The kernels are the path kernel of the gates, and the tangent kernel of the start.
    """
    options, train, new = setup.options, setup.train, held_out_of(setup)
    compare = partial(compare_classifier, trained=trained, y=setup.held_out.y)
    inputs = None if new is None else (new.X, new.gates)
    found = [compare(LOCAL, local, inputs), compare(LASSO, bound, inputs)]
    widths = [width * (options.contexts or 1) for width in widths_of(options)]
    # Each kernel with the gates that it sees.
    kernels: dict[str, tuple[Callable[..., Floats], Callable[[Any], Any]]] = {
        "NPK": (partial(neural_path_kernel, widths=widths), partial(path_gates, options)),
        "NTK": (partial(empirical_ntk, setup.network), lambda gates: gates),
    }
    for name, (kernel, seen) in kernels.items():
        known = (train.X, seen(train.gates))
        machine = solve_kernel_svm(kernel(*known), train.y, tol=options.tol)
        cross = None if new is None else (kernel(new.X, seen(new.gates), *known),)
        found.append(compare(name, machine, cross))
    return {one.name: one for one in found}


def starts_table(values: Sequence[BoundedValue], reached: Sequence[int | None]) -> Table:
    """A table with one row a start: which limit it is heading to.

    Parameters
    ----------
    values : sequence of BoundedValue
        Of the networks of all starts.
    reached : sequence of int or None
        The number of the limit of each: see `limits_reached`.
    """
    rows = []
    for index, (one, which) in enumerate(zip(values, reached, strict=True), start=1):
        if one.local is None:
            rows.append((str(index), "not separating", *[DASH] * 5))
            continue
        rows.append(
            (
                str(index),
                one.local.status.name,
                DASH if which is None else f"#{which}",
                number(one.local_value, ".6g"),
                one.text("local_ratio"),
                one.text("local_bound_ratio"),
                number(lowest_curvature(one.local), ".2g"),
            )
        )
    n_limits = len({which for which in reached if which is not None})
    title = f"which limit is reached: {n_limits} from {len(values)} starts"
    if any(one.local is not None and one.local.n_zero_modes for one in values):
        title += ", up to rotations of units"
    ratios = (TABLE[name].label for name in ("local_ratio", "local_bound_ratio"))
    columns = ("start", "status", "limit", "value", *ratios, "curvature")
    return Table(title, columns, tuple(rows))
