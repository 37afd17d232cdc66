r"""Norms on the coefficients of K outputs that an optimiser induces, layer norms by layer norms.

What `optimiser_norms.INDUCED` is for one output, with the program in words and what is known of
training beside it. Coefficients are matrices (K, D), one such matrix a gate, or one (K, C D) a unit
with contexts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..._support.solve import NormName
from .optimiser_norms import Form, LayerNorms


@dataclass(frozen=True)
class InducedOfClasses:
    """The norm on the coefficients of K outputs, and what is known of it.

    Attributes
    ----------
    norm : str
        As `Norm.of` takes it.
    exact : bool
        False where the program in this norm only bounds the problem in the weights from below.
    name : str
        Of the program, for messages and pictures.
    program : str
        The program in one line.
    theorem, source : str
        What is known of training beside it, and where it stands.
    """

    norm: NormName
    exact: bool
    name: str
    program: str
    theorem: str
    source: str


_WRITTEN: Mapping[NormName, str] = {
    "l2": "||B||_F",
    "nuclear": "||B||_*",
    "spectral": "||B||_op",
    "linf": "max |b_kd|",
    "l1": "sum |b_kd|",
}


def _linear(norm: NormName, known: tuple[str, str], *, exact: bool = True) -> InducedOfClasses:
    """Return the entry of networks that are linear end to end."""
    return InducedOfClasses(
        norm,
        exact,
        "multi-class SVM" if norm == "l2" else f"multi-class SVM, {norm} norm",
        f"min {_WRITTEN[norm]}  s.t.  <b_y(n) - b_k, x_n> >= 1 for k != y(n)",
        *known,
    )


_DESCENT = (
    "directional limit of a linear predictor of K classes under softmax is the multi-class "
    "hard-margin SVM (Soudry et al., The implicit bias of gradient descent on separable data; "
    "Ravi, Scott, Soudry and Wang, The implicit bias of gradient descent on separable "
    "multiclass data)",
    "Ravi, Scott, Soudry and Wang 2024",
)
_STEEPEST = (
    "steepest descent of a linear predictor of K classes under softmax, in steps that fall like "
    "t^(-1/2), reaches the largest margin in its own norm, of which there may be several solutions "
    "(Fan, Schmidt and Thrampoulidis, Implicit bias of spectral descent and Muon on multiclass "
    "separable data)",
    "Fan, Schmidt and Thrampoulidis 2025",
)
_LEAST_WEIGHTS = "this program: the least weights of its networks; training: Lyu and Li 2020"
_TWO_LAYERS = (
    "two linear layers of K outputs: the least weights of margin 1 have the least nuclear norm end "
    "to end, and training goes to KKT points of that problem (Lyu and Li, Gradient descent "
    "maximizes the margin of homogeneous neural networks), of which this is the best",
    _LEAST_WEIGHTS,
)
_SPECTRAL_LAYERS = (
    "linear layers that go steepest in the spectral norm: the least product of their norms at "
    "margin 1 is the least spectral norm end to end, whatever the depth, as that norm is "
    "submultiplicative; training goes to KKT points (Tsilivis, Gronich, Vardi and Kempe, Flavors "
    "of margin), of which this is the best",
    "this program: the least weights of its networks; training: Tsilivis et al. 2024",
)
_FACTORS = (
    "linear layers of K outputs that go steepest in largest entries, or in sums of entries: this "
    "norm end to end bounds the product of theirs, and no program is known to be their limit",
    "none: this program is a bound of all networks, own proof",
)


def _columns(norm: NormName, written: str, theorem: str, source: str) -> InducedOfClasses:
    """Return the entry of a matrix a gate, each trained as it is."""
    return InducedOfClasses(
        norm,
        True,
        "multi-class SVM by context" + ("" if norm == "l2" else f", {norm} norm"),
        f"min {written}  s.t.  <b_g(n),y(n) - b_g(n),k, x_n> >= 1 for k != y(n)",
        theorem,
        source,
    )


_STEEPEST_COLUMNS = (
    "steepest descent of a shallow GLN of K classes under softmax, in steps that fall like "
    "t^(-1/2), reaches the largest margin in its own norm, as it is linear in its weights (Fan, "
    "Schmidt and Thrampoulidis, Implicit bias of spectral descent and Muon on multiclass separable "
    "data)",
    "Fan, Schmidt and Thrampoulidis 2025",
)
_COLUMNS = _columns(
    "l2",
    "(sum_g ||B_g||_F^2)^(1/2)",
    "directional limit of a shallow GLN of K classes under softmax is the multi-class "
    "hard-margin SVM of every global context, as it is linear in its weights (Ravi, Scott, "
    "Soudry and Wang, The implicit bias of gradient descent on separable multiclass data)",
    "Ravi, Scott, Soudry and Wang 2024",
)
_GATED = InducedOfClasses(
    norm="sum-nuclear",
    exact=True,
    name="sum of nuclear norms",
    program="min sum_h ||Z_h||_*  s.t.  sum_h g_h(x_n) <z_h,y(n) - z_h,k, x_n> >= 1 for k != y(n)",
    theorem="two-layer frozen-gate ReLU network of K outputs with K units behind every gate: "
    "the least weights of margin 1 have the least sum of nuclear norms, and training goes to "
    "KKT points of that problem (Lyu and Li, Gradient descent maximizes the margin of "
    "homogeneous neural networks), of which this is the best",
    source=_LEAST_WEIGHTS,
)

# By the form of the network, and the norms of every layer but the last and of the last.
INDUCED_OF_CLASSES: Mapping[Form, Mapping[LayerNorms, InducedOfClasses]] = MappingProxyType(
    {
        "one layer": {
            ("l2", "l2"): _linear("l2", _DESCENT),
            ("linf", "linf"): _linear("linf", _STEEPEST),
            ("l1", "l1"): _linear("l1", _STEEPEST),
            ("spectral", "spectral"): _linear("spectral", _STEEPEST),
            ("spectral", "linf"): _linear("spectral", _STEEPEST),
        },
        "columns": {
            ("l2", "l2"): _COLUMNS,
            ("linf", "linf"): _columns("linf", "max |b_gkd|", *_STEEPEST_COLUMNS),
            ("l1", "l1"): _columns("l1", "sum |b_gkd|", *_STEEPEST_COLUMNS),
        },
        "linear layers": {
            ("l2", "l2"): _linear("nuclear", _TWO_LAYERS),
            ("spectral", "spectral"): _linear("spectral", _SPECTRAL_LAYERS),
            # h N(W_2) N(W_1) is at least the largest entry, of h units; without h the sum of them.
            ("linf", "linf"): _linear("linf", _FACTORS, exact=False),
            ("l1", "l1"): _linear("l1", _FACTORS, exact=False),
        },
        "gated layer": {("l2", "l2"): _GATED},
    }
)
# Gradient descent of more than two linear layers.
MORE_LAYERS = _linear(
    "nuclear",
    (
        "no convex program is the limit of more than two linear layers of K outputs: what they "
        "minimise, the sum of s^(2/L) over singular values s, bounds this nuclear norm, and "
        "training goes to KKT points (Lyu and Li, Gradient descent maximizes the margin of "
        "homogeneous neural networks)",
        _LEAST_WEIGHTS,
    ),
    exact=False,
)
# Of units with contexts behind a second layer: their rows of all contexts share the unit's outputs.
OF_CONTEXTS = replace(
    _GATED,
    program="min sum_h ||Z_h||_*  s.t.  sum_h <z_h,y(n),c_h(n) - z_h,k,c_h(n), x_n> >= 1 for "
    "k != y(n)",
    theorem="two-layer GLN of K outputs with K units of the same contexts: the least weights of "
    "margin 1 have the least sum of nuclear norms, of a unit's matrix (K, C D) over all of its "
    "contexts, and training goes to KKT points of that problem (Lyu and Li, Gradient descent "
    "maximizes the margin of homogeneous neural networks), of which this is the best",
)
