"""The program that each trainer of a run goes to, in the norm that it induces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._support.solve import Certificate, GatedRows, RelativeMargins
from ..limits.exact.optimiser_norms import coefficient_program, solve_in_norm
from ..measures.own_norm import OwnNorm
from ..quantities.said import Table
from ..quantities.table import lines
from ..training.catalogue import get_trainer
from .parts import JointParts, n_outputs
from .reports.finding import Finding
from .separable import SeparableSetup

if TYPE_CHECKING:
    import torch

    from ..limits.exact.multiclass import MarginLimit
    from ..measures.kkt import KKTDistance
    from ..training.trajectory import Trajectory


def own_norms(
    setup: SeparableSetup, trainers: Sequence[str], limit: MarginLimit
) -> dict[str, OwnNorm]:
    """Return the program of each trainer in its own norm; none where no table names one.

    That of the run's limit is known; others are solved where that is quick, and bounded by the
    weights of the loss where it is not.
    """
    found = {one: setup.parts.induced_by(one, n_outputs(setup.train)) for one in trainers}
    image = _image(setup, limit) if any(found.values()) else None
    known: dict[str, OwnNorm] = {}
    for trainer, one in found.items():
        if one is None or image is None:
            continue
        own = OwnNorm(one.induced, image, get_trainer(trainer).norms, limit=one.norm is None)
        alike = [other for other in known.values() if other.induced.norm == own.induced.norm]
        proved: Any = None
        if own.limit:
            proved = limit.certificate
        elif alike:
            own = replace(own, lower=alike[0].lower, upper=alike[0].upper)
        else:
            setup.progress.stage(f"solving the program of {trainer}: {own.induced.described}")
            proved = _proof(setup, own)
        if proved is not None:
            own = replace(own, lower=float(proved.dual_objective), upper=float(proved.objective))
        known[trainer] = own
    return known


def _image(setup: SeparableSetup, limit: MarginLimit) -> GatedRows | RelativeMargins:
    """Return the margins of the training sample as a map of the coefficients."""
    if isinstance(setup.parts, JointParts):
        return setup.parts.image(setup.train)
    assert setup.program is not None
    return coefficient_program(setup.program, len(limit.zeta) if limit.zeta.ndim > 1 else 1)


def _proof(setup: SeparableSetup, own: OwnNorm) -> Certificate | None:
    """Solve a program in a norm of its own; None where nothing but bounds is at hand quickly."""
    if isinstance(setup.parts, JointParts):
        how = {"solver": setup.options.solver, "tol": setup.options.tol}
        return setup.parts.solve(setup.train, norm=own.induced.norm, **how).certificate
    assert isinstance(own.image, GatedRows)
    solution = solve_in_norm(own.image, own.induced)
    return None if solution is None else solution.certificate


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
    ratios = ("margin_ratio", "certified_ratio")
    cells = {
        "norm": own.induced.norm,
        **{name: float(trajectory.observed[name][-1]) for name in ratios},
        "kkt_ratio": math.nan if kkt is None else kkt.ratio_bound,
    }
    others = {
        one.induced.norm: one.ratio(margin, network) for one in every.values() if one.lower > 0
    }
    exact = own.induced.exact
    standing = "exact" if exact else "a lower bound: no theorem names a limit"
    rows = (
        ("norm of the layers", " | ".join(dict.fromkeys(own.layers))),
        *lines({"norm": own.induced.described}, "norm"),
        ("its program", standing),
        ("its optimum", f"{own.upper:.6g}" if own.lower > 0 else "bounded by the loss weights"),
        *lines(cells, *ratios, "kkt_ratio"),
        *((f"  margin / largest margin in {name}", f"{one:.4f}") for name, one in others.items()),
    )
    table = Table("each trainer at its own limit", ("", "value"), rows, of_network=True)
    record: dict[str, Any] = {
        **cells,
        "exact": exact,
        "objective": own.upper,
        "lower_bound": own.lower,
        "others": others,
    }
    return Finding.said("norms", record={"norms": record}, tables=(table,), row=cells)
