"""The run of diagonal networks: the limit of the start, training, and the start that steps had."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from ..._solve import Status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...data.sample import Sample
from ...finite_limits.diagonal import DiagonalLimit, solve_diagonal
from ...finite_limits.program import LeastPotential
from ...networks.diagonal_linear import DiagonalLinear
from ...quantities.table import lines
from ...reports.finding import Assumption, Finding, Side, Table
from ...reports.findings import divergence, trained
from ...reports.report import Report
from ...reports.verdict import WITHIN, Evidence
from ...runs.fit import fit
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.setup import Setup, data_record, torch_dtype, training_settings
from ...runs.user_data import load_chosen
from ...training.settings import TrainingSettings
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

__all__ = ["diagonal_programs", "run_diagonal"]

NAME = LeastPotential.name
# Scales of the picture: from where the limit has the least l1 norm to where it has the least l2.
SCALES = np.geomspace(1e-4, 100.0, 25)
# A learning rate over the inverse of the largest curvature: descent is stable below 2.
RATE = 0.1
# By how much it grows from phase to phase, up to the inverse of the curvature: steps move the start
# by their squares, and those of later phases, where the residual is small, hardly do.
GROWTH = 3.0


# The loss down to which the rate of steps on margins is chosen; without training the limit is that
# of its margin.
GOAL = 1e-8
_OF_MARGINS = {
    "theorem": "a diagonal linear network trained on an exponential-like loss is, as start and "
    "log(1/loss) grow together, that of least potential of its start among all with its margin",
    "source": "Moroshko et al. 2020; at finite values own measurement",
    "program": "min sum_i phi_i(b_i)  s.t.  y_n <b, x_n> >= m, the network's smallest margin",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class DiagonalSetup(Setup):
    """The setup of a run, with its data, network, limit and rates.

    Attributes
    ----------
    dataset : Dataset
    network : DiagonalLinear
        As it begins.
    limit : DiagonalLimit
        From this start, of the targets' part in the range of the features; on the logistic loss
        of a margin.
    misfit : float
        The part of the targets that no coefficients fit, relative.
    settings : TrainingSettings
    """

    dataset: Dataset
    network: DiagonalLinear
    limit: DiagonalLimit
    misfit: float
    settings: TrainingSettings

    @property
    def train(self) -> Sample:
        """The training part of the data."""
        return Sample(self.dataset.X_train, self.dataset.y_train, None)

    @property
    def held_out(self) -> Sample:
        """The held-out part of the data."""
        return Sample(self.dataset.X_val, self.dataset.y_val, None)


def run_diagonal(setup: Setup) -> Report:
    """Predict a diagonal network from its start, train it, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    whole = _prepare(setup)
    heading = setup.heading(
        data_record(whole.dataset),
        title="a diagonal network beside the limit of its start, from kernel to rich",
        choices=f"start of scale {setup.options.init_scale:g}",
        **(_OF_MARGINS if _of_margins(setup) else {}),
    )
    return gather(heading, _find(whole), setup.folder)


def diagonal_programs(setup: Setup) -> RunPrograms:
    """State the program of the limit in cvxpy.

    Raises
    ------
    ValueError, FileNotFoundError
        As `run_diagonal`.
    """
    dataset, targets, _ = _data(setup)
    u, v = _start(_network(setup, dataset))
    setup.progress.stage(f"stating the {NAME} on {len(targets)} samples")
    margin = -math.log(GOAL) if _of_margins(setup) else None
    problem = LeastPotential().literal(dataset.X_train, targets, u, v, margin=margin)
    program = stated(NAME, problem, "coefficients are p - q")
    return RunPrograms(setup.model, dataset.description, (program,))


def _prepare(setup: Setup) -> DiagonalSetup:
    options, seeds = setup.options, setup.seeds
    dataset, targets, misfit = _data(setup)
    network = _network(setup, dataset)
    X = np.asarray(dataset.X_train, dtype=np.float64)
    margin = -math.log(GOAL) if _of_margins(setup) else None
    limit = solve_diagonal(X, targets, *_start(network), margin=margin, tol=options.tol)
    schedule = None
    if not options.learning_rate and setup.trains:
        curvature, first = (_curvature, RATE) if margin is None else (_curvature_of_margins, 1.0)
        rate = first / curvature(X, limit, options.init_scale)
        grown = (min(GROWTH**phase, 1 / first) for phase in range(len(options.steps)))
        schedule = tuple((n, rate * by) for n, by in zip(options.steps, grown, strict=True))
    elif not setup.trains:
        schedule = ((1, 1.0),)
    settings = training_settings(options, seeds, schedule=schedule)
    if margin is not None:
        settings = replace(settings, trainer="normalised")
    return DiagonalSetup(
        **setup.shared,
        dataset=dataset,
        network=network,
        limit=limit,
        misfit=misfit,
        settings=settings,
    )


def _data(setup: Setup) -> tuple[Dataset, Floats, float]:
    """Return the data, the part of their targets that features fit, and what is left, relative.

    The slopes of the squared loss are those of the part that features fit.
    """
    dataset = cast(Dataset, setup.user_data.dataset or load_chosen(setup.options))
    X, y = (np.asarray(one, dtype=np.float64) for one in (dataset.X_train, dataset.y_train))
    if _of_margins(setup):
        return dataset, y, 0.0
    fitted = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return dataset, fitted, float(np.linalg.norm(y - fitted) / np.linalg.norm(y))


def _network(setup: Setup, dataset: Dataset) -> DiagonalLinear:
    options = setup.options
    return DiagonalLinear(
        dataset.X_train.shape[1],
        init_scale=options.init_scale,
        dtype=torch_dtype(options.dtype),
        device=options.device,
    )


def _start(network: DiagonalLinear) -> tuple[Floats, Floats]:
    """Return the weights u and v of a network that has not been trained."""
    u, v = (one.detach().double().cpu().numpy().copy() for one in (network.u, network.v))
    return u, v


def _curvature(X: Floats, limit: DiagonalLimit, scale: float) -> float:
    """Return the largest curvature of the mean loss at the start and at the limit.

    It is that of `X diag(u^2 + v^2) X^T / n`, and `(u^2 + v^2)^2 = c^2 + 4 (u v)^2`.
    """
    c = 2 * scale**2
    sizes = (np.full(X.shape[1], c), np.sqrt(c**2 + 4 * limit.zeta**2))
    return max(float(np.linalg.norm(X * np.sqrt(size), 2)) ** 2 / len(X) for size in sizes)


def _of_margins(setup: Setup) -> bool:
    return bool(setup.options.loss == "logistic")


def _curvature_of_margins(X: Floats, limit: DiagonalLimit, scale: float) -> float:
    """Return the largest curvature of log(loss): of the margins' slopes at start and limit."""
    c = 2 * scale**2
    sizes = (np.full(X.shape[1], c), np.sqrt(c**2 + 4 * limit.zeta**2))
    return max(float((X**2 @ size).max()) for size in sizes)


def _find(setup: DiagonalSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    network, margins = setup.network, _of_margins(setup)
    setup.progress.stage(f"solving for the {NAME} on {len(setup.train.y)} samples")
    if not margins:
        yield _solved(setup)
    if not setup.trains or setup.limit.status is Status.NOT_SEPARABLE:
        if margins:
            yield _solved(setup)
        return
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
        yield trained(network, trajectory, margins=False)
        yield Finding.judged(
            Evidence(
                status=setup.limit.status,
                near={"limit_error": math.inf},
                beside={},
                diverged=divergence(trajectory),
                reason="it does not separate its samples yet: give more `--steps`",
            )
        )
        return
    if margin is not None:
        own = solve_diagonal(X, y, *_start_of(setup.limit), margin=margin, tol=setup.options.tol)
        setup = replace(setup, limit=own)
        yield _solved(setup)
    limit = setup.limit
    targets = X @ limit.zeta if margin is None else y
    norms = norms_over_scales(X, targets, SCALES, setup.options.tol, margin)
    point = np.array([np.abs(zeta).sum(), np.linalg.norm(zeta)])
    scale = float(setup.options.init_scale)
    panels = (
        partial(plot_kernel_to_rich, SCALES, norms, scale, point),
        partial(plot_limit_error, trajectory),
    )
    yield trained(network, trajectory, panels=panels, margins=False)
    found = compare_diagonal(limit, network, observer, setup.train, setup.held_out)
    yield Finding.measured(
        "comparison",
        found,
        tables=(Table("network beside its limit", ("", "value"), tuple(found.rows())),),
        sides=(Side("network", _side(found)),),
        assumptions=(_flow(found, limit),),
    )
    yield Finding.judged(
        Evidence(
            status=limit.status,
            near={"limit_error": found.limit_error},
            beside={"start_error": found.start_error, "agreement": found.agreement},
            diverged=divergence(trajectory),
            reason=_reason(found, margins),
            remark="" if trajectory.finished else "interrupted",
        )
    )


def _side(found: DiagonalComparison) -> dict[str, float]:
    names = (
        "limit_error", "start_error", "potential_ratio", "off_span", "l1_norm", "l2_norm",
        "agreement",
    )  # fmt: skip
    return {name: getattr(found, name) for name in names}


def _start_of(limit: DiagonalLimit) -> tuple[Floats, Floats]:
    return limit.u0, limit.v0


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
    return Assumption(
        "steps follow gradient flow: the start that they amount to has a scale of "
        f"{found.effective_scale:.4g} beside {scale:.4g}",
        moved <= WITHIN,
        "gradient flow",
        f"measured: {moved:.2g} off",
    )


def _solved(setup: DiagonalSetup) -> Finding:
    """Return the finding of the limit."""
    limit, proof = setup.limit, setup.limit.certificate
    record = limit.to_dict()
    cells = {
        "limit": NAME,
        "objective": limit.objective,
        "lower_bound": proof.dual_objective,
        "gap": limit.gap,
        "n_units": len(limit.zeta),
        "iterations": limit.iterations,
        "limit_seconds": limit.seconds,
    }
    norms = {
        "l1_limit": float(np.abs(limit.zeta).sum()),
        "l2_limit": float(np.linalg.norm(limit.zeta)),
    }
    rows = (
        ("status", limit.status.name),
        ("least potential", f"{limit.objective:.10g}"),
        *lines(cells | norms, "lower_bound", "gap"),
        *((("margin", f"{limit.margin:.6g}"),) if limit.margin is not None else ()),
        ("misfit", f"{proof.misfit:.2e}"),
        ("every coefficient within", f"{proof.distance:.2e}"),
        *lines(cells | norms, "l1_limit", "l2_limit", "n_units", "iterations", "limit_seconds"),
    )
    fits = setup.misfit <= limit.tol
    separates = {Status.SOLVED: True, Status.NOT_SEPARABLE: False}.get(limit.status)
    assumption = (
        Assumption("the features separate the labels", separates, "separable", "proved")
        if limit.margin is not None
        else Assumption(
            "features interpolate the targets, else the limit is that of their best fit: "
            f"what is left of them is {setup.misfit:.2g}",
            fits,
            "interpolation",
            "measured",
        )
    )
    return Finding(
        "limit",
        record={"limit": record},
        tables=(Table("prediction", ("", NAME), rows),),
        assumptions=(assumption,),
        files={"limit.safetensors": limit.save},
        statuses={NAME: limit.status},
        certificates={NAME: record},
        row=cells | norms,
        sides=(
            Side(
                NAME,
                {"status": limit.status.name, "lower_bound": proof.dual_objective,
                 "gap": limit.gap, "l1_norm": norms["l1_limit"], "l2_norm": norms["l2_limit"]},
                predicted=True,
            ),
        ),
        objects={"limit": limit},
        verdicts=(),
    )  # fmt: skip
