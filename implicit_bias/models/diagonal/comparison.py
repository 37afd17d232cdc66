"""A trained diagonal network beside the limits of its start and of its effective start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..._support.solve import potential_of, to_numpy
from ...data.arrays import Floats
from ...data.sample import Sample
from ...limits.finite.diagonal import DiagonalLimit, solve_diagonal
from ...limits.finite.effective_start import EffectiveStart
from ...measures.scalars import agreement
from ...networks.diagonal_linear import DiagonalLinear
from ...quantities.measured import Measured, part, quantity


class DiagonalComparison(Measured):
    """A trained diagonal network, compared with the limit of gradient flow from its start."""

    TITLE = "network beside its limit"
    SCREEN = (
        "limit_error", "start_error", "potential_ratio", "off_span", "l1_norm", "l2_norm",
        "agreement",
    )  # fmt: skip

    limit_error: float = quantity()
    start_error: float = quantity()
    potential_ratio: float = quantity()
    off_span: float = quantity()
    l1_limit: float = quantity()
    l1_norm: float = quantity()
    l2_limit: float = quantity()
    l2_norm: float = quantity()
    effective_scale: float = quantity()
    agreement: float = quantity()
    effective_start: Floats = part("(2, m) weights u and v of the effective start.")


class DiagonalObserver(EffectiveStart):
    """Observer for `train`: the effective start, and the distance from the limit.

    Parameters
    ----------
    network : DiagonalLinear
        As it begins.
    limit : DiagonalLimit
        From this start: of the squared loss, or of any margin.
    train : Sample, optional
        The samples where the loss is logistic: the limit is then that of the network's own margin.
    """

    def __init__(
        self, network: DiagonalLinear, limit: DiagonalLimit, train: Sample | None = None
    ) -> None:
        super().__init__(network)
        self._limit, self._train = limit, train

    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Measure "effective_scale", as a scale of starts, and "limit_error".

        With samples also "potential_ratio"; NaN while the network does not separate them.
        """
        c, zeta = super().__call__(network)["effective_scale"], coefficients(network)
        found, own = {"effective_scale": math.sqrt(c / 2)}, self._limit
        if self._train is not None:
            at_margin = limit_at_margin(own, self._train, zeta)
            if at_margin is None:
                return found | {"limit_error": math.nan, "potential_ratio": math.nan}
            own, found["potential_ratio"] = at_margin, potential_ratio(at_margin, zeta)
        return found | {"limit_error": relative_distance(zeta, own.zeta)}


def limit_at_margin(limit: DiagonalLimit, train: Sample, zeta: Floats) -> DiagonalLimit | None:
    """Solve for the limit from the same start at the smallest margin ``y_n <zeta, x_n>``.

    None where that is not positive.
    """
    X, y = (np.asarray(to_numpy(one), dtype=np.float64) for one in train[:2])
    margin = float((y * (X @ zeta)).min())
    if not margin > 0:
        return None
    return solve_diagonal(X, y, limit.u0, limit.v0, margin=margin, tol=limit.tol)


def compare_diagonal(
    limit: DiagonalLimit,
    network: DiagonalLinear,
    observer: DiagonalObserver,
    train: Sample,
    held_out: Sample,
) -> DiagonalComparison:
    """Compare a network with the limit from its start and the one from its effective start.

    Parameters
    ----------
    limit : DiagonalLimit
    network : DiagonalLinear
    observer : DiagonalObserver
        Of the network, in training.
    train, held_out : Sample
    """
    X, zeta = np.asarray(to_numpy(train.X), dtype=np.float64), coefficients(network)
    start = np.stack(observer.start)
    targets = X @ limit.zeta if limit.margin is None else np.asarray(to_numpy(train.y))
    of_steps = solve_diagonal(X, targets, *start, margin=limit.margin, tol=limit.tol)
    # Of all with its scores, or of all with its margin.
    least = limit
    if limit.margin is None:
        least = solve_diagonal(X, X @ zeta, limit.u0, limit.v0, tol=limit.tol)
    inputs = np.asarray(to_numpy(held_out.X), dtype=np.float64)
    return DiagonalComparison(
        limit_error=relative_distance(zeta, limit.zeta),
        start_error=relative_distance(zeta, of_steps.zeta),
        potential_ratio=potential_ratio(least, zeta),
        off_span=limit.off_span(X, zeta),
        l1_limit=float(np.abs(limit.zeta).sum()),
        l1_norm=float(np.abs(zeta).sum()),
        l2_limit=float(np.linalg.norm(limit.zeta)),
        l2_norm=float(np.linalg.norm(zeta)),
        effective_scale=observer(network)["effective_scale"],
        agreement=agreement(inputs @ zeta, inputs @ limit.zeta),
        effective_start=start,
    )


def norms_over_scales(
    X: Floats, targets: Floats, scales: Floats, tol: float, margin: float | None = None
) -> Floats:
    """Return l1 and l2 norms (S, 2) of the limits from starts of scales (S,).

    NaN where a limit is not solved to `tol`.
    """
    norms = np.full((len(scales), 2), math.nan)
    for place, scale in enumerate(scales):
        start = np.full(X.shape[1], math.sqrt(2) * scale)
        limit = solve_diagonal(X, targets, start, margin=margin, tol=tol)
        if limit.status.severity == 0:
            norms[place] = np.abs(limit.zeta).sum(), np.linalg.norm(limit.zeta)
    return norms


def coefficients(network: torch.nn.Module) -> Floats:
    """Return the coefficients (m,) of a network."""
    return np.asarray(to_numpy(network.zeta().detach().double().cpu()))  # type: ignore[operator]


def relative_distance(zeta: Floats, limit: Floats) -> float:
    """Return the distance of coefficients from a limit, relative to the limit."""
    size = float(np.linalg.norm(limit))
    return float(np.linalg.norm(zeta - limit)) / size if size > 0 else math.nan


def potential_ratio(least: DiagonalLimit, zeta: Floats) -> float:
    """Return a lower bound of the potential of a limit over that of coefficients."""
    potential = potential_of(least.u0, least.v0, least.depth)
    zero = np.zeros_like(zeta)
    own = float(potential.divergence(zero, potential.inverse(zeta, zero)).sum())
    proof = least.certificate
    return proof.divergence * (1 - proof.gap) / own if own > 0 else math.nan
