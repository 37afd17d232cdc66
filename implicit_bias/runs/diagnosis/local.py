"""The certified local optimum next to a network whose limit no theorem names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..._support.extras import MissingExtra
from ..._support.solve import Status
from ...data.made.near_orthogonal import near_orthogonality
from ...limits.convolution.stationary import ConvolutionPoint, solve_convolution
from ...limits.exact.path_limit import PathLimit
from ...limits.local.cells import OpenedNetwork
from ...limits.local.limit import LocalLimit
from ...limits.local.search import local_limit
from ...limits.relu.fixed_outer import FixedOuterLimit, solve_fixed_outer
from ...limits.relu.limit import ReLULocalLimit
from ...limits.relu.search import relu_local_limit
from ...measures.bounded_value import BoundedValue
from ...measures.fit.margin_rows import MarginRows
from ...networks.recognition.dependence import polynomial_degree
from ...networks.recognition.structure import Form, Structure
from ...networks.recognition.subject import SAME, Subject
from ...networks.relu import ReLU
from ...quantities.assumptions import Assumption
from ...quantities.atlas import PAPERS
from ...quantities.formatting import number
from ...quantities.said import Side, Table
from ...quantities.table import TABLE
from ..reports.bounds import (
    bound_evidence,
    certified,
    least_evidence,
    local_evidence,
    value_in_words,
)
from ..reports.finding import Finding
from ..reports.verdict import OPTIMA, WITHIN, Evidence
from ..reports.views import Views
from .optimum import Optimum, quadratic_bound
from .state import MeasuredNetwork, held_back_by, recognised_network

LOCAL = "local limit"
# Lines of both kinds of two-layer ReLU networks.
TURN, SLOPE = "  smallest turn out of the cones, degrees", "slope of closed units"
# A lower bound that is attained to this is the optimum.
ATTAINED = 1e-6
# Seconds after which no further convex program of a ReLU network begins, by default.
SECONDS = 60.0
# Forms of which the local limit is looked for, but for ReLU networks of two layers and one output:
# polynomials in the weights, and those that may be so behind the gates of their ReLUs.
POLYNOMIALS = (Form.LAYERS, Form.DEEP_CONVOLUTION, Form.QUADRATIC, Form.POLYNOMIAL)
IN_CELLS = (Form.DEEP_RELU, Form.PIECEWISE)


def find_local(
    found: MeasuredNetwork, *, max_weights: int, max_seconds: float = SECONDS
) -> Finding:
    """Find the local limit of a network that separates its data, where its form has one.

    Parameters
    ----------
    found : MeasuredNetwork
    max_weights : int
        Networks of more weights are given none.
    max_seconds : float
        After which no further convex program of a ReLU network begins.

    Returns
    -------
    Finding
        With evidence on the network beside its local limit, and of a bound of all networks; empty
        where nothing was looked for.
    """
    structure = found.structure
    polynomial = structure.form in (*POLYNOMIALS, *IN_CELLS)
    others = (Form.TWO_LAYER_RELU, Form.FIXED_OUTER)
    if not found.separates or not (polynomial or structure.form in others):
        return Finding(LOCAL)
    size = structure.subject.n_weights
    if size > max_weights:
        return _not_looked_for(
            f"{size:,} weights are more than `max_weights` = {max_weights:,}: second order takes "
            "matrices of (weights, weights); bound and KKT residual hold at any size"
        )
    if structure.form in IN_CELLS and not _is_polynomial_in_cells(structure.subject):
        return Finding(LOCAL)
    if structure.form is Form.FIXED_OUTER:
        return _of_fixed_outer(found, max_seconds)
    if structure.form is Form.DEEP_CONVOLUTION:
        return _of_convolutions(found, max_seconds)
    return _of_polynomial(found, max_seconds) if polynomial else _of_relu(structure, max_seconds)


def _is_polynomial_in_cells(subject: Subject) -> bool:
    """Return whether scores are polynomials in the weights behind the gates of their ReLUs."""
    gates = MarginRows(subject).gates
    if not gates or subject.data.gates is not None:
        return False
    network = OpenedNetwork(subject.network, tuple(one.shape[1] for one in gates))
    data = subject.data._replace(gates=torch.cat(gates, dim=1))
    return polynomial_degree(replace(subject, network=network, data=data)) is not None


def _not_looked_for(why: str) -> Finding:
    table = Table("the local limit was not looked for", ("", "why"), (("", why),))
    return Finding.said(LOCAL, tables=(table,))


def _finding(
    limit: LocalLimit | ReLULocalLimit | FixedOuterLimit | ConvolutionPoint,
    rows: Iterable[tuple[str, ...]],
    cells: Mapping[str, Any],
    proof: Mapping[str, Any],
    values: Mapping[str, Any],
    **known: Any,
) -> Finding:
    """Return the finding of a local limit beside the network."""
    title, heads = "the network beside its local limit", ("", "value", "what it is")
    return Finding(
        LOCAL,
        further=Views(
            record={"local_limit": limit.to_dict()},
            tables=(Table(title, heads, tuple(rows)),),
            certificates={LOCAL: proof},
            objects={"local_limit": limit},
            sides=(
                Side(LOCAL, {"objective": limit.value, **values}),
                Side("network", {"local_ratio": cells["local_ratio"]}),
            ),
            row=cells,
        ),
        **known,
    )


# Functions of two layers, or of several linear convolutions


def _of_function(
    limit: ReLULocalLimit | FixedOuterLimit | ConvolutionPoint,
    own: float,
    rows: Iterable[tuple[str, ...]],
    values: Mapping[str, Any],
    proofs: Mapping[Status, str],
    reason: str,
    who: str = "",
    remark: str = "",
) -> Finding:
    """Return the finding of a local limit among functions beside a network of value `own`.

    `who` are the networks whose values its certificate bounds, if they are to be named.
    """
    best = limit.status in (Status.SOLVED, Status.GLOBAL_OPTIMUM)
    status = Status.GLOBAL_OPTIMUM if best else limit.status
    reached = status in OPTIMA
    ratio, bound = limit.value / own if reached else math.nan, limit.certificate.lower_bound
    evidence = [
        Evidence(
            theory="local limit",
            status=status,
            near={"local_ratio": ratio} if reached else {},
            beside={"local_value": limit.value} if reached else {},
            numbers=value_in_words(own, limit.value if reached else None),
            proof=proofs.get(status, ""),
            reason=reason,
            remark=remark,
        )
    ]
    if who and bound > 0:
        above = limit.value if reached and not best else math.inf
        evidence.append(least_evidence(who, bound, above))
    first = (
        ("status", limit.status.name, "certified"),
        (TABLE["local_value"].title, number(limit.value, ".8g"), "certified"),
    )
    cells = {"local_value": limit.value, "local_ratio": ratio, "local_status": limit.status.name}
    record = limit.to_dict()
    return _finding(limit, (*first, *rows), cells, record, values, evidence=tuple(evidence))


def _least(bound: float) -> str:
    return number(bound, ".8g") if bound > 0 else "not known"


# Two-layer ReLU networks


def _of_relu(structure: Structure, max_seconds: float) -> Finding:
    subject, layers = structure.subject, structure.layers
    assert layers is not None
    w, a = layers.matrices(subject.weights)
    network = ReLU.from_weights(w, a, slope=layers.slope)
    X, y = layers.inputs(subject).numpy(), subject.data.y.numpy()
    try:
        limit = relu_local_limit(network, X, y, max_seconds=max_seconds)
    except MissingExtra as error:
        return _not_looked_for(str(error))
    proof = limit.certificate
    covered = "yes" if limit.status in OPTIMA and limit.covers(network) else "no, or not known"
    rows = (
        ("value of the network's function", number(limit.start_value, ".8g"), "measured"),
        ("  no network in its cones is below", number(limit.bound, ".8g"), "certified"),
        ("  no network of any width is below", _least(proof.lower_bound), "certified"),
        (TURN, number(proof.smallest_turn, ".3g"), "certified"),
        *([(SLOPE, number(layers.slope, ".4g"), "measured")] if layers.slope else []),
        ("live units, and to spare", f"{len(limit.units)}, {limit.n_spare}", "measured"),
        ("the network lies in the cones", covered, "certified"),
        *([("what is not known", limit.reason, "")] if limit.reason else []),
    )
    proofs = {
        Status.GLOBAL_OPTIMUM: "proved the best of all widths",
        Status.LOCAL_OPTIMUM: f"proved for turns below {proof.smallest_turn:.2g} degrees",
        Status.LIVE_OPTIMUM: "proved for its live units",
    }
    reason = limit.reason or "no theorem says that training ends there"
    who = "two-layer ReLU network, of any width,"
    return _of_function(limit, limit.start_value, rows, {"gap": limit.gap}, proofs, reason, who)


# Several full-width linear convolutions


def _of_convolutions(found: MeasuredNetwork, max_seconds: float) -> Finding:
    structure, features, value = found.structure, found.optimum.features, found.state.value
    subject, depth = structure.subject, len(structure.subject.weights)
    assert features is not None
    X = subject.data.X
    each = subject.on(torch.eye(X[0].numel(), dtype=X.dtype).view(-1, *X.shape[1:]), None)
    # Scores are linear in the inputs, and in the predictor end to end by their features.
    beta = np.linalg.lstsq(features(each), each.scores({}).numpy(), rcond=None)[0]
    phi, own = features(subject), subject.scores({}).numpy()
    if np.abs(phi @ beta - own).max() > SAME * np.abs(own).max():
        return _of_polynomial(found, max_seconds)  # of inputs that are not taken as they are
    y = subject.data.y.numpy()
    point = solve_convolution(phi, y, depth, structure.circles, start=beta)
    assert isinstance(point, ConvolutionPoint)
    least = point.certificate.lower_bound
    rows = (
        (TABLE["local_residual"].title, number(point.residual), "certified"),
        ("  no predictor is below", number(least, ".8g"), "certified"),
        ("  frequencies that are not 0", f"{point.n_live} of {point.spectrum.size}", "certified"),
    )
    proofs = {
        Status.GLOBAL_OPTIMUM: "proved the best of all predictors",
        Status.LOCAL_OPTIMUM: "proved strict",
    }
    who, values = f"linear convolution of {depth} layers", {"local_residual": point.residual}
    return _of_function(point, value, rows, values, proofs, held_back_by(found.state), who)


# Two-layer ReLU networks of a fixed outer layer


def _of_fixed_outer(found: MeasuredNetwork, max_seconds: float) -> Finding:
    subject, form = found.structure.subject, found.structure.outer
    assert form is not None
    live = form.outer != 0
    X, y, W = subject.inputs.numpy(), subject.data.y.numpy(), subject.weights[form.name]
    limit = solve_fixed_outer(
        X,
        y,
        form.outer[live].numpy(),
        slope=form.slope,
        start=W[live].numpy(),
        max_seconds=max_seconds,
    )
    nearly, proof = near_orthogonality(X, y, slope=form.slope), limit.certificate
    rows = (
        ("  no inner layer is below", _least(proof.lower_bound), "certified"),
        (TURN, number(proof.smallest_turn, ".3g"), "certified"),
        ("  its rank", f"{limit.rank}", "certified"),
        (SLOPE, number(form.slope, ".4g"), "measured"),
        ("inputs", nearly.message, "certified"),
    )
    proofs = {
        Status.GLOBAL_OPTIMUM: "proved the best of all inner layers",
        Status.LOCAL_OPTIMUM: f"proved for turns below {proof.smallest_turn:.2g} degrees",
    }
    frei = PAPERS["frei-2023"].named
    named = f"training ends there, as the inputs are nearly orthogonal ({frei})"
    reason = limit.reason or "no theorem says that training ends there"
    remark = named if nearly and limit.status is Status.SOLVED else ""
    values = {"gap": limit.gap}
    return _of_function(limit, found.state.value, rows, values, proofs, reason, remark=remark)


# Polynomials in the weights, behind fixed gates


def _of_polynomial(found: MeasuredNetwork, max_seconds: float) -> Finding:
    structure = found.structure
    bound = math.nan if found.optimum.present_gates else found.optimum.bound
    network = recognised_network(structure)
    assert network is not None
    local = local_limit(network, *structure.subject.data, max_seconds=max_seconds)
    if structure.form is Form.QUADRATIC:
        bound = max(_quadratic_bounds(found, local), default=math.nan)
    value = BoundedValue(
        value=found.state.value,
        bound=bound,
        local=local,
        weight_cosine=_weight_cosine(structure, local),
        earlier_step=None,
        earlier_distance=None,
        earlier_same=None,
    )
    best = Assumption(
        "no network of this form has a smaller value than the local limit (proved)",
        True if _is_global(value) else None,
        "least value of all",
        "proved" if _is_global(value) else "not known",
    )
    finding = _finding(
        local,
        value.rows(),
        {name: one for name, one in value.cells().items() if name.startswith("local_")},
        certified(local),
        {"local_residual": local.residual},
        assumptions=(best,),
        evidence=tuple(_evidence(found.optimum, value)),
    )
    return finding.also(record={"bounded": value.to_dict()}, objects={"bounded_value": value})


def _evidence(optimum: Optimum, value: BoundedValue) -> Iterator[Evidence]:
    """Yield the evidence on a network beside its local limit, and on its bound."""
    if _is_global(value) and value.bound_ratio >= 1 - WITHIN:
        yield Evidence(
            near={"margin_ratio": value.bound_ratio},
            remark="no network of this form has a smaller value (proved), though no theorem says "
            "that training ends there",
        )
    else:
        yield local_evidence(value)
    if optimum.present_gates:
        yield from gates_evidence(optimum)
    elif isinstance(optimum.limit, PathLimit) and math.isfinite(optimum.bound):
        yield bound_evidence(optimum.limit, value)
    elif math.isfinite(value.bound):
        best = math.inf if value.limit is None else value.limit.value
        attained = ", which the local limit attains" if _is_global(value) else ""
        yield least_evidence("network of this form", value.bound, best, attained)


def gates_evidence(optimum: Optimum) -> Iterator[Evidence]:
    """Yield what is proved of networks that keep their gates, as those that attain it need not."""
    if math.isfinite(optimum.bound):
        who = "network that keeps its gates on these samples"
        yield least_evidence(who, optimum.bound, math.inf)


def _is_global(value: BoundedValue) -> bool:
    """Return whether the local limit is proved to have the least value of all networks."""
    return value.limit is not None and value.bound >= (1 - ATTAINED) * value.limit.value


def _quadratic_bounds(found: MeasuredNetwork, local: LocalLimit) -> Iterator[float]:
    """Yield the bounds that the multipliers of network and local limit prove."""
    for lam in (local.multipliers, None if found.kkt is None else found.kkt.multipliers):
        if lam is not None and lam.any():
            yield quadratic_bound(found.structure.subject, np.clip(lam, 0, None))


def _weight_cosine(structure: Structure, local: LocalLimit) -> float:
    w = torch.cat([p.flatten() for p in structure.subject.weights.values()]).numpy()
    at = np.concatenate([np.ravel(p) for p in local.weights.values()])
    norms = float(np.linalg.norm(w) * np.linalg.norm(at))
    return float(w @ at) / norms if norms > 0 else math.nan
