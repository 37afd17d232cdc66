"""Measurements of a network of the user's own, beside what is proved of its form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..._support.doors import result
from ...data.arrays import Floats
from ...limits.exact.aligned import network_value
from ...measures.increments import increment_residual
from ...measures.kkt import KKTDistance, kkt_distance
from ...measures.scalars import (
    DUAL_SLACK,
    accuracy,
    agreement,
    dead_units,
    error_rate,
    sample_margins,
    score_cosine,
    wrongly_small,
)
from ...networks.recognition.network import RecognisedNetwork, UnitsNetwork
from ...networks.recognition.structure import Form, Structure
from ...networks.recognition.subject import Subject, Weights
from ...quantities.measured import Measured, part, quantity
from .optimum import Optimum
from .theory import THEORIES, Theory


class NetworkValue(Measured):
    """The norm per unit margin of a network, beside the least that is certified."""

    smallest_margin: float = quantity()
    weight_norm: float = quantity("norm of its trained weights", ".6g")
    value: float = quantity(
        "norm per unit margin, of its weights",
        ".8g",
        doc="``(||w||^2 / L)^(L/2)`` over the smallest margin, L the degree; smaller is better.",
        default=math.nan,
    )
    function_value: float = quantity(
        "norm per unit margin, of its function",
        ".8g",
        doc="The least value of networks of this form with the same function: equal to `value` "
        "where weights are balanced, below it elsewhere. NaN where that is not known.",
        default=math.nan,
    )
    margin_ratio: float = quantity(default=math.nan)
    weight_ratio: float = quantity(
        "the same of its weights",
        ".4f",
        ideal=1.0,
        doc="Certified lower bound over `value`: less than `margin_ratio` by what the weights lack "
        "in balance.",
        default=math.nan,
    )


@result()
class OwnNetwork(NetworkValue):
    """A network of the user's own, measured at its own scale and beside its limit.

    Quantities that are not defined for it are NaN: margin ratios without a limit or a bound, those
    of held-out data without any, dual norms of a network without recognised units.
    """

    kkt_residual: float = quantity(default=math.nan)
    kkt_complementarity: float = quantity(default=math.nan)
    increment_residual: float = quantity(default=math.nan)
    kkt_margin_bound: float = quantity(default=math.nan)
    largest_dual_norm: float = quantity(default=math.nan)
    n_dead: int | None = quantity(default=None)
    n_wrongly_small: int | None = quantity(default=None)
    n_units: int = part("Recognised units; 0 where there are none.", default=0)
    small_units: tuple[int, ...] = part("Numbers of the units that are wrongly small.", default=())
    train_error_network: float = quantity(default=math.nan)
    error_network: float = quantity(default=math.nan)
    error_limit: float = quantity(default=math.nan)
    score_cosine: float = quantity(default=math.nan)
    agreement: float = quantity(default=math.nan)

    def shown(self) -> tuple[str, ...]:
        """The attributes with a line in the table: those that are known."""
        known = (name for name in super().shown() if _is_known(getattr(self, name)))
        return tuple(name for name in known if self.n_units > 1 or name not in _OF_UNITS)


_OF_UNITS = ("largest_dual_norm", "n_dead", "n_wrongly_small", "kkt_margin_bound")


@dataclass(frozen=True, eq=False)
class MeasuredNetwork:
    """A network as it was found: its form, what is proved of that, and what was measured.

    Attributes
    ----------
    structure : Structure
    optimum : Optimum
    state : OwnNetwork
    kkt : KKTDistance or None
        None for a network that does not separate, or is not homogeneous.
    margins : (n,) array
        Of the training samples; of K outputs the least one of each.
    unit_norms : (H,) array
        Of its units; empty without several that are told apart.
    """

    structure: Structure
    optimum: Optimum
    state: OwnNetwork
    kkt: KKTDistance | None
    margins: Floats
    unit_norms: Floats

    @property
    def separates(self) -> bool:
        """True if it separates its training data."""
        return self.state.smallest_margin > 0

    @property
    def theory(self) -> Theory:
        """What is proved of the training of networks of its form."""
        return THEORIES[self.structure.form]

    @property
    def named(self) -> bool:
        """True where a theorem names the limit."""
        return self.theory.says == "limit"

    @property
    def lacking(self) -> str:
        """How far it is from separating its data, and the way out."""
        n_wrong, subject = int((self.margins <= 0).sum()), self.structure.subject
        scores = subject.scores(subject.weights)
        # Any combination of scores in which none has the weight 0, and no two the same.
        uneven = torch.linspace(1, 2, scores.numel()).to(scores).view_as(scores)
        _, slopes = subject.gradient(subject.weights, uneven)
        way = "train longer, or with another learning rate"
        if not any(bool(slope.any()) for slope in slopes.values()):
            way = (
                "no score depends on the weights there, as where all units are closed, so that no "
                "step changes them: take other initial weights"
            )
        return (
            f"the network has {n_wrong} of {len(self.margins)} training samples on the wrong side "
            f"(smallest margin {self.state.smallest_margin:.3g}): {way}"
        )


def recognised_network(structure: Structure) -> RecognisedNetwork | None:
    """Return the module with its degree, and its units if there are; None without a degree.

    None as well where gradients of single samples cannot be had, or are not those of the scores.
    """
    subject, degree = structure.subject, structure.homogeneity.whole_degree
    if (
        degree is None
        or structure.form is Form.SURROGATE
        or not (subject.by_sample and subject.twice)
    ):
        return None
    if structure.units is not None:
        return UnitsNetwork(structure.subject, structure)
    return RecognisedNetwork(structure.subject, structure)


def measure_own(
    structure: Structure,
    optimum: Optimum,
    held_out: Subject | None,
    earlier: Weights | None = None,
) -> MeasuredNetwork:
    """Measure a network beside the certified optimum or bound of its form.

    Parameters
    ----------
    structure : Structure
    optimum : Optimum
    held_out : Subject or None
        The same module on held-out data.
    earlier : mapping of name to tensor, optional
        Its weights at an earlier time of gradient descent.
    """
    subject, network = structure.subject, recognised_network(structure)
    y, scores = subject.data.y.numpy(), subject.scores(subject.weights).numpy()
    margins = sample_margins(y, scores)
    smallest, norms = float(margins.min()), _unit_norms(structure)
    norm = math.sqrt(sum(float(p.square().sum()) for p in subject.weights.values()))
    kkt, known = None, dict[str, Any]()
    if smallest > 0 and network is not None:
        kkt = kkt_distance(network, *subject.data)
        known |= _values(structure, optimum, norm, margins, network.degree)
        known |= _of_kkt(structure, optimum, kkt, norms)
    if len(norms):
        known |= {"n_dead": len(dead_units(norms)), "n_units": len(norms)}
    if earlier is not None:
        before = {name: earlier[name] for name in subject.weights}
        known["increment_residual"] = increment_residual(before, subject.weights)
    if held_out is not None:
        known |= _held_out(optimum, held_out, separates=kkt is not None)
    state = OwnNetwork(
        smallest_margin=smallest,
        weight_norm=norm,
        train_error_network=1 - accuracy(y, scores),
        **known,
    )
    return MeasuredNetwork(structure, optimum, state, kkt, margins, norms)


def _values(
    structure: Structure, optimum: Optimum, norm: float, margins: Floats, degree: int
) -> dict[str, float]:
    """Return the norm per unit margin of weights and function, beside the least of all networks."""
    best = value = network_value(norm**2, margins, degree)
    found = {"value": value}
    if structure.units is not None:
        zeta = structure.units.zeta(structure.subject.weights)
        shared = structure.form is Form.LINEAR
        size = torch.linalg.vector_norm(zeta.sum(0)) if shared else zeta.norm(dim=1).sum()
        best = found["function_value"] = float(size) / float(margins.min())
    # A bound of networks with the same gates is no optimum to be measured by.
    if math.isfinite(optimum.bound) and not optimum.present_gates:
        found |= {"margin_ratio": optimum.bound / best, "weight_ratio": optimum.bound / value}
    return found


def _of_kkt(
    structure: Structure, optimum: Optimum, kkt: KKTDistance, norms: Floats
) -> dict[str, Any]:
    """Return what the fit of the KKT conditions says of the network, and of its units."""
    found: dict[str, Any] = {
        "kkt_residual": kkt.residual,
        "kkt_complementarity": kkt.complementarity,
        "kkt_margin_bound": kkt.margin_bound,
    }
    if kkt.dual_norms is None:
        return found
    found["largest_dual_norm"] = float(kkt.dual_norms.max())
    if len(norms) != len(kkt.dual_norms):
        return found
    limit = optimum.limit if structure.form is Form.UNITS else None
    small = tuple(wrongly_small(norms, np.array(kkt.dual_norms), limit).tolist())
    return found | {"small_units": small, "n_wrongly_small": len(small)}


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


def _is_known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _unit_norms(structure: Structure) -> Floats:
    units = structure.units
    if units is None or structure.form is Form.LINEAR:
        return np.empty(0)
    norms: Floats = units.zeta(structure.subject.weights).norm(dim=1).numpy()
    return norms


def _held_out(optimum: Optimum, held_out: Subject, *, separates: bool) -> dict[str, float]:
    """Return what is known on held-out data of the network, and of the limit."""
    y, own = held_out.data.y.numpy(), held_out.scores({}).numpy()
    found = {"error_network": error_rate(y, own)}
    limit = optimum.limit
    if limit is None or optimum.features is None or not limit.certificate.proves_separability():
        return found
    predicted = optimum.scores(held_out)
    found["error_limit"] = error_rate(y, predicted)
    if separates:
        found["score_cosine"] = score_cosine(predicted, own)
        found["agreement"] = agreement(predicted, own)
    return found
