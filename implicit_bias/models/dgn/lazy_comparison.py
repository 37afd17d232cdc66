"""Networks at large output scales beside the kernel of their start, and one that leaves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.arrays import Floats
from ...data.sample import Sample
from ...limits.exact.linear import HardMarginSVM
from ...limits.kernels.regression import KernelRegression, kernel_regression
from ...limits.kernels.tangent import empirical_ntk
from ...measures.bounded_value import flat_weights, value_of
from ...measures.scalars import cosine, scores
from ...quantities.formatting import DASH, number
from ...quantities.measured import Measured, part, quantity, side_by_side
from ...quantities.said import Table
from ...quantities.table import lines

if TYPE_CHECKING:
    import torch

    from ...networks.linearised import ScaledNetwork
    from ...training.trajectory import Trajectory

_DRIFTS = ("weight_drift", "kernel_drift", "kernel_alignment")
# What falls like 1 / alpha, by the theorem.
PROVED = ("law_error", "held_out_error", "weight_drift", "kernel_drift")


class Drift:
    """An observer for `train`: how far a network is from its start, in weights and in kernel.

    Parameters
    ----------
    start : Module
        The network as it began; kept as a copy by the caller.
    train : Sample
    kernel : (n, n) array
        Its tangent kernel.
    optimum : float
        Of the hard-margin SVM of that kernel; NaN where it is not asked for.
    """

    def __init__(
        self, start: torch.nn.Module, train: Sample, kernel: Floats, optimum: float = math.nan
    ) -> None:
        self._train, self._kernel, self._optimum = train, kernel, optimum
        self._weights, self._scores = flat_weights(start), scores(start, train)

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        """Measure a network, or the one in a `ScaledNetwork`, whose errors are kept then."""
        inner = getattr(network, "network", network)
        now = empirical_ntk(inner, self._train.X, self._train.gates)
        moved = flat_weights(inner) - self._weights
        gained = scores(inner, self._train) - self._scores
        size = float(np.linalg.norm(moved))
        found: dict[str, Any] = {
            "weight_drift": size / float(np.linalg.norm(self._weights)),
            "kernel_drift": float(np.linalg.norm(now - self._kernel) / norm(self._kernel)),
            "kernel_alignment": cosine(now.ravel(), self._kernel.ravel()),
        }
        if inner is not network:
            return found | {"errors": scores(network, self._train) - self._train.y}
        margin = float((self._train.y * gained).min())
        ratio = margin / size * self._optimum if size > 0 else math.nan
        return found | {"kernel_ratio": ratio, "value": value_of(network, self._train)}


class ScaleComparison(Measured):
    """A network at one output scale beside kernel regression; all measured."""

    scale: float = part("Factor alpha on the network's output.")
    law_error: float = quantity(
        column="lazy_law_error",
        doc="Largest distance of its errors from ``(I - eta K)^N e_0`` at a checkpoint, as a share "
        "of the first errors.",
    )
    held_out_error: float = quantity(
        column="lazy_held_out_error",
        doc="Distance of held-out scores from those of kernel descent after as many steps, as a "
        "share of these; NaN without gates of held-out inputs.",
    )
    limit_error: float = quantity(
        "held-out scores off its end", doc="The same from the end of kernel regression."
    )
    remaining: float = quantity(
        "training errors left", doc="Training errors at the end as a share of the first."
    )
    weight_drift: float = quantity(doc="``|w - w_0| / |w_0|`` at the end.")
    kernel_drift: float = quantity("|K - K0| / |K0|", doc="``|K - K_0| / |K_0|`` at the end.")
    kernel_alignment: float = quantity(doc="Cosine of K and K_0 at the end.")


def compare_scale(
    network: ScaledNetwork,
    trajectory: Trajectory,
    regression: KernelRegression,
    rate: float,
    held_out: tuple[Sample, Floats] | None,
    kernel: Floats,
) -> ScaleComparison:
    """Compare the network of one output scale with descent on the constant kernel.

    Parameters
    ----------
    network : ScaledNetwork
        As it ended.
    trajectory : Trajectory
        With what a `Drift` has observed.
    regression : KernelRegression
        Of the kernel on the training data.
    rate : float
        Of the steps on 1/2 sum of squared errors.
    held_out : (Sample, (m, n) array) or None
        Held-out data and their tangent kernel with the training data, at the start.
    kernel : (n, n) array
        The tangent kernel at the start.
    """
    predicted = regression.after(trajectory.step, rate)
    errors, first = trajectory.observed["errors"], norm(regression.start)
    away = np.linalg.norm(errors - predicted, axis=1) / first
    found = {"held_out_error": math.nan, "limit_error": math.nan}
    if held_out is not None:
        sample, cross = held_out
        trained = scores(network, sample)
        # K c = (I - (I - eta K)^N) y has the coefficients of N steps.
        then = kernel_regression(kernel, predicted[-1] - regression.start).limit(cross)
        end = regression.limit(cross)
        found = {
            "held_out_error": norm(trained - then) / norm(then),
            "limit_error": norm(trained - end) / norm(end),
        }
    last = {name: float(trajectory.observed[name][-1]) for name in _DRIFTS}
    return ScaleComparison(
        scale=network.scale,
        law_error=float(away.max()),
        remaining=norm(errors[-1]) / first,
        **found,
        **last,
    )


def exponents(found: Sequence[ScaleComparison]) -> dict[str, float]:
    """Exponents of those errors over output scales that fall like 1 / alpha, by their names.

    Slopes of log error over log scale, by least squares; NaN where there are no two scales.
    """
    scales = [one.scale for one in found]
    slopes = dict.fromkeys(PROVED, math.nan)
    for name in PROVED:
        errors = [getattr(one, name) for one in found]
        if len(set(scales)) > 1 and all(error > 0 for error in errors):
            slopes[name] = float(np.polyfit(np.log(scales), np.log(errors), 1)[0])
    return slopes


def regression_table(regression: KernelRegression, svm: Mapping[str, Any]) -> Table:
    """A table of the predictions for both losses, with certificates."""
    rows = (
        ("squared loss", "kernel regression", "theorem, alpha to infinity"),
        ("  rank of the kernel", f"{regression.rank} of {len(regression.start)}", "certified"),
        ("  condition number", number(regression.condition), "certified"),
        (
            "  residual of its equations (ideal 0)",
            number(regression.certificate.remaining),
            "certified",
        ),
        ("exponential-like loss, linearised", HardMarginSVM.name, "theorem"),
        ("  status", str(svm["status"]), "certified"),
        *((*line, "certified") for line in lines(svm, "objective", "gap")),
    )
    return Table("what the tangent kernel of the start predicts", ("", "value", "what"), rows)


def scales_table(found: Sequence[ScaleComparison]) -> Table:
    """A table with one column a scale, and the exponents that are proved."""
    slopes = exponents(found)
    names = [name for name, one in ScaleComparison.declared.items() if one.shown]
    rows = [
        (*line, number(slopes[name], ".3f") if name in slopes else DASH)
        for name, line in zip(names, side_by_side(found, *names), strict=True)
    ]
    columns = ("", *(f"alpha {one.scale:g}" for one in found), "exponent (-1)")
    return Table("networks at output scales (measured)", columns, tuple(rows))


class Departure(Measured):
    """A network under an exponential-like loss, which leaves the kernel of its start."""

    weight_drift: float = quantity()
    kernel_alignment: float = quantity()
    kernel_ratio: float = quantity(column="departure_kernel_ratio")
    value: float = quantity("value (||w||^2 / L)^(L/2) / margin")


def departure(trajectory: Trajectory, row: int) -> Departure:
    """The network at a row of its trajectory, of what a `Drift` has observed."""
    names = Departure.declared
    return Departure(**{name: float(trajectory.observed[name][row]) for name in names})


def departure_table(trajectory: Trajectory, rows: Sequence[int]) -> Table:
    """A table of the network under an exponential-like loss, at rows of its trajectory."""
    title = (
        "an exponential-like loss leaves the kernel (measured; above 1 is no linearised network)"
    )
    columns = ("", *(f"step {int(trajectory.step[row])}" for row in rows))
    return Table(title, columns, tuple(side_by_side([departure(trajectory, row) for row in rows])))


def norm(values: Floats) -> float:
    """Euclidean norm."""
    return float(np.linalg.norm(values))
