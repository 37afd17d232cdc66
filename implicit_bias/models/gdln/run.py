"""The run of gated linear networks: the limit at the gates of a ReLU network's start."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...networks.drawn import averaged_units
from ...reports.finding import Finding
from ...reports.report import Report
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.setup import Setup, training_settings
from .data import RingData, make_ring
from .formulation import GatedLeastSquares, solve_gated_ols
from .setup import NAME, GDLNSetup, limit_finding

__all__ = ["gdln_programs", "run_gdln"]


def run_gdln(setup: Setup) -> Report:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare.

    Raises
    ------
    ValueError
        If an option is out of range, before any long work.
    """
    whole = _prepare(setup)
    data = whole.data
    heading = setup.heading(
        {
            "description": data.description,
            "n_train": len(data.y),
            "n_inputs": int(data.X.shape[1]),
            "sha256": data.digest(),
        },
        title="ReLU units beside gated linear ones, and both over training",
        choices=f"{len(data.y)} samples",
    )
    return gather(heading, _find(whole), setup.folder)


def gdln_programs(setup: Setup) -> RunPrograms:
    """State gated least squares at the gates of the start.

    Raises
    ------
    ValueError
        If an option is out of range.
    """
    whole = _prepare(setup)
    data = whole.data
    setup.progress.stage(f"stating {NAME} on {len(data.y)} samples")
    problem = GatedLeastSquares().literal(data.X, data.y, whole.gates)
    note = "of its minimisers the limit is that of least norm"
    return RunPrograms(setup.model, data.description, (stated(NAME, problem, note),))


def _prepare(setup: Setup) -> GDLNSetup:
    """Draw the data and the start, whose gates are those of the prediction."""
    options = setup.options
    if not options.init_scale > 0:
        raise ValueError(
            f"`--init-scale` must be positive, got {options.init_scale}: zero opens every gate"
        )
    data = _data(setup)
    start = averaged_units(
        options.hidden_units, data.X.shape[1], options.init_scale, setup.seeds.weights
    ).astype(options.dtype)
    return GDLNSetup(
        **setup.shared,
        data=data,
        settings=training_settings(options, setup.seeds, loss="squared"),
        start=start.astype(np.float64),
        gates=data.X.astype(options.dtype) @ start.T >= 0,
    )


def _data(setup: Setup) -> RingData:
    """Return the samples of the user's own, or those that the options name."""
    options, X = setup.options, setup.user_data.X
    if X is None:
        seed = setup.seeds.data
        return make_ring(options.data, options.n_train, options.length_scales, random_state=seed)
    if options.length_scales is not None:
        raise ValueError("`length_scales` is of bundled data, beside `X` of your own: leave it")
    return RingData(X, setup.user_data.y, f"{len(X)} samples of the caller's own")


def _find(setup: GDLNSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    data = setup.data
    setup.progress.stage("solving the gated least-squares limit at the initial gates")
    limit = solve_gated_ols(data.X, data.y, setup.gates, tol=setup.options.tol)
    yield limit_finding(limit)
    if setup.trains:
        from .trained_run import train_and_compare  # with torch, which no limit alone needs

        yield from train_and_compare(setup, limit)
