"""Panels of a ReLU network's training, and of the copy that froze its gates on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import to_numpy
from ...data.sample import Sample
from ...limits.exact.frelu import FReLULimit
from ...limits.limit import Limit
from ...networks.relu import DeepReLU
from ...runs.drawing.figures import Panel, Row, legend_above
from ...runs.drawing.map_rows import map_row, plane_lines
from ...runs.drawing.runs import plot_gate_changes, plot_margin_ratio, plot_margins, run_panels
from ...training.network_snapshots import NetworkSnapshots
from ...training.trajectory import Trajectory

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes


def network_panels(trajectory: Trajectory, freeze_at: int | None) -> tuple[Panel, ...]:
    """The network over training, and its gates with the step at which a copy freezes them."""
    others = {k: v for k, v in trajectory.observed.items() if k != "gate_changes"}
    return (
        *run_panels(replace(trajectory, observed=others)),
        partial(_gates, trajectory, freeze_at),
    )


def relu_map_row(
    machine: FReLULimit, network: DeepReLU, snapshots: NetworkSnapshots, train: Sample
) -> Row:
    """The machine on the gates of the end beside the network, with the lines of its first layer."""
    return map_row(
        machine,
        snapshots,
        train,
        partial(_gates_of, network),
        network_gates=_no_gates,
        limit_title="SVM-LC, gates of the end",
        lines=lambda at: relu_lines(network if at is None else at, train.X),
    )


def relu_lines(network: torch.nn.Module, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hyperplanes (H, 3) of the first layer `w1` (H, D) of a ReLU network."""
    normals = to_numpy(network.w1).astype(np.float64)  # type: ignore[arg-type]
    return plane_lines(normals, np.zeros(len(normals)), X)


def _gates_of(network: DeepReLU, X: NDArray[np.float64]) -> NDArray[np.float64]:
    return to_numpy(network.gates(X)).astype(np.float64)


def _no_gates(X: NDArray[np.float64]) -> None:
    """A ReLU network sets its gates itself."""


def _gates(trajectory: Trajectory, freeze_at: int | None, ax: Axes) -> None:
    plot_gate_changes(trajectory.step, trajectory.observed["gate_changes"], ax)
    if freeze_at is not None:
        label = f"a copy freezes them at {freeze_at}"
        ax.axvline(freeze_at, color="0.6", linestyle=":", label=label)
        legend_above(ax)


def plot_frozen_copy(limit: Limit, after: Trajectory, ax: Axes) -> None:
    """Draw the copy with frozen gates on the way to its own limit."""
    if limit.certificate.proves_separability() and after.smallest_margin.max() > 0:
        plot_margin_ratio(after, limit, ax)
    else:
        plot_margins(after, ax)
    ax.set_xlabel("gradient steps since the freeze")
    ax.set_ylabel(f"frozen copy: {ax.get_ylabel()}")
