"""The findings of a diagnosis: form, limit, network, local limit, course of training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._support.solve import Status
from ..._support.words import MarginLoss
from ...data.arrays import Floats
from ...limits.exact.multiclass import MulticlassLimit
from ...measures.growth.extrapolation import extrapolate, inverse_log_loss
from ...measures.growth.unit_growth import unit_growth
from ...measures.scalars import DUAL_SLACK
from ...networks.recognition.regime import log_inverse_loss
from ...networks.recognition.structure import Structure
from ...quantities.assumptions import Assumption, Premise
from ...quantities.formatting import DASH
from ...quantities.measured import plain
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
from .method import Method
from .state import MeasuredNetwork, OwnNetwork, recognised_network
from .theory import form_in_words

FORM = "what the network is (measured)"


def form_finding(structure: Structure, *, assumes: bool = True) -> Finding:
    """Return what a network is: degree, form, and every parameter's part in it.

    Parameters
    ----------
    structure : Structure
    assumes : bool
        Whether its theorem is of homogeneous networks.
    """
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
    measured = (
        "degree", "error", "euler_error", "mixed", "degree_without", "exponents", "powers",
    )  # fmt: skip
    record = {
        "form": structure.form.name,
        **{name: plain(getattr(scaling, name)) for name in measured},
        "parameters": {
            one.name: {"shape": list(one.shape), "degree": one.degree,
                       "together": list(one.together),
                       "polynomial": shape.in_parameter.get(one.name)}
            for one in scaling.groups
        },
        "gates_fixed": shape.gates_are_fixed if shape.in_parameter else None,
        "moved_by": [*shape.piecewise, *shape.others],
        "without_gradient": list(structure.still),
        "inputs": structure.inputs.name,
    }  # fmt: skip
    return Finding.said(
        "form",
        record={"form": record},
        tables=(Table(FORM, ("parameter", "shape", "degree", "scores in it"), tuple(rows)),),
        assumptions=tuple(assumptions) if assumes else (),
        objects={"homogeneity": scaling},
    )


def _in_words(structure: Structure, name: str) -> str:
    shape = structure.dependence
    if name not in shape.in_parameter:
        return DASH
    degree = shape.in_parameter[name]
    if degree == 1:
        return "linear"
    if degree is not None:
        return f"polynomial of degree {degree}"
    if name in shape.piecewise:
        own = structure.homogeneity.degree_in(name)
        return "linear between kinks" if own in (None, 1) else "polynomial between kinks"
    return "curved"


def limit_finding(network: MeasuredNetwork) -> Finding:
    """Return the certified limit or bound; empty where the form has neither."""
    optimum, limit = network.optimum, network.optimum.limit
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
    found = found.but(sides=(Side(optimum.name, values, predicted=network.named),))
    if network.named:
        return found
    whose = "every network with its present gates" if optimum.present_gates else "every network"
    table = replace(found.views.tables[0], title=f"a bound of {whose}")
    said = found.views.assumptions if not optimum.present_gates else ()
    return found.but(tables=(table,), assumptions=said)


def network_finding(
    found: MeasuredNetwork, loss: MarginLoss, method: Method | None = None
) -> Finding:
    """Return the network beside its limit: margins, norms, KKT residual, units.

    Parameters
    ----------
    found : MeasuredNetwork
    loss : {"logistic", "exponential"}
    method : Method, optional
        How it was trained, for what the theorem of its form assumes of that.
    """
    state, optimum, kkt = found.state, found.optimum, found.kkt
    log_loss = -log_inverse_loss(found.structure.subject, loss)
    assumptions = [
        SEPARATES.found(
            said="the network separates its training data (measured)", holds=found.separates
        ),
        LOSS.found(
            said=f"the loss is exponential-like: {loss}, as it was said to be",
            holds=True,
            how="as was said",
        ),
        LOSS_TO_0.found(said=f"{LOSS_TO_0.text}: log(1/loss) is {-log_loss:.3g} now"),
        *(_open_premises(found.theory.assumes, method) if method is not None else ()),
    ]
    if state.n_units > 1 and not math.isnan(state.largest_dual_norm):
        at_most_one = state.largest_dual_norm <= 1 + DUAL_SLACK
        holds = True if at_most_one else (False if state.small_units else None)
        assumptions.append(dual_condition(holds, state.largest_dual_norm))
    of_samples = optimum.features is not None and found.structure.subject.n_outputs == 1
    limit = optimum.limit if of_samples else None
    panels: list[Any] = []
    if found.separates:
        beside = None if limit is None else np.sort(np.asarray(limit.margins, dtype=float))
        own = np.sort(found.margins) / state.smallest_margin
        panels = [partial(plot_margins_beside, own, beside)]
        if kkt is not None and state.n_units > 1:
            shares, dual_norms = _shares(found.unit_norms), np.asarray(kkt.dual_norms)
            theirs = None if limit is None else _shares(np.asarray(limit.unit_norms, dtype=float))
            panels.append(partial(plot_unit_shares, shares, theirs, dual_norms))
    ends = {"log_inverse_loss": -log_loss}
    record = {} if kkt is None else kkt.to_dict()
    known = {name: one for name, one in record.items() if not isinstance(one, list)}
    rows = (*state.rows(), *lines(ends, *ends))
    sides = [Side("network", _of_screen(state, -log_loss))]
    if not math.isnan(state.error_limit):
        sides.insert(0, Side(optimum.name, {"error": state.error_limit}, predicted=True))
    return Finding(
        "comparison",
        {"comparison": state},
        assumptions=tuple(assumptions),
        panels=tuple(panels),
        further=Views(
            record={"kkt": known or None},
            tables=(Table("the network", ("", "value"), rows, of_network=True),),
            row=ends,
            sides=tuple(sides),
            shortfall="" if found.separates else found.lacking,
        ),
    )


def _shares(norms: Floats) -> Floats:
    return np.asarray(norms / norms.sum())


# Premises that have an assumption of their own, in the words of what was found.
STATED = (SEPARABLE, HOMOGENEOUS, GATES, LOSS, LOSS_TO_0, DUAL_NORMS)
# Those about steps; the others are about what they converge to.
OF_STEPS = (METHOD, LINEAR_METHODS, FULL_BATCHES)


def _open_premises(premises: Sequence[Premise], method: Method) -> list[Assumption]:
    """Return what a theorem assumes of training, which weights alone do not tell."""
    found = []
    for one in premises:
        if one is FULL_BATCHES and method.batches is not None:
            found.append(method.of_batches)
        elif one in OF_STEPS:
            found.append(Assumption(one.text, None, "how it was trained", "not known here"))
        elif one not in STATED:
            found.append(Assumption(one.text, None, "convergence", "cannot be checked"))
    return found


def _of_screen(state: OwnNetwork, log_inverse_loss: float) -> dict[str, Any]:
    """Return what the first screen says of the network, the important first."""
    values = {
        "objective": state.value if math.isnan(state.function_value) else state.function_value,
        "margin_ratio": state.margin_ratio,
        "kkt_residual": state.kkt_residual,
        "increment_residual": state.increment_residual,
        "agreement": state.agreement,
        "error": state.error_network,
        "largest_dual_norm": state.largest_dual_norm if state.n_units > 1 else math.nan,
        "smallest_margin": state.smallest_margin,
        "log_inverse_loss": log_inverse_loss,
        "train_error_network": state.train_error_network,
    }
    return {name: one for name, one in values.items() if not math.isnan(one)}


def units_finding(found: MeasuredNetwork) -> Finding:
    """Return which units will still grow or fall, to first order; empty without several units."""
    if found.kkt is None or found.state.n_units < 2:
        return Finding("slow units")
    structure = found.structure
    network = recognised_network(structure)
    assert network is not None
    limit = found.optimum.limit
    assert not isinstance(limit, MulticlassLimit)
    return growth_finding(unit_growth(network, *structure.subject.data, limit=limit, kkt=found.kkt))


def course_finding(trajectory: Trajectory, found: MeasuredNetwork) -> Finding:
    """Return where the margin ratio is heading along a trajectory of this network."""
    degree, bound = found.structure.homogeneity.whole_degree, found.optimum.bound
    objects: dict[str, Any] = {"trajectory": trajectory}
    if degree is None or not (found.named and found.separates and math.isfinite(bound)):
        return Finding.said("prospects", record={"farther": None}, objects=objects)
    ratio = trajectory.observed.get("margin_ratio")
    if ratio is None:
        values = (trajectory.weight_norm**2 / degree) ** (degree / 2)
        ratio = bound * trajectory.smallest_margin / values
    units: Mapping[str, Any] = {}
    if len(found.unit_norms) and found.kkt is not None:
        units = {"dual_norms": found.kkt.dual_norms, "unit_norms": found.unit_norms}
    u = inverse_log_loss(trajectory.log_loss)
    heading = extrapolate(u, ratio, upper=1.0, degree=degree, **units)
    return heading_finding(heading, float(ratio[-1]), float(u[-1])).but(
        panels=(partial(plot_ratio, -trajectory.log_loss, np.asarray(ratio)),),
        objects=objects | {"extrapolation": heading},
    )
