"""The run of gated linear networks: the limit at the gates of a ReLU network's start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import LeastSquaresSolution, solve_least_squares
from ...networks.drawn import averaged_units
from ...quantities.premises import GATES
from ...quantities.said import Side, Table
from ...quantities.table import lines
from ...runs.programs import StatedProgram, stated
from ...runs.reports.finding import Finding
from ...runs.reports.views import Views
from ...runs.setup import Setup, training_settings
from ...runs.stages import Found, Run, Stage, later
from ...training.settings import Phases, TrainingSettings
from .data import RingData, make_ring
from .flow import GatedFlow, flow_to
from .formulation import GatedLeastSquares, GatedOLS

NAME = GatedLeastSquares.name
# Share of the largest rate at which descent is stable behind whatever gates.
STABLE = 0.9
TINY = float(np.finfo(float).tiny)
TRAINED = f"{__package__}.twins"


@dataclass(frozen=True, eq=False, kw_only=True)
class GDLNSetup(Setup):
    """The setup of a run, with its data and the start of both networks.

    Attributes
    ----------
    data : RingData
        The training samples.
    settings : TrainingSettings
        Plain steps on the squared loss.
    start : (K, D) array
        Initial weights of both networks.
    gates : (n, K) boolean array
        Gates of the ReLU network at these weights, which are the gates of its twin throughout.
    """

    data: RingData
    settings: TrainingSettings
    start: NDArray[np.float64]
    gates: NDArray[np.bool_]

    @cached_property
    def solution(self) -> LeastSquaresSolution:
        """The gated least-squares solution behind these gates, which limit and flow share."""
        program = GatedLeastSquares().program(self.data.X, self.data.y, self.gates)
        return solve_least_squares(program, tol=self.options.tol)

    @cached_property
    def flow(self) -> GatedFlow:
        """The flow of the gated twin from the start, in closed form."""
        return flow_to(self.solution, self.start)


def run_gdln(setup: Setup) -> Run[GDLNSetup]:
    """Predict a gated linear network and its ReLU twin on ring data, train both, compare.

    Raises
    ------
    ValueError
        If an option is out of range, before any long work.
    """
    options = setup.options
    if not options.init_scale > 0:
        raise ValueError(
            f"`--init-scale` must be positive, got {options.init_scale}: zero opens every gate"
        )
    data = _data(setup)
    start = averaged_units(
        options.hidden_units, data.X.shape[1], options.init_scale, setup.seeds.weights
    ).astype(options.dtype)
    given = options.learning_rate or not setup.trains
    schedule = None if given else _schedule(options, data.X)
    whole = GDLNSetup(
        **setup.shared,
        data=data,
        settings=training_settings(options, setup.seeds, loss="squared", schedule=schedule),
        start=start.astype(np.float64),
        gates=data.X.astype(options.dtype) @ start.T >= 0,
    )
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
    return Run(setup=whole, heading=heading, stages=STAGES)


def _schedule(options: Any, X: NDArray[np.float64]) -> Phases:
    """Return the steps at one rate that is stable whatever gates are open, now or later.

    The second moments of the stacked inputs are at most K times those of the inputs, and A is
    theirs over K^2 in the weights.
    """
    largest = max(float(np.linalg.norm(X, 2)), TINY)  # its square may overflow
    rate = STABLE * 2 * options.hidden_units * len(X) / largest / largest
    # Of inputs beyond all scales, or of zeros alone, whatever is said of these comes first.
    return tuple((steps, rate if 0 < rate < math.inf else 1.0) for steps in options.steps)


def _data(setup: Setup) -> RingData:
    """Return the samples of the user's own, or those that the options name."""
    options, X = setup.options, setup.user_data.X
    if X is None:
        seed = setup.seeds.data
        return make_ring(options.data, options.n_train, options.length_scales, random_state=seed)
    if options.length_scales is not None:
        raise ValueError("`length_scales` is of bundled data, beside `X` of your own: leave it")
    return RingData(X, setup.user_data.y, f"{len(X)} samples of the caller's own")


def _predict(setup: GDLNSetup, found: Found) -> Iterator[Finding]:
    yield limit_finding(GatedOLS.from_solution(setup.solution))


def _state(setup: GDLNSetup) -> Iterator[StatedProgram]:
    data = setup.data
    setup.progress.stage(f"stating {NAME} on {len(data.y)} samples")
    problem = GatedLeastSquares().literal(data.X, data.y, setup.gates)
    yield stated(NAME, problem, "of its minimisers the limit is that of least norm")


STAGES: tuple[Stage[GDLNSetup], ...] = (
    Stage(
        finds=_predict,
        says="solving the gated least-squares limit at the initial gates",
        states=_state,
    ),
    Stage(
        finds=later(f"{TRAINED}:train_relu"),
        says="training a ReLU network for {setup.settings.n_steps} steps",
        trains=True,
    ),
    Stage(finds=later(f"{TRAINED}:compare"), says="comparing", needs=("trajectory",)),
    Stage(
        finds=later(f"{TRAINED}:train_twin"),
        says="training its gated linear twin for {setup.settings.n_steps} steps",
        trains=True,
    ),
)


def limit_finding(limit: GatedOLS, off_path: float | None = None) -> Finding:
    """Return the finding of the least-squares limit, and of how near training was to its path."""
    path = {} if off_path is None else {"path_error": off_path}
    cells = {
        "limit": NAME,
        "stationarity": limit.certificate.stationarity,
        "optimal_loss": limit.loss,
        "n_units": len(limit.unit_norms),
        "limit_seconds": limit.seconds,
    } | path
    rows = (
        ("status of the least-squares limit", limit.status.name),
        *lines(cells, "stationarity", "optimal_loss"),
        ("rank of the gated moments", f"{limit.rank} of {math.prod(limit.zeta.shape)}"),
        *lines(cells, *path),
    )
    screen = {"final_loss": limit.loss, "stationarity": limit.certificate.stationarity}
    return Finding(
        "limit",
        {"limit": limit},
        NAME,
        assumptions=(
            GATES.found(said="the gates of the gated linear network are frozen", holds=True),
        ),
        further=Views(
            record=path,
            tables=(Table("gated linear network: prediction and training", ("", "value"), rows),),
            row=cells,
            sides=(Side(NAME, screen, predicted=True),),
        ),
    )
