"""The findings of a diagnosis: form, limit, network, local limit, course of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from ..._support.solve import Status
from ..._support.words import MarginLoss
from ...limits.limit import Limit
from ...measures.growth.extrapolation import extrapolate, inverse_log_loss
from ...measures.growth.unit_growth import unit_growth
from ...measures.scalars import DUAL_SLACK
from ...networks.losses.objectives import log_mean_loss
from ...networks.recognition.structure import Form, Structure
from ...quantities.assumptions import Assumption, Premise
from ...quantities.formatting import DASH
from ...quantities.premises import (
    DUAL_NORMS,
    FULL_BATCHES,
    GATES,
    HOMOGENEOUS,
    LINEAR_METHODS,
    LOSS,
    LOSS_TO_0,
    METHOD,
    SEPARABLE,
    SEPARATES,
)
from ...quantities.said import Side, Table
from ...quantities.table import lines
from ...training.trajectory import Trajectory
from ..prospects import heading_finding
from ..reports.finding import Finding
from ..reports.findings import dual_condition, solved
from ..reports.views import Views
from ..unit_changes import growth_finding
from .figure import plot_margins_beside, plot_ratio, plot_unit_shares
from .optimum import Optimum
from .state import MeasuredNetwork, OwnNetwork, recognised_network, unseparated
from .theory import THEORIES, form_in_words

FORM = "what the network is (measured)"


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
    homogeneous = HOMOGENEOUS.found(
        said="the network is homogeneous in its trained weights (measured: "
        f"{form_in_words(structure)}, to {scaling.error:.1g})",
        holds=scaling.whole_degree is not None,
        how=f"measured to {scaling.error:.0e}" if scaling.degree is not None else "measured",
    )
    assumptions = [homogeneous]
    if scaling.whole_degree is not None:
        moved = ", ".join((*shape.piecewise, *shape.others))
        how = f"measured: {moved} does" if moved else "measured"
        said = f"no trained weight moves a gate ({how})"
        assumptions.append(GATES.found(said=said, holds=shape.gates_are_fixed, how="measured"))
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
    return Finding.said(
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
        return Finding.said("limit", record={"limit": None}, tables=tables)
    found = solved(limit, optimum.name)
    values: dict[str, Any] = {
        "objective": limit.objective, "lower_bound": limit.dual_objective, "gap": limit.gap,
    }  # fmt: skip
    if limit.status is not Status.SOLVED:
        values = {"status": limit.status.name, **values}
    named = THEORIES[structure.form].says == "limit"
    found = found.but(sides=(Side(optimum.name, values, predicted=named),))
    if named:
        return found
    whose = "every network with its present gates" if optimum.present_gates else "every network"
    table = replace(found.views.tables[0], title=f"a bound of {whose}")
    said = found.views.assumptions if not optimum.present_gates else ()
    return found.but(tables=(table,), assumptions=said)


def network_finding(
    found: MeasuredNetwork, structure: Structure, optimum: Optimum, loss: MarginLoss
) -> Finding:
    """Return the network beside its limit: margins, norms, KKT residual, units."""
    state = found.state
    log_loss = float(log_mean_loss(torch.tensor(found.margins), loss))
    separates = state.smallest_margin > 0
    assumptions = [
        SEPARATES.found(said="the network separates its training data (measured)", holds=separates),
        LOSS.found(
            said=f"the loss is exponential-like: {loss}, as it was said to be",
            holds=True,
            how="as was said",
        ),
        LOSS_TO_0.found(said=f"{LOSS_TO_0.text}: log(1/loss) is {-log_loss:.3g} now"),
        *_open_premises(THEORIES[structure.form].assumes),
    ]
    if state.n_units > 1 and not math.isnan(state.largest_dual_norm):
        at_most_one = state.largest_dual_norm <= 1 + DUAL_SLACK
        holds = True if at_most_one else (False if state.small_units else None)
        assumptions.append(dual_condition(holds, state.largest_dual_norm))
    limit = optimum.limit if optimum.features is not None else None
    panels: list[Any] = []
    if separates:
        beside = None if limit is None else np.sort(np.asarray(limit.margins, dtype=float))
        own = np.sort(found.margins) / state.smallest_margin
        panels = [partial(plot_margins_beside, own, beside)]
        if structure.form is Form.UNITS and found.kkt is not None and state.n_units > 1:
            panels.append(partial(plot_unit_shares, *_shares(structure, found, limit)))
    said = state.cells() | {"log_inverse_loss": -log_loss, "smallest_margin": state.smallest_margin}
    rows = (*state.rows(), *lines({"log_inverse_loss": -log_loss}, "log_inverse_loss"))
    return Finding(
        "comparison",
        {"comparison": state},
        assumptions=tuple(assumptions),
        panels=tuple(panels),
        further=Views(
            record={"kkt": None if found.kkt is None else _record(found.kkt)},
            tables=(Table("the network", ("", "value"), rows, of_network=True),),
            row=said,
            sides=(*_held_out_side(state, optimum), Side("network", _of_screen(state, -log_loss))),
            shortfall="" if separates else unseparated(found),
        ),
    )


# Premises that have an assumption of their own, in the words of what was found.
STATED = (SEPARABLE, HOMOGENEOUS, GATES, LOSS, LOSS_TO_0, DUAL_NORMS)
# Those about steps; the others are about what they converge to.
OF_STEPS = (METHOD, LINEAR_METHODS, FULL_BATCHES)


def _open_premises(premises: Sequence[Premise]) -> list[Assumption]:
    """Return what a theorem assumes of training, which weights alone do not tell."""
    found = []
    for one in premises:
        if one in OF_STEPS:
            found.append(Assumption(one.text, None, "how it was trained", "not known here"))
        elif one not in STATED:
            found.append(Assumption(one.text, None, "convergence", "cannot be checked"))
    return found


def _of_screen(state: OwnNetwork, log_inverse_loss: float) -> dict[str, Any]:
    """Return what the first screen says of the network, the important first."""
    error = state.error_network
    values = {
        "objective": state.value if math.isnan(state.function_value) else state.function_value,
        "margin_ratio": state.margin_ratio,
        "kkt_residual": state.kkt_residual,
        "agreement": state.agreement,
        "error": error,
        "largest_dual_norm": state.largest_dual_norm if state.n_units > 1 else math.nan,
        "smallest_margin": state.smallest_margin,
        "log_inverse_loss": log_inverse_loss,
        "train_error_network": state.train_error_network,
    }
    return {name: one for name, one in values.items() if not math.isnan(one)}


def _held_out_side(state: OwnNetwork, optimum: Optimum) -> tuple[Side, ...]:
    """Return what the limit's column says of held-out data, where there are some."""
    error = state.error_limit
    return () if math.isnan(error) else (Side(optimum.name, {"error": error}, predicted=True),)


def _record(kkt: Any) -> dict[str, Any]:
    record: dict[str, Any] = kkt.to_dict()
    return {name: one for name, one in record.items() if not isinstance(one, list)}


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


def course_finding(
    trajectory: Trajectory, structure: Structure, optimum: Optimum, found: MeasuredNetwork
) -> Finding:
    """Return where the margin ratio is heading along a trajectory of this network."""
    degree = structure.homogeneity.whole_degree
    named = THEORIES[structure.form].says == "limit"
    known = named and math.isfinite(optimum.bound) and degree is not None
    ratio = trajectory.observed.get("margin_ratio")
    if ratio is None and known:
        assert degree is not None
        values = (trajectory.weight_norm**2 / degree) ** (degree / 2)
        ratio = optimum.bound * trajectory.smallest_margin / values
    objects: dict[str, Any] = {"trajectory": trajectory}
    separates = found.state.smallest_margin > 0
    if ratio is None or degree is None or not separates or not known:
        return Finding.said("prospects", record={"farther": None}, objects=objects)
    units: Mapping[str, Any] = {}
    if structure.form is Form.UNITS and found.kkt is not None:
        assert structure.units is not None
        norms = structure.units.zeta(structure.subject.weights).norm(dim=1).numpy()
        units = {"dual_norms": found.kkt.dual_norms, "unit_norms": norms}
    u = inverse_log_loss(trajectory.log_loss)
    heading = extrapolate(u, ratio, upper=1.0, degree=degree, **units)
    return heading_finding(heading, float(ratio[-1]), float(u[-1])).but(
        panels=(partial(plot_ratio, -trajectory.log_loss, np.asarray(ratio)),),
        objects=objects | {"extrapolation": heading},
    )
