"""Training of a diagonal network beside the limit of its start, and of the start its steps had."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from ...limits.finite.diagonal import DiagonalLimit
from ...networks.diagonal_linear import DiagonalLinear
from ...quantities.assumptions import Assumption
from ...runs.fit import fit
from ...runs.reports.finding import Finding
from ...runs.reports.trained import Trained, divergence
from ...runs.reports.verdict import WITHIN, Evidence
from ...runs.setup import torch_dtype
from ...runs.stages import Found
from ...training.trajectory import Trajectory
from .comparison import (
    DiagonalComparison,
    DiagonalObserver,
    coefficients,
    compare_diagonal,
    limit_at_margin,
    norms_over_scales,
)
from .figure import plot_kernel_to_rich, plot_limit_error
from .model import FLOW
from .run import DiagonalSetup, limit_finding

# Scales of the picture: from where the limit has the least l1 norm to where it has the least l2.
SCALES = np.geomspace(1e-4, 100.0, 25)


def train(setup: DiagonalSetup, found: Found) -> Iterator[Finding]:
    """Train a network from the start of the run, and find how it compares with its limit."""
    dtype, of_margins = torch_dtype(setup.options.dtype), setup.of_margins
    network = DiagonalLinear.from_weights(
        *(torch.tensor(weights, dtype=dtype) for weights in setup.start),
        device=setup.options.device,
    )
    observer = DiagonalObserver(network, setup.limit, setup.train if of_margins else None)
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
    ended = {"network": Trained(network, trajectory, margins=False)}
    setup.progress.stage("comparing, and solving from other scales of the start")
    zeta, limit, targets = coefficients(network), setup.limit, setup.targets
    if of_margins:
        at_margin = limit_at_margin(limit, setup.train, zeta)
        if at_margin is None:
            reason = "it does not separate its samples yet: give more `--steps`"
            yield Finding("network", ended)
            yield Finding("verdict", evidence=(_evidence(limit, math.inf, trajectory, reason),))
            return
        limit = at_margin
        yield limit_finding(limit, setup.misfit)
    else:
        targets = setup.X @ limit.zeta
    norms = norms_over_scales(setup.X, targets, SCALES, setup.options.tol, limit.margin)
    point = np.array([np.abs(zeta).sum(), np.linalg.norm(zeta)])
    scale = float(setup.options.init_scale)
    panels = (
        partial(plot_kernel_to_rich, SCALES, norms, scale, point),
        partial(plot_limit_error, trajectory),
    )
    yield Finding("network", ended, panels=panels)
    compared = compare_diagonal(limit, network, observer, setup.train, setup.held_out)
    yield Finding("comparison", {"comparison": compared}, assumptions=(_flow(compared, limit),))
    known = _evidence(
        limit,
        compared.limit_error,
        trajectory,
        _reason(compared, of_margins, trajectory.stopped),
        beside={"start_error": compared.start_error, "agreement": compared.agreement},
        remark="" if trajectory.finished else "interrupted",
    )
    yield Finding("verdict", evidence=(known,))


def _evidence(
    limit: DiagonalLimit, error: float, trajectory: Trajectory, reason: str, **further: Any
) -> Evidence:
    return Evidence(
        status=limit.status,
        near={"limit_error": error},
        diverged=divergence(trajectory),
        reason=reason,
        proof=f"{limit.advice} (gap {limit.gap:.1e}, tolerance {limit.tol:.0e})",
        **further,
    )


def _reason(found: DiagonalComparison, margins: bool, stopped: str) -> str:
    """Return what keeps a network from the limit of its start."""
    if found.start_error <= WITHIN and not margins:
        return "it is at the limit of its effective start: give a smaller `--learning-rate`"
    if stopped:
        return stopped
    if margins:
        return "it comes nearer as log(1/loss) grows, slowly: see the ratio of potentials"
    return "steps have not converged: give more `--steps`"


def _flow(found: DiagonalComparison, limit: DiagonalLimit) -> Assumption:
    """Return how far finite steps have moved the start."""
    scale = math.sqrt(float(np.exp(np.log(np.abs(limit.u0**2 - limit.v0**2)).mean())) / 2)
    moved = abs(found.effective_scale / scale - 1)
    return FLOW.found(
        reached=found.effective_scale, scale=scale, moved=moved, holds=moved <= WITHIN
    )
