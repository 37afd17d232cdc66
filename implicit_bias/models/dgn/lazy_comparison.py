"""Networks at large output scales beside the kernel of their start, and one that leaves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._shown import Shown
from ...data.arrays import Floats
from ...data.sample import Sample
from ...kernels.regression import KernelRegression, kernel_regression
from ...kernels.tangent import empirical_ntk
from ...measures.formatting import DASH, number
from ...measures.scalars import cosine, placed_scores
from ...reports.finding import Table
from ...training.data import place_data
from .comparison import flat_weights, value_of

if TYPE_CHECKING:
    import torch

    from ...networks.linearised import ScaledNetwork
    from ...training.trajectory import Trajectory

__all__ = [
    "Drift",
    "ScaleComparison",
    "compare_scale",
    "departure_table",
    "exponent",
    "law",
    "regression_table",
    "scales_table",
]


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
        self._weights, self._scores = flat_weights(start), _scores(start, train)

    def __call__(self, network: torch.nn.Module) -> dict[str, Any]:
        """Of a network, or of the one in a `ScaledNetwork`, whose errors are kept then."""
        inner = getattr(network, "network", network)
        now = empirical_ntk(inner, self._train.X, self._train.gates)
        moved = flat_weights(inner) - self._weights
        gained = _scores(inner, self._train) - self._scores
        size = float(np.linalg.norm(moved))
        found: dict[str, Any] = {
            "weight_drift": size / float(np.linalg.norm(self._weights)),
            "kernel_drift": float(np.linalg.norm(now - self._kernel) / norm(self._kernel)),
            "kernel_alignment": cosine(now.ravel(), self._kernel.ravel()),
        }
        if inner is not network:
            return found | {"errors": _scores(network, self._train) - self._train.y}
        margin = float((self._train.y * gained).min())
        ratio = margin / size * self._optimum if size > 0 else math.nan
        return found | {"kernel_ratio": ratio, "value": value_of(network, self._train)}


@dataclass(frozen=True, repr=False)
class ScaleComparison(Shown):
    """A network at one output scale beside kernel regression; all measured.

    Attributes
    ----------
    scale : float
    law_error : float
        Largest distance of its errors from ``(I - eta K)^N e_0`` at a checkpoint, as a share of
        the first errors.
    held_out_error : float
        Distance of held-out scores from those of kernel descent after as many steps, as a share
        of these; NaN without gates of held-out inputs.
    limit_error : float
        The same from the end of kernel regression.
    remaining : float
        Training errors at the end as a share of the first.
    weight_drift, kernel_drift, kernel_alignment : float
        ``|w - w_0| / |w_0|``, ``|K - K_0| / |K_0|`` and the cosine of K and K_0 at the end.
    """

    scale: float
    law_error: float
    held_out_error: float
    limit_error: float
    remaining: float
    weight_drift: float
    kernel_drift: float
    kernel_alignment: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain Python values."""
        return asdict(self)


def law(regression: KernelRegression, steps: Floats, rate: float) -> Floats:
    """(T, n) errors of kernel descent after numbers of steps (T,)."""
    return regression.after(steps, rate)


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
    rate : float
        Of the steps on 1/2 sum of squared errors.
    held_out : (Sample, (m, n) array) or None
        Held-out data and their tangent kernel with the training data, at the start.
    kernel : (n, n) array
        The tangent kernel at the start.
    """
    predicted = law(regression, trajectory.step, rate)
    errors, first = trajectory.observed["errors"], norm(regression.start)
    away = np.linalg.norm(errors - predicted, axis=1) / first
    found = {"held_out_error": math.nan, "limit_error": math.nan}
    if held_out is not None:
        sample, cross = held_out
        scores = _scores(network, sample)
        # K c = (I - (I - eta K)^N) y has the coefficients of N steps.
        then = kernel_regression(kernel, predicted[-1] - regression.start).limit(cross)
        end = regression.limit(cross)
        found = {
            "held_out_error": norm(scores - then) / norm(then),
            "limit_error": norm(scores - end) / norm(end),
        }
    last = {name: float(trajectory.observed[name][-1]) for name in _DRIFTS}
    return ScaleComparison(
        scale=network.scale,
        law_error=float(away.max()),
        remaining=norm(errors[-1]) / first,
        **found,
        **last,
    )


def exponent(scales: Sequence[float], errors: Sequence[float]) -> float:
    """Slope of log error over log scale, by least squares; NaN where there are no two scales."""
    if len(set(scales)) < 2 or not all(error > 0 for error in errors):
        return math.nan
    return float(np.polyfit(np.log(scales), np.log(errors), 1)[0])


def regression_table(regression: KernelRegression, svm: Mapping[str, Any]) -> Table:
    """What is predicted of both losses, with certificates."""
    rows = (
        ("squared loss", "kernel regression", "theorem, alpha to infinity"),
        ("  rank of the kernel", f"{regression.rank} of {len(regression.start)}", "certified"),
        ("  condition number", number(regression.condition), "certified"),
        ("  residual of its equations (0)", number(regression.certificate.remaining), "certified"),
        ("exponential-like loss, linearised", "hard-margin SVM", "theorem"),
        ("  status", str(svm["status"]), "certified"),
        ("  least norm at margin 1", number(svm["objective"], ".8g"), "certified"),
        ("  duality gap", number(svm["gap"]), "certified"),
    )
    return Table("what the tangent kernel of the start predicts", ("", "value", "what"), rows)


def scales_table(found: Sequence[ScaleComparison]) -> Table:
    """One column a scale."""
    scales = [one.scale for one in found]
    lines = (
        ("errors off (I - eta K)^N e_0, at most", "law_error"),
        ("held-out scores off kernel descent", "held_out_error"),
        ("held-out scores off its end", "limit_error"),
        ("training errors left", "remaining"),
        ("|dw| / |w0|", "weight_drift"),
        ("|K - K0| / |K0|", "kernel_drift"),
        ("cosine of K and K0", "kernel_alignment"),
    )
    rows = []
    for label, name in lines:
        values = [getattr(one, name) for one in found]
        proved = name in ("law_error", "held_out_error", "weight_drift", "kernel_drift")
        slope = number(exponent(scales, values), ".3f") if proved else DASH
        rows.append((label, *(number(value) for value in values), slope))
    columns = ("", *(f"alpha {scale:g}" for scale in scales), "exponent (-1)")
    return Table("networks at output scales (measured)", columns, tuple(rows))


def departure_table(trajectory: Trajectory, rows: Sequence[int]) -> Table:
    """The network under an exponential-like loss, at rows of its trajectory."""
    lines = (
        ("|dw| / |w0|", "weight_drift"),
        ("cosine of K and K0", "kernel_alignment"),
        ("margin gained per |dw|, over the SVM's", "kernel_ratio"),
        ("value (||w||^2 / L)^(L/2) / margin", "value"),
    )
    shown = tuple(
        (label, *(number(float(trajectory.observed[name][row])) for row in rows))
        for label, name in lines
    )
    columns = ("", *(f"step {int(trajectory.step[row])}" for row in rows))
    title = (
        "an exponential-like loss leaves the kernel (measured; above 1 is no linearised network)"
    )
    return Table(title, columns, shown)


_DRIFTS = ("weight_drift", "kernel_drift", "kernel_alignment")


def norm(values: Floats) -> float:
    """Euclidean."""
    return float(np.linalg.norm(values))


def _scores(network: torch.nn.Module, sample: Sample) -> Floats:
    return placed_scores(network, place_data(network, *sample))
