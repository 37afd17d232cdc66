"""The certified local optimum next to a network whose limit no theorem names."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from ..._support.extras import MissingExtra
from ..._support.solve import Status
from ...limits.exact.path_limit import PathLimit
from ...limits.local.limit import LocalLimit
from ...limits.local.search import local_limit
from ...limits.relu.limit import ReLULocalLimit
from ...limits.relu.search import relu_local_limit
from ...measures.bounded_value import BoundedValue
from ...networks.recognition.structure import Form, Structure
from ...networks.relu import ReLU
from ...quantities.assumptions import Assumption
from ...quantities.formatting import number
from ...quantities.said import Side, Table
from ...quantities.table import TABLE
from ..reports.bounds import bound_evidence, local_evidence
from ..reports.finding import Finding
from ..reports.verdict import OPTIMA, WITHIN, Evidence
from .optimum import Optimum, quadratic_bound
from .state import MeasuredNetwork, recognised_network

LOCAL = "local limit"
# A lower bound that is attained to this is the optimum.
ATTAINED = 1e-6
# Seconds after which no further convex program of a ReLU network begins.
SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class LocalFound:
    """What was found next to a network.

    Attributes
    ----------
    finding : Finding
        Empty where nothing was looked for.
    evidence : tuple of Evidence
        On the network beside its local limit, and of a bound of all networks.
    """

    finding: Finding
    evidence: tuple[Evidence, ...] = ()


def find_local(
    structure: Structure, optimum: Optimum, found: MeasuredNetwork, *, max_weights: int
) -> LocalFound:
    """Find the local limit of a network that separates its data, where its form has one.

    Parameters
    ----------
    structure : Structure
    optimum : Optimum
    found : MeasuredNetwork
    max_weights : int
        Networks of more weights are given none.
    """
    if not found.state.smallest_margin > 0:
        return LocalFound(Finding(LOCAL))
    polynomial = structure.form in (Form.LAYERS, Form.QUADRATIC, Form.POLYNOMIAL)
    if not (polynomial or structure.form is Form.TWO_LAYER_RELU):
        return LocalFound(Finding(LOCAL))
    size = structure.subject.n_weights
    if size > max_weights:
        return _not_looked_for(f"{size:,} weights are more than `max_weights` = {max_weights:,}")
    return _of_polynomial(structure, optimum, found) if polynomial else _of_relu(structure)


def _not_looked_for(why: str) -> LocalFound:
    return LocalFound(
        Finding.said(
            LOCAL, tables=(Table("the local limit was not looked for", ("", "why"), (("", why),)),)
        )
    )


# Two-layer ReLU networks


def _of_relu(structure: Structure) -> LocalFound:
    subject, layers = structure.subject, structure.layers
    assert layers is not None
    w, a = layers.matrices(subject.weights)
    network = ReLU.from_weights(w, a, slope=layers.slope)
    X, y = layers.inputs(subject).numpy(), subject.data.y.numpy()
    try:
        limit = relu_local_limit(network, X, y, max_seconds=SECONDS)
    except MissingExtra as error:
        return _not_looked_for(str(error))
    proof, reached = limit.certificate, limit.status in OPTIMA
    slope = [("slope of closed units", number(layers.slope, ".4g"), "measured")]
    rows = (
        ("status", limit.status.name, "certified"),
        ("value of the network's function", number(limit.start_value, ".8g"), "measured"),
        (TABLE["local_value"].title, number(limit.value, ".8g"), "certified"),
        ("  no network in its cones is below", number(limit.bound, ".8g"), "certified"),
        ("  no network of any width is below", _bound_text(proof.lower_bound), "certified"),
        ("  smallest turn out of the cones, degrees", number(proof.smallest_turn, ".3g"),
         "certified"),
        *(slope if layers.slope else []),
        ("live units, and to spare", f"{len(limit.units)}, {limit.n_spare}", "measured"),
        ("the network lies in the cones", _covered(limit, network), "certified"),
        *([("what is not known", limit.reason, "")] if limit.reason else []),
    )  # fmt: skip
    finding = Finding.said(
        LOCAL,
        record={"local_limit": limit.to_dict()},
        tables=(Table("the network beside its local limit", ("", "value", "what it is"), rows),),
        certificates={LOCAL: limit.to_dict()},
        objects={"local_limit": limit},
        sides=(
            Side(LOCAL, {"objective": limit.value, "gap": limit.gap}),
            Side("network", {"local_ratio": limit.value / limit.start_value}),
        ),
        row={
            "local_value": limit.value,
            "local_ratio": limit.value / limit.start_value,
            "local_status": limit.status.name,
        },
    )
    return LocalFound(finding, tuple(_relu_evidence(limit, reached=reached)))


def _bound_text(bound: float) -> str:
    return number(bound, ".8g") if bound > 0 else "not known"


def _covered(limit: ReLULocalLimit, network: ReLU) -> str:
    return "yes" if limit.status in OPTIMA and limit.covers(network) else "no, or not known"


def _relu_evidence(limit: ReLULocalLimit, *, reached: bool) -> Iterator[Evidence]:
    """Yield the evidence on a two-layer ReLU network beside its local limit."""
    ratio = limit.value / limit.start_value if reached else math.nan
    proofs = {
        Status.GLOBAL_OPTIMUM: "proved the best of all widths",
        Status.LOCAL_OPTIMUM: f"proved for turns below {limit.certificate.smallest_turn:.2g} "
        "degrees",
        Status.LIVE_OPTIMUM: "proved for its live units",
    }
    numbers = f"value {limit.start_value:.5g}"
    if reached:
        numbers += f", local optimum {limit.value:.5g}, ratio {ratio:.4f}"
    yield Evidence(
        theory="local limit",
        status=limit.status,
        near={"local_ratio": ratio} if reached else {},
        beside={"local_value": limit.value} if reached else {},
        numbers=numbers,
        proof=proofs.get(limit.status, ""),
        reason=limit.reason or "no theorem says that training ends there",
    )
    bound = limit.certificate.lower_bound
    if bound > 0:
        said = f"no two-layer ReLU network, of any width, is below {bound:.5g} (proved)"
        if reached and limit.status is not Status.GLOBAL_OPTIMUM:
            said += f": the best of all lies between {bound:.5g} and {limit.value:.5g}"
        yield Evidence(theory="bound", beside={"lower_bound": bound}, numbers=said)


# Polynomials in the weights, behind fixed gates


def _of_polynomial(structure: Structure, optimum: Optimum, found: MeasuredNetwork) -> LocalFound:
    network = recognised_network(structure)
    assert network is not None
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
    certified = {"status": local.status.name, "seconds": local.seconds,
                 "n_samples": len(local.active)}  # fmt: skip
    least = "no network of this form has a smaller value than the local limit (proved)"
    finding = Finding.said(
        LOCAL,
        record={"local_limit": local.to_dict(), "bounded": value.to_dict()},
        tables=(
            Table(
                "the network beside its local limit",
                ("", "value", "what it is"),
                tuple(value.rows()),
            ),
        ),
        assumptions=(
            Assumption(
                least,
                True if _is_global(value) else None,
                "least value of all",
                "proved" if _is_global(value) else "not known",
            ),
        ),
        certificates={LOCAL: certified},
        objects={"local_limit": local, "bounded_value": value},
        sides=(
            Side(LOCAL, {"objective": local.value, "local_residual": local.residual}),
            Side("network", {"local_ratio": value.local_ratio}),
        ),
        row={name: one for name, one in value.cells().items() if name.startswith("local_")},
    )
    return LocalFound(finding, tuple(_evidence(optimum, value)))


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
    if isinstance(optimum.limit, PathLimit) and math.isfinite(optimum.bound):
        yield bound_evidence(optimum.limit, value)
    elif math.isfinite(value.bound):
        least = value.bound
        best = f"no network of this form is below {least:.5g} (proved)"
        if _is_global(value):
            best += ", which the local limit attains"
        elif value.limit is not None:
            best += f": the best of all lies between {least:.5g} and {value.limit.value:.5g}"
        yield Evidence(theory="bound", beside={"lower_bound": least}, numbers=best)


def _is_global(value: BoundedValue) -> bool:
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
