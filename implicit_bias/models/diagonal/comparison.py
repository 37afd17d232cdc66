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


class DiagonalObserver:
    """Observer for `train`: the effective start, and the distance from the limit.

    Parameters
    ----------
    network : DiagonalLinear
        As it begins.
    limit : DiagonalLimit
        Of the squared loss from this start.
    """

    def __init__(self, network: DiagonalLinear, limit: DiagonalLimit) -> None:
        self.effective, self._limit = EffectiveStart(network), limit

    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Measure "effective_scale", as a scale of starts, and "limit_error"."""
        c = self.effective(network)["effective_scale"]
        error = relative_distance(coefficients(network), self._limit.zeta)
        return {"effective_scale": math.sqrt(c / 2), "limit_error": error}

    def state_dict(self) -> dict[str, Floats]:
        """Return arrays by name, for runs that are resumed."""
        return self.effective.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self.effective.load_state_dict(state)


class MarginObserver(DiagonalObserver):
    """Observer for `train` on the logistic loss: beside the least potential of the own margin.

    Parameters
    ----------
    network : DiagonalLinear
        As it begins.
    limit : DiagonalLimit
        Of any margin, from this start.
    train : Sample
    """

    def __init__(self, network: DiagonalLinear, limit: DiagonalLimit, train: Sample) -> None:
        super().__init__(network, limit)
        self._train = train

    def __call__(self, network: torch.nn.Module) -> Mapping[str, Any]:
        """Measure "effective_scale", and "limit_error" and "potential_ratio" at the own margin."""
        c = self.effective(network)["effective_scale"]
        zeta = coefficients(network)
        X, y = (np.asarray(to_numpy(one), dtype=np.float64) for one in self._train[:2])
        margin, error, ratio = smallest_margin(X, y, zeta), math.nan, math.nan
        if margin > 0:
            limit = self._limit
            own = solve_diagonal(X, y, limit.u0, limit.v0, margin=margin, tol=limit.tol)
            error = relative_distance(zeta, own.zeta)
            ratio = potential_ratio(own, zeta)
        return {"effective_scale": math.sqrt(c / 2), "limit_error": error, "potential_ratio": ratio}


def smallest_margin(X: Floats, y: Floats, zeta: Floats) -> float:
    """Return the smallest margin ``y_n <zeta, x_n>``."""
    return float((y * (X @ zeta)).min())


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
    start = np.stack(observer.effective.start)
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
