"""Pictures of gated and rectified units on a ring; every function draws on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...runs.drawing.figures import STEPS, legend_above, legend_below
from ...runs.drawing.palette import BLACK, BLUE, VERMILLION
from ...training.trajectory import Trajectory
from .comparison import GDLNComparison, inverse_participation_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colour, style and width of each line of a unit.
_TRAINED, _INITIAL, _FINAL = (BLACK, "-", 2.2), (BLUE, "--", 1.3), (VERMILLION, ":", 1.6)


def plot_unit(comparison: GDLNComparison, unit: int, ax: Axes) -> Axes:
    """Draw one trained unit's weights over the ring, with both predictions at the trained time.

    Raises
    ------
    ValueError
        If there is no such unit.
    """
    n_units, n_inputs = comparison.weights.shape
    if not 0 <= unit < n_units:
        raise ValueError(f"`unit` must lie in 0 .. {n_units - 1}, got {unit}")
    initial, final = comparison.prediction("initial"), comparison.prediction("final")
    place = np.arange(n_inputs)
    ax.axhline(0.0, color="0.85", linewidth=0.8, zorder=0)
    for label, weights, (color, style, width) in (
        ("ReLU, trained", comparison.weights, _TRAINED),
        ("gated linear, initial gates", initial.weights, _INITIAL),
        ("gated linear, final gates", final.weights, _FINAL),
    ):
        ax.plot(place, weights[unit], color=color, linestyle=style, linewidth=width, label=label)
    ax.set_title(
        f"unit {unit}: cosine {initial.cosines[unit]:.2f} initial, {final.cosines[unit]:.2f} final",
        fontsize=9,
    )
    ax.set_xlabel("input on the ring")
    return ax


def plot_units(axes: Sequence[Axes], comparison: GDLNComparison) -> Sequence[Axes]:
    """Draw the first units, one on each of the axes, with one legend below for all."""
    for unit, ax in enumerate(axes[: len(comparison.weights)]):
        plot_unit(comparison, unit, ax)
        ax.tick_params(labelsize=8)
    for ax in axes[len(comparison.weights) :]:
        ax.set_visible(False)
    axes[0].set_ylabel("weight")
    legend_below(axes[0], columns=3)
    return axes


def plot_localisation(ax: Axes, trajectory: Trajectory, *, label: str = "units") -> Axes:
    """Draw the inverse participation ratio of every unit over training, and their mean."""
    ratios = inverse_participation_ratio(trajectory.observed["weights"])
    n_inputs = trajectory.observed["weights"].shape[2]
    mean = ax.plot(trajectory.step, ratios.mean(axis=1), linewidth=2.2, label=f"{label}, mean")[0]
    ax.plot(trajectory.step, ratios, color=mean.get_color(), linewidth=0.7, alpha=0.35)
    noise = "Gaussian noise"
    if noise not in {line.get_label() for line in ax.get_lines()}:
        ax.axhline(3 / (n_inputs + 2), color="0.5", linestyle="--", linewidth=1, label=noise)
    ax.set_ylabel("inverse participation ratio")
    return _over_steps(ax, trajectory)


def plot_loss(ax: Axes, trajectory: Trajectory, *, label: str) -> Axes:
    """Draw the training loss over steps."""
    ax.plot(trajectory.step, trajectory.loss, label=label)
    ax.set_yscale("log")
    ax.set_ylabel("loss")
    return _over_steps(ax, trajectory)


def plot_losses(relu: Trajectory, twin: Trajectory | None, ax: Axes) -> None:
    """Draw the loss of the ReLU network, and of its gated twin if there is one."""
    plot_loss(ax, relu, label="ReLU")
    if twin is not None:
        plot_loss(ax, twin, label="gated linear, initial gates")


def plot_sign_flips(ax: Axes, trajectory: Trajectory, *, label: str = "ReLU") -> Axes:
    """Draw the share of gates that differ from their start over steps."""
    ax.plot(trajectory.step, trajectory.observed["sign_flips"], label=label)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("gates flipped since the start")
    return _over_steps(ax, trajectory)


def _over_steps(ax: Axes, trajectory: Trajectory) -> Axes:
    # Step 0 has a place on a logarithmic axis only where it is linear near zero.
    ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xlim(0.0, max(float(trajectory.step[-1]), 1.0))
    ax.set_xlabel(STEPS)
    legend_above(ax)
    return ax
