"""Rows of decision maps: of the limit, and of the network at steps of its training."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.solve import to_numpy
from ...data.arrays import Floats as Array
from ...data.arrays import is_planar
from ...data.sample import Sample
from ...limits.limit import Limit
from ...measures.scalars import network_norm, scores
from ...training.network_snapshots import NetworkSnapshots, logarithmic_steps
from .decision_maps import DecisionMap, plot_decision_maps
from .figures import Row

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

# The limit and the network at three times fill a row of the figure.
TIMES = 3


def plane_snapshots(network: torch.nn.Module, X: Array, n_steps: int) -> NetworkSnapshots | None:
    """Return a callback that stores the network at steps to draw; None if `X` is not planar."""
    # The start says little: without it, times are spread over the training itself.
    return (
        NetworkSnapshots(network, logarithmic_steps(n_steps, TIMES + 1)[1:])
        if is_planar(X)
        else None
    )


def map_row(
    limit: Limit,
    snapshots: NetworkSnapshots,
    train: Sample,
    transform: Callable[[Array], Any],
    *,
    network_gates: Callable[[Array], Any] | None = None,
    limit_title: str,
    lines: Callable[[torch.nn.Module | None], Array | None],
) -> Row:
    """Return a row of decision maps, the limit's first, on one colour scale.

    Parameters
    ----------
    limit : Limit
        The predicted limit.
    snapshots : NetworkSnapshots
        The network at steps of its training.
    train : Sample
        The samples to draw.
    transform : callable
        The limit's gates of new inputs.
    network_gates : callable, optional
        The network's gates of new inputs, if they differ from the limit's.
    limit_title : str
        Title of the limit's map.
    lines : callable
        `lines(network)` returns the hyperplanes (K, 3) where its gates change, those of the limit
        for None.
    """
    gates = network_gates or transform

    limit_scores = partial(_limit_scores, limit, transform)
    maps = [DecisionMap(limit_title, limit_scores, limit.objective, lines(None))]
    for step, network in snapshots:
        norm = network_norm(limit, network)
        title = f"network after {step} steps" if step else "network at the start"
        own_scores = partial(_network_scores, network, gates)
        maps.append(
            DecisionMap(title, own_scores, norm if 0 < norm < math.inf else 1.0, lines(network))
        )
    return Row(len(maps), partial(_draw, maps, train), height=3.4)


def _network_scores(network: torch.nn.Module, gates: Callable[[Array], Any], X: Array) -> Array:
    return scores(network, Sample(X, np.ones(len(X)), gates(X)))


def _limit_scores(limit: Limit, gates: Callable[[Array], Any], X: Array) -> Array:
    return to_numpy(limit.predictor(X, gates(X)))


def _draw(maps: list[DecisionMap], train: Sample, axes: list[Axes]) -> None:
    plot_decision_maps(axes, maps, train.X, train.y)


def gating_lines(gating: Any, X: Array) -> Array | None:
    """Return lines (K, 3) of fitted contexts or gates on planar inputs; None if there are none.

    Gates that are no hyperplanes have no lines.
    """
    hyperplanes = getattr(gating, "contexts_", gating)
    if not hasattr(hyperplanes, "normals_"):
        return None
    normals = hyperplanes.normals_.reshape(-1, X.shape[1])
    return plane_lines(normals, hyperplanes.cutoffs_.ravel(), X)


def plane_lines(normals: Array, cutoffs: Array, X: Array) -> Array:
    """Return the lines `a x_1 + b x_2 = c`, rows (a, b, c), where hyperplanes cut the plane."""
    # <w, (x_1, x_2, constant)> = b is a line of the plane with the constant's share moved over.
    shift = normals[:, 2] * X[0, 2] if X.shape[1] == 3 else 0.0
    return np.column_stack([normals[:, :2], cutoffs - shift])
