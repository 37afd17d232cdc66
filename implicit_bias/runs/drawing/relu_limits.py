"""Pictures of a certified local optimum of a ReLU network: its dual function, or its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...limits.relu.limit import ReLULocalLimit
from .figures import legend_above
from .palette import BLUE, GREEN, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Directions of the circle, and of a sphere in latitude; twice as many in longitude.
_CIRCLE, _SPHERE = 1440, 180
# A point that is certified to be so, up to the gap.
_KINDS = {
    Status.GLOBAL_OPTIMUM: "best of all widths",
    Status.LOCAL_OPTIMUM: "local optimum",
    Status.LIVE_OPTIMUM: "optimum of its live units",
    Status.SADDLE: "saddle",
    Status.STATIONARY: "stationary point",
}


def plot_relu_limit(limit: ReLULocalLimit, ax: Axes) -> Axes:
    """Draw what is known of a local optimum.

    With support samples of rank 2 the dual function over the circle, over its largest value at the
    units, which are dots at 1, their cones shaded; at rank 3 its size over the sphere, unrolled;
    otherwise the value after each convex program.

    Parameters
    ----------
    limit : ReLULocalLimit
    ax : matplotlib axes
    """
    ax.set_title(f"{_KINDS.get(limit.status, 'no local optimum')}, gap {limit.gap:.0e}")
    rank = 0
    if len(limit.units):
        sizes = np.linalg.svd(limit.support_inputs, compute_uv=False)
        rank = int(np.sum(sizes > 1e-9 * sizes[0]))
    if rank == 2:
        return _circle(limit, ax)
    return _sphere(limit, ax) if rank == 3 else _values(limit, ax)


def _basis(limit: ReLULocalLimit, rank: int) -> Floats:
    """Orthonormal rows (rank, D) that span the support samples."""
    return np.asarray(np.linalg.svd(limit.support_inputs, full_matrices=False)[2][:rank])


def _dual(limit: ReLULocalLimit, v: Floats) -> Floats:
    """The dual function at directions (k, D), over its largest value at the units."""
    weights = limit.multipliers[limit.support] * limit.support_labels
    z = v @ limit.support_inputs.T
    found = (limit.slope * z + (1 - limit.slope) * np.maximum(z, 0.0)) @ weights
    return np.asarray(found * limit.bound / limit.multipliers.sum())


def _circle(limit: ReLULocalLimit, ax: Axes) -> Axes:
    basis = _basis(limit, 2)
    angles = np.linspace(-180, 180, _CIRCLE)
    turned = np.radians(angles)
    values = _dual(limit, np.column_stack([np.cos(turned), np.sin(turned)]) @ basis)
    for sign, color, name in ((1.0, BLUE, "positive units"), (-1.0, VERMILLION, "negative units")):
        ax.plot(angles, sign * values, color=color, label=f"dual function of {name}")
        own = limit.units[limit.signs == sign] @ basis.T
        places = np.degrees(np.arctan2(own[:, 1], own[:, 0]))
        norms = np.linalg.norm(own, axis=1, keepdims=True)
        ax.plot(places, sign * _dual(limit, own / norms @ basis), "o", color=color)
        samples = limit.support_inputs[limit.support_labels == sign] @ basis.T
        for place in places:
            ax.axvspan(*_cone(place, samples), color=color, alpha=0.15, linewidth=0)
    ax.axhline(1, color="0.6", linewidth=0.8)
    ax.set(xlim=(-180, 180), xlabel="direction of a unit, degrees")
    ax.set_ylabel("over its value at the units")
    legend_above(ax)
    return ax


def _cone(place: float, samples: Floats) -> tuple[float, float]:
    """The kinks next to a direction on both sides, in degrees."""
    if not len(samples):
        return place - 180, place + 180
    kinks = np.degrees(np.arctan2(samples[:, 0], -samples[:, 1]))
    away = np.mod(np.concatenate([kinks, kinks + 180]) - place, 360)
    return place - float(np.min(360 - away)), place + float(np.min(away))


def _sphere(limit: ReLULocalLimit, ax: Axes) -> Axes:
    basis = _basis(limit, 3)
    latitude = np.radians(np.linspace(-90, 90, _SPHERE))[:, None]
    longitude = np.radians(np.linspace(-180, 180, 2 * _SPHERE))[None, :]
    v = np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude) + 0 * longitude,
        ],
        axis=-1,
    )
    values = _dual(limit, v.reshape(-1, 3) @ basis).reshape(v.shape[:2])
    largest = max(1.0, float(np.abs(values).max()))
    image = ax.imshow(
        values, origin="lower", extent=(-180, 180, -90, 90), cmap="RdBu", vmin=-largest,
        vmax=largest, aspect="auto",
    )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="dual function over its size at the units")
    own = limit.units @ basis.T
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    for sign, marker, name in ((1.0, "^", "positive units"), (-1.0, "v", "negative units")):
        one = own[limit.signs == sign]
        ax.plot(
            np.degrees(np.arctan2(one[:, 1], one[:, 0])),
            np.degrees(np.arcsin(one[:, 2])),
            marker, color="k", markerfacecolor="w", label=name,
        )  # fmt: skip
    ax.set(xlabel="longitude of a unit's direction, degrees", ylabel="latitude, degrees")
    legend_above(ax)
    return ax


def _values(limit: ReLULocalLimit, ax: Axes) -> Axes:
    values = (limit.start_value, *limit.values)
    ax.plot(range(len(values)), values, "o-", color=BLUE, label="value after each program")
    bounds = {"lower bound in its cones": limit.bound}
    if limit.certificate.lower_bound > 0:
        bounds["lower bound of all widths"] = limit.certificate.lower_bound
    for (name, bound), style in zip(bounds.items(), ("-", ":"), strict=False):
        ax.axhline(bound, color=GREEN, linestyle=style, linewidth=1.2, label=name)
    ax.set(xlabel="convex programs", ylabel="value")
    ax.set_xticks(range(len(values)))
    legend_above(ax)
    return ax
