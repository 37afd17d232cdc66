"""The findings of a diagnosis: form, limit, network, local limit, course of training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from .._solve import Status
from .._words import MarginLoss
from ..limits.limit import Limit
from ..local_limits.limit import LocalLimit
from ..local_limits.search import local_limit
from ..measures.bounded_value import BoundedValue
from ..measures.extrapolation import extrapolate, inverse_log_loss
from ..measures.scalars import DUAL_SLACK
from ..measures.unit_growth import unit_growth
from ..quantities.formatting import DASH, number
from ..quantities.table import lines
from ..recognition.structure import Form, Structure
from ..reports.finding import Assumption, Finding, Table
from ..reports.findings import solved
from ..reports.verdict import WITHIN, Evidence
from ..runs.prospects import heading_table
from ..runs.unit_changes import growth_finding
from ..training.objectives import log_mean_loss
from ..training.trajectory import Trajectory
from .figure import plot_margins_beside, plot_ratio, plot_unit_shares
from .optimum import Optimum, quadratic_bound
from .state import MeasuredNetwork, OwnNetwork, held_back_by, recognised_network
from .theory import THEORIES, form_in_words

__all__ = [
    "course_finding",
    "form_finding",
    "limit_finding",
    "local_finding",
    "network_finding",
    "units_finding",
    "verdict_finding",
]

FORM = "what the network is (measured)"
LOCAL_FORMS = frozenset({Form.LAYERS, Form.QUADRATIC, Form.POLYNOMIAL})
# A lower bound that is attained to this is the optimum.
ATTAINED = 1e-6


def form_finding(structure: Structure) -> Finding:
    """Return what a network is: degree, form, and every parameter's part in it."""
    scaling, shape = structure.homogeneity, structure.dependence
    rows = []
    for group in scaling.groups:
        degree = DASH if group.degree is None else f"{group.degree:g}"
        if group.together:
            others = [name for name in group.together if name != group.name]
            degree += f" with {', '.join(others)}"
        size = " x ".join(map(str, group.shape)) or "1"
        rows.append((group.name, size, degree, _in_words(structure, group.name)))
    rows += [(name, DASH, DASH, "hard gates: no gradient moves it") for name in structure.still]
    homogeneous = Assumption(
        "the network is homogeneous in its trained weights (measured: "
        f"{form_in_words(structure)}, to {scaling.error:.1g})",
        scaling.whole_degree is not None,
    )
    assumptions = [homogeneous]
    if scaling.whole_degree is not None:
        fixed = THEORIES[structure.form].says != "none"
        moved = ", ".join((*shape.piecewise, *shape.others))
        text = "no trained weight moves a gate" if fixed else f"gates are moved by {moved}"
        assumptions.append(Assumption(f"{text} (measured)", shape.gates_are_fixed))
    if scaling.exponents:
        powers = ", ".join(f"{name}: {power:g}" for name, power in scaling.exponents.items())
        text = f"quasi-homogeneous, parameters scaled by a to these powers, {powers} (measured)"
        assumptions.append(Assumption(text, True))
    record = {
        "form": structure.form.name,
        "degree": scaling.degree,
        "error": scaling.error,
        "euler_error": scaling.euler_error,
        "mixed": list(scaling.mixed),
        "degree_without": scaling.degree_without,
        "exponents": dict(scaling.exponents),
        "powers": list(scaling.powers),
        "parameters": {
            one.name: {"shape": list(one.shape), "degree": one.degree,
                       "together": list(one.together),
                       "polynomial": shape.in_parameter[one.name]}
            for one in scaling.groups
        },
        "gates_fixed": shape.gates_are_fixed,
        "moved_by": [*shape.piecewise, *shape.others],
        "without_gradient": list(structure.still),
        "inputs": structure.inputs.name,
    }  # fmt: skip
    return Finding(
        "form",
        record={"form": record},
        tables=(Table(FORM, ("parameter", "shape", "degree", "scores in it"), tuple(rows)),),
        assumptions=tuple(assumptions),
        objects={"homogeneity": scaling},
    )


def _in_words(structure: Structure, name: str) -> str:
    shape = structure.dependence
    degree = shape.in_parameter[name]
    if degree == 1:
        return "linear"
    if degree is not None:
        return f"polynomial of degree {degree}"
    if name in shape.piecewise:
        own = structure.homogeneity.degree_in(name)
        return "linear between kinks" if own in (None, 1) else "polynomial between kinks"
    return "curved"


def limit_finding(structure: Structure, optimum: Optimum) -> Finding:
    """Return the certified limit or bound; empty where the form has neither."""
    limit = optimum.limit
    if limit is None:
        rows = (("program", optimum.remark),) if optimum.remark else ()
        tables = (Table("prediction", ("", "none"), rows),) if rows else ()
        return Finding("limit", record={"limit": None}, tables=tables)
    found = solved(limit, optimum.name)
    if THEORIES[structure.form].says == "limit":
        return found
    whose = "every network with its present gates" if optimum.present_gates else "every network"
    table = replace(found.tables[0], title=f"a bound of {whose}")
    said = found.assumptions if not optimum.present_gates else ()
    return replace(found, tables=(table,), assumptions=said)


def network_finding(
    found: MeasuredNetwork, structure: Structure, optimum: Optimum, loss: MarginLoss
) -> Finding:
    """Return the network beside its limit: margins, norms, KKT residual, units."""
    state = found.state
    log_loss = float(log_mean_loss(torch.tensor(found.margins), loss))
    separates = state.smallest_margin > 0
    assumptions = [
        Assumption("the network separates its training data (measured)", separates),
        Assumption(f"the loss is exponential-like: {loss}, as it was said to be", True),
        Assumption(f"the loss tends to 0: log(1/loss) is {-log_loss:.3g} now", None),
        Assumption("full batches, small steps, weights that converge in direction", None),
    ]
    if state.n_units > 1 and not math.isnan(state.largest_dual_norm):
        at_most_one = state.largest_dual_norm <= 1 + DUAL_SLACK
        holds = True if at_most_one else (False if state.small_units else None)
        text = "every unit of the network has a dual norm of at most 1, to a hundredth"
        assumptions.append(Assumption(text, holds))
    limit = optimum.limit if optimum.features is not None else None
    panels: list[Any] = []
    if separates:
        beside = None if limit is None else np.sort(np.asarray(limit.margins, dtype=float))
        own = np.sort(found.margins) / state.smallest_margin
        panels = [partial(plot_margins_beside, own, beside)]
        if structure.form is Form.UNITS and found.kkt is not None and state.n_units > 1:
            panels.append(partial(plot_unit_shares, *_shares(structure, found, limit)))
    said = state.cells() | {"log_inverse_loss": -log_loss, "smallest_margin": state.smallest_margin}
    return Finding.measured(
        "comparison",
        state,
        record={"kkt": None if found.kkt is None else _record(found.kkt)},
        tables=(
            Table(
                "the network",
                ("", "value"),
                (*state.rows(), *lines({"log_inverse_loss": -log_loss}, "log_inverse_loss")),
                of_network=True,
            ),
        ),
        panels=tuple(panels),
        assumptions=tuple(assumptions),
        row=said,
        shortfall="" if separates else _unseparated(found),
    )


def _record(kkt: Any) -> dict[str, Any]:
    record: dict[str, Any] = kkt.to_dict()
    return {name: one for name, one in record.items() if not isinstance(one, list)}


def _unseparated(found: MeasuredNetwork) -> str:
    n_wrong = int((found.margins <= 0).sum())
    return (
        f"the network has {n_wrong} of {len(found.margins)} training samples on the wrong side "
        f"(smallest margin {found.state.smallest_margin:.3g}): train longer, or with another "
        "learning rate"
    )


def _shares(
    structure: Structure, found: MeasuredNetwork, limit: Limit | None
) -> tuple[Any, Any, Any]:
    """Shares of the norm of all units, those in the limit, and dual norms."""
    assert structure.units is not None and found.kkt is not None
    norms = structure.units.zeta(structure.subject.weights).norm(dim=1).numpy()
    predicted = None
    if limit is not None:
        own = np.asarray(limit.unit_norms, dtype=float)
        predicted = own / own.sum()
    return norms / norms.sum(), predicted, np.asarray(found.kkt.dual_norms)


def units_finding(structure: Structure, optimum: Optimum, found: MeasuredNetwork) -> Finding:
    """Return which units will still grow or fall, to first order; empty without several units."""
    if structure.form is not Form.UNITS or found.kkt is None or found.state.n_units < 2:
        return Finding("slow units")
    network = recognised_network(structure)
    assert network is not None
    growth = unit_growth(network, *structure.subject.data, limit=optimum.limit, kkt=found.kkt)
    return growth_finding(growth)


def local_finding(
    structure: Structure, optimum: Optimum, found: MeasuredNetwork, *, max_weights: int
) -> tuple[Finding, BoundedValue | None]:
    """Return the KKT point next to the network between a bound and the network's value."""
    network, size = recognised_network(structure), structure.subject.n_weights
    if structure.form not in LOCAL_FORMS or not found.state.smallest_margin > 0 or network is None:
        return Finding("local limit"), None
    if size > max_weights:
        text = f"{size:,} weights are more than `max_weights` = {max_weights:,}"
        title = "the local limit was not looked for"
        return Finding("local limit", tables=(Table(title, ("", "why"), (("", text),)),)), None
    local = local_limit(network, *structure.subject.data)
    bound = optimum.bound
    if structure.form is Form.QUADRATIC:
        bound = max(_quadratic_bounds(structure, found, local), default=math.nan)
    value = BoundedValue(
        value=found.state.value,
        bound=bound,
        local=local,
        weight_cosine=_weight_cosine(structure, local),
        earlier_step=None,
        earlier_distance=None,
        earlier_same=None,
    )
    row = {name: one for name, one in value.cells().items() if name.startswith("local_")}
    least = Assumption(
        "no network of this form has a smaller value than the local limit (proved by its "
        "multipliers)",
        True if is_global(value) else None,
    )
    certified = {"status": local.status.name, "seconds": local.seconds,
                 "n_samples": len(local.active)}  # fmt: skip
    return (
        Finding(
            "local limit",
            record={"local_limit": local.to_dict(), "bounded": value.to_dict()},
            tables=(
                Table(
                    "the network beside its local limit",
                    ("", "value", "what it is"),
                    tuple(value.rows()),
                ),
            ),
            assumptions=(least,),
            certificates={"local limit": certified},
            objects={"local_limit": local, "bounded_value": value},
            row=row,
        ),
        value,
    )


def is_global(value: BoundedValue) -> bool:
    """Return whether the local limit is proved to have the least value of all networks."""
    return value.limit is not None and value.bound >= (1 - ATTAINED) * value.limit.value


def _quadratic_bounds(
    structure: Structure, found: MeasuredNetwork, local: LocalLimit
) -> Iterator[float]:
    """Yield the bounds that the multipliers of network and local limit prove."""
    kkt = found.kkt
    for lam in (local.multipliers, None if kkt is None else kkt.multipliers):
        if lam is not None and lam.any():
            yield quadratic_bound(structure.subject, np.clip(lam, 0, None))


def _weight_cosine(structure: Structure, local: LocalLimit) -> float:
    w = torch.cat([p.flatten() for p in structure.subject.weights.values()]).numpy()
    at = np.concatenate([np.ravel(p) for p in local.weights.values()])
    norms = float(np.linalg.norm(w) * np.linalg.norm(at))
    return float(w @ at) / norms if norms > 0 else math.nan


def course_finding(
    trajectory: Trajectory, structure: Structure, optimum: Optimum, found: MeasuredNetwork
) -> Finding:
    """Return where the margin ratio is heading along a trajectory of this network."""
    degree = structure.homogeneity.whole_degree
    known = math.isfinite(optimum.bound) and degree is not None
    ratio = trajectory.observed.get("margin_ratio")
    if ratio is None and known:
        assert degree is not None
        values = (trajectory.weight_norm**2 / degree) ** (degree / 2)
        ratio = optimum.bound * trajectory.smallest_margin / values
    objects = {"trajectory": trajectory}
    separates = found.state.smallest_margin > 0
    if ratio is None or degree is None or not separates or not known:
        return Finding("course", objects=objects)
    units: Mapping[str, Any] = {}
    if structure.form is Form.UNITS and found.kkt is not None:
        assert structure.units is not None
        norms = structure.units.zeta(structure.subject.weights).norm(dim=1).numpy()
        units = {"dual_norms": found.kkt.dual_norms, "unit_norms": norms}
    u = inverse_log_loss(trajectory.log_loss)
    heading = extrapolate(u, ratio, upper=1.0, degree=degree, **units)
    table = heading_table(heading, float(ratio[-1]), float(u[-1]))
    return Finding(
        "course",
        record={"extrapolation": heading.to_dict()},
        tables=(table,),
        panels=(partial(plot_ratio, -trajectory.log_loss, np.asarray(ratio)),),
        objects=objects | {"extrapolation": heading},
    )


def verdict_finding(
    structure: Structure,
    optimum: Optimum,
    found: MeasuredNetwork,
    value: BoundedValue | None,
    twins: tuple[int, int] | None,
) -> Finding:
    """Decide on the verdict, and on what is proved of all networks of the form."""
    state, says = found.state, THEORIES[structure.form].says
    smallest = state.smallest_margin
    if twins is not None:
        reason = (
            f"proved: no network whatever separates samples {twins[0]} and {twins[1]}, which are "
            "equal and have different labels"
        )
        return Finding.judged(
            Evidence(status=Status.NOT_SEPARABLE, reason=reason, smallest_margin=smallest)
        )
    limit = optimum.limit
    inseparable = limit is not None and limit.status is Status.NOT_SEPARABLE
    if limit is not None and inseparable and not optimum.present_gates:
        reason = f"proved: no network of this form separates these {len(found.margins)} samples"
        return Finding.judged(
            Evidence(status=limit.status, reason=reason, smallest_margin=smallest)
        )
    if not state.smallest_margin > 0:
        own = form_in_words(structure)
        return Finding.judged(
            Evidence(
                theory="none", reason=_unseparated(found), remark=own, smallest_margin=smallest
            )
        )
    if says == "limit":
        assert limit is not None
        return Finding.judged(
            Evidence(
                status=limit.status,
                near={"margin_ratio": state.margin_ratio},
                beside={"agreement": state.agreement},
                reason=held_back_by(state),
                smallest_margin=smallest,
            )
        )
    return Finding.judged(*_without_limit(structure, optimum, state, value))


def _without_limit(
    structure: Structure, optimum: Optimum, state: OwnNetwork, value: BoundedValue | None
) -> Iterator[Evidence]:
    """Yield the evidence on a network whose limit no theorem names."""
    said, smallest = form_in_words(structure), state.smallest_margin
    local = None if value is None else value.limit
    if value is None or value.local is None:
        residual = state.kkt_residual
        near = "" if math.isnan(residual) else f"; KKT residual {number(residual, '.2g')}"
        yield Evidence(theory="none", reason=said + near, smallest_margin=smallest)
    elif is_global(value) and value.bound_ratio >= 1 - WITHIN:
        yield Evidence(
            near={"margin_ratio": value.bound_ratio},
            remark="no network of this form has a smaller value (proved), though no theorem says "
            "that training ends there",
            smallest_margin=smallest,
        )
    else:
        yield Evidence(
            theory="local limit",
            status=None if local is None else local.status,
            near={} if local is None else {"local_ratio": value.local_ratio},
            reason=value.local.reason or said,
            smallest_margin=smallest,
        )
    bound = optimum.bound if value is None else value.bound
    if math.isfinite(bound):
        whose = "with its present gates" if optimum.present_gates else "of this form"
        best = f"no network {whose} is below {bound:.5g} (proved)"
        if value is not None and is_global(value):
            best += ", which the local limit attains"
        else:
            least = state.value if local is None else min(state.value, local.value)
            best += f": the best of all lies between {bound:.5g} and {least:.5g}"
        yield Evidence(theory="bound", reason=best)
