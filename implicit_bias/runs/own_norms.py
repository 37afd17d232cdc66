"""The program that each trainer of a run goes to, in the norm that it induces."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._support.solve import Certificate
from ..limits.exact.optimiser_norms import InducedNorm, coefficient_program, solve_in_norm
from ..measures.own_norm import OwnNorm
from ..quantities.said import Table
from ..quantities.table import lines
from ..training.catalogue import get_trainer
from .parts import JointParts, Parts
from .reports.finding import Finding
from .setup import SampleSetup

if TYPE_CHECKING:
    import torch

    from ..limits.exact.multiclass import MarginLimit
    from ..measures.kkt import KKTDistance
    from ..training.trajectory import Trajectory


def own_norms(
    setup: SampleSetup, trainers: Sequence[str], parts: Parts | JointParts, limit: MarginLimit
) -> dict[str, OwnNorm]:
    """Return the program of each trainer in its own norm; none where no table names one.

    That of the run's limit is known; others are solved where that is quick, and bounded by the
    weights of the loss where it is not.
    """
    if isinstance(parts, JointParts):
        return _of_classes(setup, trainers, parts, limit)
    if parts.architecture is None:
        return {}
    program = parts.formulation.program(*setup.train)
    n_units = int(limit.zeta.shape[0]) if limit.zeta.ndim > 1 else 1
    image = coefficient_program(program, n_units)

    def solve(own: OwnNorm) -> Certificate | None:
        solution = solve_in_norm(image, own.induced)
        return None if solution is None else solution.certificate

    found: dict[str, OwnNorm] = {}
    for trainer in trainers:
        norms = get_trainer(trainer).norms
        induced, own = parts.architecture.induced(norms), parts.induced_by(trainer)
        if induced is not None and own is not None:
            found[trainer] = OwnNorm(induced, image, norms, limit=own.norm is None)
    return _solved(setup, found, limit, solve)


def _of_classes(
    setup: SampleSetup, trainers: Sequence[str], parts: JointParts, limit: MarginLimit
) -> dict[str, OwnNorm]:
    """Return the program of each trainer of a network of K outputs."""
    image, n_classes = parts.image(setup.train), int(setup.train.y.shape[1])
    found: dict[str, OwnNorm] = {}
    for trainer in trainers:
        known = parts.of(trainer, n_classes)
        own = OwnNorm(
            InducedNorm(known.norm, known.exact, known.source), image, get_trainer(trainer).norms
        )
        found[trainer] = replace(own, limit=known.norm == parts.main.norm)

    def solve(own: OwnNorm) -> Certificate | None:
        options = setup.options
        return parts.solve(
            setup.train, solver=options.solver, tol=options.tol, norm=own.induced.norm
        ).certificate

    return _solved(setup, found, limit, solve)


def _solved(
    setup: SampleSetup,
    found: Mapping[str, OwnNorm],
    limit: MarginLimit,
    solve: Callable[[OwnNorm], Certificate | None],
) -> dict[str, OwnNorm]:
    """Return the programs with the bounds of their optima, each norm's solved once."""
    known: dict[str, OwnNorm] = {}
    for trainer, own in found.items():
        alike = [one for one in known.values() if one.induced.norm == own.induced.norm]
        if own.limit:
            bounds = float(limit.dual_objective), float(limit.objective)
            own = replace(own, lower=bounds[0], upper=bounds[1])
        elif alike:
            own = replace(own, lower=alike[0].lower, upper=alike[0].upper)
        else:
            setup.progress.stage(f"solving the program of {trainer}: {own.induced.described}")
            proved = solve(own)
            if proved is not None:
                own = replace(own, lower=proved.dual_objective, upper=proved.objective)
        known[trainer] = own
    return known


def norms_finding(
    trainer: str,
    every: Mapping[str, OwnNorm],
    network: torch.nn.Module,
    trajectory: Trajectory,
    kkt: KKTDistance | None,
) -> Finding:
    """Return how far a network is from its own limit, and from those of the other trainers.

    Parameters
    ----------
    trainer : str
    every : mapping of trainer to OwnNorm
        Of all trainers of the run.
    network : Module
    trajectory : Trajectory
        With its certified ratio.
    kkt : KKTDistance or None
        In its own norms; None for a network that does not separate its data.
    """
    own, margin = every[trainer], float(trajectory.smallest_margin[-1])
    ratio = float(trajectory.observed["margin_ratio"][-1])
    certified = float(trajectory.observed["certified_ratio"][-1])
    cells = {
        "norm": own.induced.norm,
        "margin_ratio": ratio,
        "certified_ratio": certified,
        "kkt_ratio": math.nan if kkt is None else kkt.ratio_bound,
    }
    others = {one.induced.norm: one for one in every.values() if one.lower > 0}
    rows = (
        ("norm of the layers", " | ".join(dict.fromkeys(own.layers))),
        *lines({"norm": own.induced.described}, "norm"),
        ("its program", _standing(own)),
        ("its optimum", _interval(own)),
        *lines(cells, "margin_ratio", "certified_ratio", "kkt_ratio"),
        *(
            (f"  margin over the largest in {name}", f"{one.ratio(margin, network):.4f}")
            for name, one in others.items()
        ),
    )
    table = Table("each trainer at its own limit", ("", "value"), rows, of_network=True)
    record: dict[str, Any] = {
        **cells,
        "exact": own.induced.exact,
        "objective": own.upper,
        "lower_bound": own.lower,
        "others": {name: one.ratio(margin, network) for name, one in others.items()},
    }
    return Finding.said("norms", record={"norms": record}, tables=(table,), row=cells)


def _standing(own: OwnNorm) -> str:
    return "exact" if own.induced.exact else "a lower bound: no theorem names a limit"


def _interval(own: OwnNorm) -> str:
    if not own.lower > 0:
        return "bounded by the loss weights"
    return f"{own.upper:.6g}"
