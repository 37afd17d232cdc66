"""Theorems by the form of the scores: which names a limit, which a bound, and which neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ...networks.recognition.structure import Form, Structure
from ...networks.recognition.subject import SAME
from ...quantities.assumptions import Premise
from ...quantities.atlas import ENTRIES, PAPERS, named, statement
from ...quantities.premises import (
    FULL_BATCHES,
    LINEAR_METHODS,
    LOSS,
    LOSS_TO_0,
    METHOD,
    OF_CONVOLUTIONS,
    PROPOSITION_B8,
)

Says = Literal["limit", "local limit", "none"]

KKT = ENTRIES["kkt"].theorem
NO_LIMIT = ENTRIES["dgn"].source
KKT_PROGRAM = ENTRIES["kkt"].program


@dataclass(frozen=True)
class Theory:
    """What is proved of the training of networks of one form.

    Attributes
    ----------
    says : {"limit", "local limit", "none"}
        Whether a theorem names the limit; if none does, whether the KKT point next to the network
        can be computed.
    theorem, program : str
    source : str
        The paper and the number of the theorem, in a few words.
    assumes : tuple of Premise
        All that the theorem assumes of training and of the network.
    """

    says: Says
    theorem: str
    program: str
    source: str
    assumes: tuple[Premise, ...] = (LOSS, METHOD, FULL_BATCHES, LOSS_TO_0)


def _unnamed(says: Says, known: str, program: str = KKT_PROGRAM) -> Theory:
    """Return what is known of a form whose limit no theorem names."""
    return Theory(says, f"no theorem names the limit{known}", program, NO_LIMIT)


THEORIES: Mapping[Form, Theory] = MappingProxyType(
    {
        Form.FEATURES: Theory(
            "limit",
            named(
                "directional limit of scores that are linear in their weights is the hard-margin "
                "SVM of the features ({soudry-2018}, theorem 3; of K outputs, of all relative "
                "margins, its section on cross-entropy)"
            ),
            "min ||w||  s.t.  y_n <w, phi(x_n)> >= 1",
            ENTRIES["linear"].source,
            (LOSS, LINEAR_METHODS, FULL_BATCHES),
        ),
        Form.LINEAR: Theory(
            "limit",
            named(
                "directional limit of a product of linear layers, end to end, is the hard-margin "
                "SVM ({ji-2019-layers})"
            ),
            "min ||b||  s.t.  y_n <b, phi(x_n)> >= 1",
            ENTRIES["deep-linear"].source,
        ),
        Form.UNCONSTRAINED: Theory("limit", **statement("collapse")),
        Form.UNITS: Theory(
            "limit",
            named(
                "directional limit of units with fixed gates below linear layers is the group "
                "lasso over units ({lippl-2022}, proposition B.8; its proof asks no more of "
                "features)"
            ),
            "min sum_h ||zeta_h||  s.t.  y_n sum_h <zeta_h, phi_h(x_n)> >= 1",
            ENTRIES["gln"].source,
            PROPOSITION_B8,
        ),
        Form.LAYERS: _unnamed(
            "local limit",
            " of layers with fixed gates between them. Proved: the path group lasso is a lower "
            f"bound of its value. Theorem: {KKT}",
            ENTRIES["dgn"].program,
        ),
        Form.CONVOLUTION: Theory("limit", **statement("convolution"), assumes=OF_CONVOLUTIONS),
        Form.DEEP_CONVOLUTION: Theory(
            "local limit", **statement("deep-convolution"), assumes=OF_CONVOLUTIONS
        ),
        Form.QUADRATIC: _unnamed(
            "local limit",
            f" of a quadratic form in the weights. Theorem: {KKT}; multipliers bound the value of "
            "every other network from below",
        ),
        Form.POLYNOMIAL: _unnamed(
            "local limit", f" of a polynomial in the weights. Theorem: {KKT}"
        ),
        Form.TWO_LAYER_RELU: _unnamed(
            "none", f" of a ReLU network on general data. Theorem: {KKT}"
        ),
        Form.FIXED_OUTER: _unnamed(
            "none",
            " of a ReLU network with a fixed outer layer on general data; on nearly orthogonal "
            f"inputs there is one KKT point, of rank two at most ({PAPERS['frei-2023'].named}). "
            f"Theorem: {KKT}",
        ),
        Form.DEEP_RELU: _unnamed("none", f" of a deep ReLU network. Theorem: {KKT}"),
        Form.PIECEWISE: _unnamed(
            "none", f" of a network whose weights move its gates. Theorem: {KKT}"
        ),
        Form.HOMOGENEOUS: _unnamed(
            "none", f". If its scores are locally Lipschitz and definable, {KKT}"
        ),
        Form.NOT_HOMOGENEOUS: Theory(
            "none",
            "no theorem here: they are of networks that are homogeneous in their weights",
            "none",
            "none here: they are of homogeneous networks",
            (),
        ),
        Form.SURROGATE: Theory(
            "none",
            "no theorem here: they are of descent along the gradients of the scores",
            "none",
            "none here: they are of descent along gradients",
            (),
        ),
    }
)


def form_in_words(structure: Structure) -> str:
    """Return what a module is, with its degree, or which parameters keep it from having one."""
    found = structure.homogeneity
    if found.degree is not None:
        return f"{structure.form.value}, homogeneous of degree {found.degree:g}"
    if found.mixed:
        return (
            f"not homogeneous because of {listed(found.mixed)}, without which it is of degree "
            f"{found.degree_without:g}"
        )
    if found.error <= SAME:
        return (
            "homogeneous in its scores, but its gradients are not theirs: <grad f, w> is not "
            "L f, as where a backward is a surrogate, or weights are detached"
        )
    if len(found.powers) > 1:
        terms = listed([str(power) for power in found.powers])
        return f"not homogeneous: a sum of terms of degrees {terms}"
    if found.powers:
        return (
            f"not homogeneous, though nearly of degree {found.powers[0]}: f(a w) is off "
            f"a^L f(w) by up to {found.error:.1e} of itself, as with a small constant under a root"
        )
    return "not homogeneous, and not because of a few biases"


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
