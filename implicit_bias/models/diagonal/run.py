"""The run of diagonal networks: the limit of their start, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from ..._support.solve import Status
from ...data.arrays import Floats
from ...data.dataset import Dataset
from ...limits.finite.diagonal import DiagonalLimit, solve_diagonal
from ...limits.finite.program import LeastPotential
from ...networks.drawn import balanced_diagonal
from ...runs.gathering import gather
from ...runs.programs import RunPrograms, stated
from ...runs.reports.finding import Finding
from ...runs.reports.report import Report
from ...runs.setup import Setup, data_record, training_settings
from ...runs.user_data import load_chosen
from .setup import NAME, DiagonalSetup, of_margins, solved

__all__ = ["diagonal_programs", "run_diagonal"]

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
        **(_OF_MARGINS if of_margins(setup) else {}),
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
    u, v = _start(setup, dataset)
    setup.progress.stage(f"stating the {NAME} on {len(targets)} samples")
    margin = -math.log(GOAL) if of_margins(setup) else None
    problem = LeastPotential().literal(dataset.X_train, targets, u, v, margin=margin)
    program = stated(NAME, problem, "coefficients are p - q")
    return RunPrograms(setup.model, dataset.description, (program,))


def _prepare(setup: Setup) -> DiagonalSetup:
    options, seeds = setup.options, setup.seeds
    dataset, targets, misfit = _data(setup)
    start = _start(setup, dataset)
    X = np.asarray(dataset.X_train, dtype=np.float64)
    margin = -math.log(GOAL) if of_margins(setup) else None
    limit = solve_diagonal(X, targets, *start, margin=margin, tol=options.tol)
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
        start=start,
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
    if of_margins(setup):
        return dataset, y, 0.0
    fitted = X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return dataset, fitted, float(np.linalg.norm(y - fitted) / np.linalg.norm(y))


def _curvature(X: Floats, limit: DiagonalLimit, scale: float) -> float:
    """Return the largest curvature of the mean loss at the start and at the limit.

    It is that of `X diag(u^2 + v^2) X^T / n`, and `(u^2 + v^2)^2 = c^2 + 4 (u v)^2`.
    """
    c = 2 * scale**2
    sizes = (np.full(X.shape[1], c), np.sqrt(c**2 + 4 * limit.zeta**2))
    return max(float(np.linalg.norm(X * np.sqrt(size), 2)) ** 2 / len(X) for size in sizes)


def _curvature_of_margins(X: Floats, limit: DiagonalLimit, scale: float) -> float:
    """Return the largest curvature of log(loss): of the margins' slopes at start and limit."""
    c = 2 * scale**2
    sizes = (np.full(X.shape[1], c), np.sqrt(c**2 + 4 * limit.zeta**2))
    return max(float((X**2 @ size).max()) for size in sizes)


def _start(setup: Setup, dataset: Dataset) -> tuple[Floats, Floats]:
    """Return the weights u and v that the network begins with, in its precision."""
    options = setup.options
    if not 0 < options.init_scale < math.inf:
        raise ValueError(
            f"`init_scale` must be positive and finite, got {options.init_scale}: at 0 the "
            "network stays where it is"
        )
    u, v = (
        (options.init_scale * weights).astype(options.dtype).astype(np.float64)
        for weights in balanced_diagonal(dataset.X_train.shape[1])
    )
    return u, v


def _find(setup: DiagonalSetup) -> Iterator[Finding]:
    """Yield the findings of the run, each as soon as it is known."""
    setup.progress.stage(f"solving for the {NAME} on {len(setup.train.y)} samples")
    ends = not setup.trains or setup.limit.status is Status.NOT_SEPARABLE
    if ends or not of_margins(setup):
        yield solved(setup)
    if not ends:
        from .trained_run import train_and_compare  # with torch, which no limit alone needs

        yield from train_and_compare(setup)
