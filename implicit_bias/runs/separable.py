"""The run of separable data: predict the limit, train a network, compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._solve import MaxMarginProgram
from ..drawing.trainers import panels_beside
from ..limits.limit import Limit
from ..reports.finding import Finding
from ..reports.findings import gating_file, limit_alone, usable
from ..reports.report import Report, gather
from ..reports.side_by_side import side_by_side
from ..training.trainers import check_trainer
from .folder import Keeping
from .parts import Parts
from .progress import Progress
from .setup import Setup, prepare
from .trainer_run import RUN, Road, known_as, make_roads, predicted, travel

if TYPE_CHECKING:
    from .model import Model

__all__ = ["RUN", "run_separable"]


def run_separable(
    model: Model, options: Any, parts: Parts, progress: Progress, keeping: Keeping
) -> Report:
    """Predict the limit of a network, train one by each trainer that was named, and compare them.

    Raises
    ------
    ValueError, FileNotFoundError
        If an option is out of range or the data are not there, before any long work.
    """
    setup = prepare(model, options, progress, keeping, gating=parts.gating)
    # First: it knows what memory the problem takes.
    program = parts.formulation.program(*setup.train)
    roads = make_roads(setup, parts)
    for road in roads:
        check_trainer(road.trainer, road.network)
    title = f"{parts.network_name} beside {parts.formulation.name}"
    return gather(setup.heading(title=title), _find(setup, parts, program, roads), keeping)


def _find(
    setup: Setup, parts: Parts, program: MaxMarginProgram, roads: Sequence[Road]
) -> Iterator[Finding]:
    """What there is to find, each as soon as it is known."""
    options, name = setup.options, parts.formulation.name
    setup.progress.stage(f"solving {name} on {len(setup.train.y)} samples ({options.solver})")
    limit = parts.solve(program, setup.gates[0], solver=options.solver, tol=options.tol)
    yield limit_alone(limit, name)
    yield gating_file(setup.gating)
    if not (usable(limit) and setup.trains):
        return
    found: dict[str, dict[str, Finding]] = {}
    for road in roads:
        for finding in travel(road, parts, limit):
            of_each = found.setdefault(finding.key, {})
            of_each[road.trainer] = finding
            yield _together(of_each, setup, parts, limit)
        if not found["network"][road.trainer].finished:
            return


def _together(of_each: Mapping[str, Finding], setup: Setup, parts: Parts, limit: Limit) -> Finding:
    """What is known of the networks of several trainers, their curves in the same panels."""
    whole = side_by_side(of_each)
    if len(of_each) == 1 or whole.key != "network":
        return whole
    runs = {trainer: one.objects["trajectory"] for trainer, one in of_each.items()}
    panels = panels_beside(runs, limit, predicted(setup, limit), name=known_as(parts))
    return replace(whole, panels=tuple(panels))
