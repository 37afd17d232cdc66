"""Training of a diagonal network beside the limit of its start, and of the start its steps had."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from ...limits.finite.diagonal import DiagonalLimit, solve_diagonal
from ...networks.diagonal_linear import DiagonalLinear
from ...quantities.assumptions import Assumption
from ...quantities.said import Side, Table
from ...runs.decay.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.trained import Trained, divergence
from ...runs.reports.verdict import WITHIN, Evidence
from ...runs.setup import torch_dtype
from .comparison import (
    DiagonalComparison,
    DiagonalObserver,
    MarginObserver,
    coefficients,
    compare_diagonal,
    norms_over_scales,
    smallest_margin,
)
from .figure import plot_kernel_to_rich, plot_limit_error
from .model import FLOW
from .setup import DiagonalSetup, of_margins, solved

__all__ = ["train_and_compare"]

# Scales of the picture: from where the limit has the least l1 norm to where it has the least l2.
SCALES = np.geomspace(1e-4, 100.0, 25)


def train_and_compare(setup: DiagonalSetup) -> Iterator[Finding]:
    """Train a network from the start of the run, and find how it compares with its limit."""
    margins, dtype = of_margins(setup), torch_dtype(setup.options.dtype)
    network = DiagonalLinear.from_weights(
        *(torch.tensor(weights, dtype=dtype) for weights in setup.start),
        device=setup.options.device,
    )
    observer = DiagonalObserver(network, setup.limit)
    if margins:
        observer = MarginObserver(network, setup.limit, setup.train)
    setup.progress.stage(f"training for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        network,
        setup.train.X,
        setup.train.y,
        settings=setup.settings,
        X_val=setup.held_out.X,
        observer=observer,
    )
    setup.progress.stage("comparing, and solving from other scales of the start")
    X, y = (np.asarray(one, dtype=np.float64) for one in setup.train[:2])
    zeta = coefficients(network)
    margin = smallest_margin(X, y, zeta) if margins else None
    if margin is not None and margin <= 0:
        yield Finding("network", {"network": Trained(network, trajectory, margins=False)})
        yield Finding(
            "verdict",
            evidence=(
                Evidence(
                    status=setup.limit.status,
                    near={"limit_error": math.inf},
                    beside={},
                    diverged=divergence(trajectory),
                    reason="it does not separate its samples yet: give more `--steps`",
                ),
            ),
        )
        return
    if margin is not None:
        own = solve_diagonal(X, y, *setup.start, margin=margin, tol=setup.options.tol)
        setup = replace(setup, limit=own)
        yield solved(setup)
    limit = setup.limit
    targets = X @ limit.zeta if margin is None else y
    norms = norms_over_scales(X, targets, SCALES, setup.options.tol, margin)
    point = np.array([np.abs(zeta).sum(), np.linalg.norm(zeta)])
    scale = float(setup.options.init_scale)
    panels = (
        partial(plot_kernel_to_rich, SCALES, norms, scale, point),
        partial(plot_limit_error, trajectory),
    )
    yield Finding(
        "network", {"network": Trained(network, trajectory, margins=False)}, panels=tuple(panels)
    )
    found = compare_diagonal(limit, network, observer, setup.train, setup.held_out)
    yield Finding.measured(
        "comparison",
        found,
        tables=(Table("network beside its limit", ("", "value"), tuple(found.rows())),),
        sides=(Side("network", _side(found)),),
        assumptions=(_flow(found, limit),),
    )
    yield Finding(
        "verdict",
        evidence=(
            Evidence(
                status=limit.status,
                near={"limit_error": found.limit_error},
                beside={"start_error": found.start_error, "agreement": found.agreement},
                diverged=divergence(trajectory),
                reason=_reason(found, margins),
                remark="" if trajectory.finished else "interrupted",
            ),
        ),
    )


def _side(found: DiagonalComparison) -> dict[str, float]:
    names = (
        "limit_error", "start_error", "potential_ratio", "off_span", "l1_norm", "l2_norm",
        "agreement",
    )  # fmt: skip
    return {name: getattr(found, name) for name in names}


def _reason(found: DiagonalComparison, margins: bool) -> str:
    """Return what keeps a network from the limit of its start."""
    if margins:
        return "it comes nearer as log(1/loss) grows, slowly: see the ratio of potentials"
    if found.start_error <= WITHIN:
        return "it is at the limit of the start that its steps amount to: smaller `--learning-rate`"
    return "steps have not converged: give more `--steps`"


def _flow(found: DiagonalComparison, limit: DiagonalLimit) -> Assumption:
    """Return how far finite steps have moved the start."""
    scale = math.sqrt(float(np.exp(np.log(np.abs(limit.u0**2 - limit.v0**2)).mean())) / 2)
    moved = abs(found.effective_scale / scale - 1)
    return FLOW.found(
        reached=found.effective_scale, scale=scale, moved=moved, holds=moved <= WITHIN
    )
