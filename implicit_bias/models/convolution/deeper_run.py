"""More than two layers: a trained network beside the certified point next to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from ..._support.solve import Status, to_numpy
from ...limits.convolution.stationary import ConvolutionPoint, solve_convolution
from ...measures.comparison import compare
from ...measures.distances import Distances
from ...networks.structured.convolution import LinearConvolution
from ...quantities.assumptions import Assumption
from ...quantities.premises import LOCAL_OPTIMUM
from ...quantities.said import Side
from ...runs.drawing.runs import plot_growth
from ...runs.fit import fit
from ...runs.reports.bounds import least_evidence, value_in_words
from ...runs.reports.finding import Finding
from ...runs.reports.findings import loss_vanishes, solved
from ...runs.reports.trained import Trained, divergence, held_back
from ...runs.reports.verdict import OPTIMA, Evidence, decide
from ...runs.separable import SeparableSetup
from ...runs.stages import Found
from ...training.trajectory import Trajectory
from .comparison import ConvolutionComparison, compare_convolution
from .figure import plot_spectra

BOUND, POINT = "convex bound", "stationary point"


def bound(setup: SeparableSetup, found: Found) -> Iterator[Finding]:
    """Solve the convex program that bounds the quasi-norm of all predictors."""
    limit = setup.solved()
    known = least_evidence(
        f"linear convolution of {setup.options.depth} layers",
        float(limit.dual_objective), math.inf, status=limit.status,
    )  # fmt: skip
    side = Side(BOUND, {"value": limit.dual_objective, "gap": limit.gap})
    yield solved(limit, BOUND).but(sides=(side,), verdicts=(decide(known),))


def train(setup: SeparableSetup, found: Found) -> Iterator[Finding]:
    """Train a network, and find the point next to it."""
    options, samples = setup.options, setup.samples
    network = setup.parts.network(setup.train, setup.seeds.weights)
    assert isinstance(network, LinearConvolution)
    setup.progress.stage(
        f"training a {setup.parts.network_name} for {setup.settings.n_steps} steps"
    )
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        observer=Distances(None, *samples, loss=options.loss),
    )
    yield Finding("network", {"network": Trained(network, trajectory)})
    setup.progress.stage("finding the stationary point next to it")
    beta = to_numpy(network.zeta().double())
    point = solve_convolution(
        setup.train.X, setup.train.y, options.depth, options.group, start=beta, tol=options.tol
    )
    assert isinstance(point, ConvolutionPoint)
    found_point = compare_convolution(point, network, *samples)
    limit, comparison = found["limit"], None
    if trajectory.smallest_margin[-1] > 0:
        comparison = compare(limit, network, *samples)
    panels = (
        partial(plot_spectra, trajectory, point.unit_norms),
        partial(plot_growth, trajectory),
    )
    whole = Finding(
        "comparison",
        {"comparison": comparison, "limit_comparison": found_point, "local_limit": point},
        POINT,
        assumptions=(loss_vanishes(trajectory), _proved(point)),
        evidence=(_evidence(found_point, trajectory),),
        panels=panels,
    )
    yield whole.but(sides=found_point.beside(POINT))


def _proved(point: ConvolutionPoint) -> Assumption:
    known = {Status.LOCAL_OPTIMUM: True, Status.GLOBAL_OPTIMUM: True, Status.SADDLE: False}
    return LOCAL_OPTIMUM.found(
        why="", holds=known.get(point.status), how="proved in floating point"
    )


def _evidence(found: ConvolutionComparison, trajectory: Trajectory) -> Evidence:
    point = found.point
    proof = f"proved strict (residual {point.residual:.0e})"
    if point.status is Status.GLOBAL_OPTIMUM:
        proof = "proved the best of all predictors"
    return Evidence(
        theory="local limit",
        status=point.status,
        near={"local_ratio": found.local_ratio},
        beside={"value": found.value},
        numbers=value_in_words(found.value, point.value if point.status in OPTIMA else None),
        smallest_margin=float(trajectory.smallest_margin[-1]),
        diverged=divergence(trajectory),
        proof=proof,
        reason=held_back(trajectory, "the weights are not stationary yet"),
    )
