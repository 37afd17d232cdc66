"""Training of an inner layer beside its limits, its rank, and the linear max-margin classifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ..._support.solve import Status, to_numpy
from ...limits.exact.linear import LinearLimit, solve_linear_svm
from ...limits.relu.fixed_outer import NAME, FixedOuterLimit, solve_fixed_outer
from ...networks.structured.fixed_outer import FixedOuterReLU
from ...quantities.premises import SEPARATES
from ...quantities.said import Side
from ...runs.drawing.runs import plot_growth
from ...runs.fit import fit
from ...runs.reports.bounds import value_in_words
from ...runs.reports.finding import Finding
from ...runs.reports.findings import loss_vanishes
from ...runs.reports.trained import Trained, divergence, held_back
from ...runs.reports.verdict import Evidence
from ...runs.setup import start
from ...runs.stages import Found
from ...training.trainers import check_trainer
from ...training.trajectory import Trajectory
from .comparison import FixedOuterComparison, SpectrumObserver, compare_fixed_outer
from .figure import plot_neurons, plot_ranks
from .run import FixedOuterSetup


def begun(setup: FixedOuterSetup) -> FixedOuterReLU:
    """Return the untrained network of a run.

    Raises
    ------
    ValueError
        If the trainer does not take it.
    """
    options, n_inputs = setup.options, setup.train.X.shape[1]
    network = FixedOuterReLU(
        n_inputs, options.hidden_units, slope=options.slope, **start(options, setup.seeds.weights)
    )
    check_trainer(options.trainer, network)
    return network


def train(setup: FixedOuterSetup, found: Found) -> Iterator[Finding]:
    """Train the network, and compare it with both optima and the linear SVM."""
    limit, network, options = found["limit"], setup.network, setup.options
    setup.progress.stage(f"training an inner layer for {setup.settings.n_steps} steps")
    trajectory = fit(
        setup,
        network,
        *setup.train,
        settings=setup.settings,
        X_val=setup.held_out.X,
        observer=SpectrumObserver(None, *setup.samples, loss=options.loss),
    )
    yield Finding("network", {"network": Trained(network, trajectory)})
    setup.progress.stage("comparing")
    X, y, _ = setup.train
    W = to_numpy(network.W.detach().double())
    local = solve_fixed_outer(X, y, setup.outer, slope=options.slope, start=W, tol=options.tol)
    linear = solve_linear_svm(X, y)
    compared = compare_fixed_outer(limit, local, linear, network, setup.samples)
    panels = (
        partial(plot_ranks, trajectory, limit.zeta),
        partial(plot_neurons, limit, W),
        partial(plot_growth, trajectory),
    )
    whole = Finding(
        "comparison",
        {"comparison": compared},
        NAME,
        assumptions=(
            loss_vanishes(trajectory),
            SEPARATES.found(holds=bool(trajectory.smallest_margin[-1] > 0)),
        ),
        evidence=(_evidence(setup, limit, compared, trajectory),),
        panels=panels,
    )
    yield whole.also(objects={"local_limit": local, "linear": linear}).but(
        sides=tuple(_sides(compared, linear))
    )


def _evidence(
    setup: FixedOuterSetup, limit: FixedOuterLimit, found: FixedOuterComparison, path: Trajectory
) -> Evidence:
    local = found.local
    reached = local.status.severity == 0
    best = local.status is Status.SOLVED
    turn = f"proved for turns below {local.certificate.smallest_turn:.2g} degrees"
    beside = Evidence(
        theory="local limit",
        status=Status.GLOBAL_OPTIMUM if best else local.status,
        near={"local_ratio": found.local_ratio},
        numbers=value_in_words(found.value, local.value if reached else None),
        proof="proved the best of all inner layers" if best else turn,
        smallest_margin=float(path.smallest_margin[-1]),
        diverged=divergence(path),
        reason=held_back(path, "the weights are not stationary yet"),
        remark=f"third singular value of W {found.third:.1e} of the first",
    )
    if not (setup.nearly and limit.status is Status.SOLVED):
        return beside
    near = {"margin_ratio": found.margin_ratio}
    return replace(
        beside, theory="limit", status=limit.status, near=near, proof="", numbers="",
        beside={"agreement": found.agreement},
    )  # fmt: skip


def _sides(found: FixedOuterComparison, linear: LinearLimit) -> Iterator[Side]:
    """Yield the columns of the first screen."""
    limit, local = found.limit, found.local
    if limit.status is Status.SOLVED:
        values = {"value": limit.value, "lower_bound": limit.certificate.lower_bound,
                  "gap": limit.gap, "margin_ratio": 1.0, "error": found.error_limit}  # fmt: skip
        yield Side(NAME, values, predicted=True)
    elif local.status.severity == 0:
        values = {"value": local.value, "gap": local.gap, "local_ratio": 1.0,
                  "local_turn": local.certificate.smallest_turn}  # fmt: skip
        yield Side("local limit", values, predicted=True)
    network = {"value": found.value, "margin_ratio": found.margin_ratio,
               "local_ratio": found.local_ratio, "zeta_cosine": found.zeta_cosine,
               "agreement": found.agreement, "error": found.error_network}  # fmt: skip
    yield Side("network", network)
    yield Side("linear SVM", {"gap": linear.gap, "agreement": found.agreement_linear})
