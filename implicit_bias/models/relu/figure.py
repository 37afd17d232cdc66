"""The picture of a ReLU network's training, and of the copy that froze its gates on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..._solve import to_numpy
from ...data.sample import Sample
from ...drawing.decision_maps import map_row, plane_lines
from ...drawing.figures import Panel, Row, legend_above
from ...drawing.runs import plot_gate_changes, plot_margin_ratio, plot_margins, plot_run
from ...gates.changes import GateChanges
from ...limits.limit import Limit
from ...training.snapshots import Snapshots
from ...training.trajectory import Trajectory
from .formulation import FReLULimit
from .network import DeepReLU

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .frozen_run import FrozenRun

__all__ = ["relu_figure", "relu_lines", "relu_map_row"]


def relu_figure(
    trajectory: Trajectory,
    changes: GateChanges,
    frozen: FrozenRun | None,
    *,
    below: Sequence[Row] = (),
) -> Figure:
    """The network over training, its gates, and the frozen copy on the way to its own limit."""
    panels: list[Panel] = [lambda ax: _gates(ax, changes, frozen)]
    after = None if frozen is None else frozen.parts.after
    if frozen is not None and after is not None:
        panels.append(partial(_copy, frozen.limit, after))
    # The gates have a panel above, with the freeze in it.
    others = {k: v for k, v in trajectory.observed.items() if k != "gate_changes"}
    trajectory = replace(trajectory, observed=others)
    return plot_run(trajectory, title="ReLU network over training", panels=panels, below=below)


def relu_map_row(
    machine: FReLULimit, network: DeepReLU, snapshots: Snapshots, train: Sample
) -> Row:
    """The machine on the gates of the end beside the network, with the lines of its first layer."""
    return map_row(
        machine,
        snapshots,
        train,
        lambda X: to_numpy(network.gates(X)).astype(np.float64),
        network_gates=lambda X: None,
        limit_title="SVM-LC, gates of the end",
        lines=lambda at: relu_lines(network if at is None else at, train.X),
    )


def relu_lines(network: torch.nn.Module, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Hyperplanes (H, 3) of the first layer `w1` (H, D) of a ReLU network."""
    normals = to_numpy(network.w1).astype(np.float64)  # type: ignore[arg-type]
    return plane_lines(normals, np.zeros(len(normals)), X)


def _gates(ax: Axes, changes: GateChanges, frozen: FrozenRun | None) -> None:
    plot_gate_changes(changes.step, changes.since_start, ax)
    if frozen is not None:
        step = frozen.comparison.freeze_at
        ax.axvline(step, color="0.6", linestyle=":", label=f"a copy freezes them at {step}")
        legend_above(ax)


def _copy(limit: Limit, after: Trajectory, ax: Axes) -> None:
    if limit.certificate.proves_separability() and after.smallest_margin.max() > 0:
        plot_margin_ratio(after, limit, ax)
    else:
        plot_margins(after, ax)
    ax.set_xlabel("gradient steps since the freeze")
    ax.set_ylabel(f"frozen copy: {ax.get_ylabel()}")
