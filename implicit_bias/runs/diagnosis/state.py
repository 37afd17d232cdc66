"""Measurements of a network of the user's own, beside what is proved of its form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..._support.doors import result
from ...data.arrays import Floats
from ...limits.exact.aligned import network_value
from ...measures.kkt import KKTDistance, kkt_distance
from ...measures.scalars import (
    DUAL_SLACK,
    accuracy,
    agreement,
    cosine,
    dead_units,
    error_rate,
    wrongly_small,
)
from ...networks.recognition.network import RecognisedNetwork, UnitsNetwork
from ...networks.recognition.structure import Form, Structure
from ...networks.recognition.subject import Subject
from ...quantities.measured import Measured, part, quantity
from .optimum import Optimum


class NetworkValue(Measured):
    """The norm per unit margin of a network, beside the least that is certified."""

    smallest_margin: float = quantity()
    weight_norm: float = quantity("norm of its trained weights", ".6g")
    value: float = quantity(
        "norm per unit margin, of its weights",
        ".8g",
        doc="``(||w||^2 / L)^(L/2)`` over the smallest margin, L the degree; smaller is better.",
    )
    function_value: float = quantity(
        "norm per unit margin, of its function",
        ".8g",
        doc="The least value of networks of this form with the same function: equal to `value` "
        "where weights are balanced, below it elsewhere. NaN where that is not known.",
    )
    margin_ratio: float = quantity()
    weight_ratio: float = quantity(
        "the same of its weights",
        ".4f",
        ideal=1.0,
        doc="Certified lower bound over `value`: less than `margin_ratio` by what the weights lack "
        "in balance.",
    )


@result()
class OwnNetwork(NetworkValue):
    """A network of the user's own, measured at its own scale and beside its limit.

    Quantities that are not defined for it are NaN: margin ratios without a limit or a bound, those
    of held-out data without any, dual norms of a network without recognised units.
    """

    kkt_residual: float = quantity()
    kkt_complementarity: float = quantity()
    kkt_margin_bound: float = quantity()
    largest_dual_norm: float = quantity()
    n_dead: int | None = quantity()
    n_wrongly_small: int | None = quantity()
    n_units: int = part("Recognised units; 0 where there are none.")
    small_units: tuple[int, ...] = part("Numbers of the units that are wrongly small.")
    train_error_network: float = quantity()
    error_network: float = quantity()
    error_limit: float = quantity()
    score_cosine: float = quantity()
    agreement: float = quantity()

    def shown(self) -> tuple[str, ...]:
        """The attributes with a line in the table: those that are known."""
        known = (name for name in super().shown() if _is_known(getattr(self, name)))
        return tuple(name for name in known if self.n_units > 1 or name not in _OF_UNITS)


_OF_UNITS = ("largest_dual_norm", "n_dead", "n_wrongly_small", "kkt_margin_bound")


@dataclass(frozen=True, eq=False)
class MeasuredNetwork:
    """What was measured, and the fit of the KKT conditions that it rests on.

    Attributes
    ----------
    state : OwnNetwork
    kkt : KKTDistance or None
        None for a network that does not separate, or is not homogeneous.
    margins : (n,) array
        Of the training samples.
    """

    state: OwnNetwork
    kkt: KKTDistance | None
    margins: Floats


def recognised_network(structure: Structure) -> RecognisedNetwork | None:
    """Return the module with its degree, and its units if there are; None without a degree."""
    if structure.homogeneity.whole_degree is None:
        return None
    if structure.units is not None:
        return UnitsNetwork(structure.subject, structure)
    return RecognisedNetwork(structure.subject, structure)


def measure_own(
    structure: Structure, optimum: Optimum, held_out: Subject | None
) -> MeasuredNetwork:
    """Measure a network beside the certified optimum or bound of its form.

    Parameters
    ----------
    structure : Structure
    optimum : Optimum
    held_out : Subject or None
        The same module on held-out data.
    """
    subject = structure.subject
    y = subject.data.y.numpy()
    margins = y * subject.scores(subject.weights).numpy()
    smallest = float(margins.min())
    network = recognised_network(structure)
    separates = smallest > 0 and network is not None
    kkt = kkt_distance(network, *subject.data) if separates and network is not None else None
    norm = math.sqrt(sum(float(p.square().sum()) for p in subject.weights.values()))
    degree = structure.homogeneity.whole_degree
    value = math.nan
    if separates and degree is not None:
        value = network_value(norm**2, margins, degree)
    of_function = _function_value(structure, smallest) if separates else math.nan
    # A bound of networks with the same gates is no optimum to be measured by.
    bounded = math.isfinite(optimum.bound) and not optimum.present_gates
    known = optimum.bound if bounded and separates else math.nan
    norms = _unit_norms(structure)
    dual_norms = None if kkt is None or kkt.dual_norms is None else np.array(kkt.dual_norms)
    limit = optimum.limit if structure.form is Form.UNITS and separates else None
    small: tuple[int, ...] = ()
    wrong: int | None = None
    if dual_norms is not None and len(norms) == len(dual_norms):
        small = tuple(wrongly_small(norms, dual_norms, limit).tolist())
        wrong = len(small)
    state = OwnNetwork(
        smallest_margin=smallest,
        weight_norm=norm,
        value=value,
        function_value=of_function,
        margin_ratio=known / (value if math.isnan(of_function) else of_function),
        weight_ratio=known / value,
        kkt_residual=math.nan if kkt is None else kkt.residual,
        kkt_complementarity=math.nan if kkt is None else kkt.complementarity,
        kkt_margin_bound=math.nan if kkt is None else kkt.margin_bound,
        largest_dual_norm=math.nan if dual_norms is None else float(dual_norms.max()),
        n_dead=len(dead_units(norms)) if len(norms) else None,
        n_wrongly_small=wrong,
        n_units=len(norms),
        small_units=small,
        train_error_network=1 - accuracy(y, margins * y),
        **_held_out(optimum, held_out, separates=separates),
    )
    return MeasuredNetwork(state, kkt, margins)


def held_back_by(state: OwnNetwork) -> str:
    """Name what keeps a network from its limit."""
    if state.small_units:
        units = ", ".join(map(str, state.small_units[:6]))
        word = "unit" if len(state.small_units) == 1 else "units"
        return f"{word} {units} still {'grows' if word == 'unit' else 'grow'}"
    if state.kkt_residual < DUAL_SLACK and state.largest_dual_norm > 1 + DUAL_SLACK:
        return "a saddle: stationary, but with a dual norm above 1"
    if state.kkt_residual < DUAL_SLACK:
        return "stationary, but its loss has to fall: multipliers reach beyond the margin"
    return f"its weights are not stationary yet (KKT residual {state.kkt_residual:.2g})"


def unseparated(found: MeasuredNetwork) -> str:
    """Return how far a network is from separating its data, and the way out."""
    n_wrong = int((found.margins <= 0).sum())
    return (
        f"the network has {n_wrong} of {len(found.margins)} training samples on the wrong side "
        f"(smallest margin {found.state.smallest_margin:.3g}): train longer, or with another "
        "learning rate"
    )


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _function_value(structure: Structure, smallest: float) -> float:
    """Return the least value of networks with the same function; NaN where that is not known."""
    subject, units = structure.subject, structure.units
    if units is None:
        return math.nan
    zeta = units.zeta(subject.weights)
    shared = structure.form is Form.LINEAR
    norm = torch.linalg.vector_norm(zeta.sum(0)) if shared else zeta.norm(dim=1).sum()
    return float(norm) / smallest


def _unit_norms(structure: Structure) -> NDArray[np.float64]:
    units = structure.units
    if units is None or structure.form is Form.LINEAR:
        return np.empty(0)
    norms: NDArray[np.float64] = units.zeta(structure.subject.weights).norm(dim=1).numpy()
    return norms


def _held_out(optimum: Optimum, held_out: Subject | None, *, separates: bool) -> dict[str, float]:
    names = ("error_network", "error_limit", "score_cosine", "agreement")
    found = dict.fromkeys(names, math.nan)
    if held_out is None:
        return found
    y, own = held_out.data.y.numpy(), held_out.scores({}).numpy()
    found["error_network"] = error_rate(y, own)
    limit = optimum.limit
    if limit is None or optimum.features is None or not limit.certificate.proves_separability():
        return found
    predicted = optimum.scores(held_out)
    found["error_limit"] = error_rate(y, predicted)
    if separates:
        found["score_cosine"] = cosine(predicted, own)
        found["agreement"] = agreement(predicted, own)
    return found
