r"""Norms on the coefficients of a network that an optimiser induces, layer norms by layer norms.

Weights of a network with fixed gates are its coefficients' factors: :math:`\zeta_h = a_h W_h`, or
:math:`b = W_2 W_1`. Steepest descent with the norm N1 on one layer and N2 on the other seeks

.. math:: \min N_1(W) N_2(a) \quad\text{s.t.}\quad \text{margins} \ge 1,

which is a program in the coefficients, in the norm that `INDUCED` names. It is this project's own
result, with the proofs that stand at its entries: no published source of the table was found. The
program is the *global* optimum of the problem in the weights; training is only known to reach its
KKT points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..._support.solve import GatedRows, MaxMarginProgram, Norm, NormName
from ..._support.solve import solve_norm as solve_norm_program
from ..._support.words import WeightNorm
from ...quantities.atlas import ENTRIES

if TYPE_CHECKING:
    from ..._support.solve import NormSolution

Array = NDArray[np.float64]
LayerNorms = tuple[WeightNorm, WeightNorm]
# "columns": one layer behind gates, a row a gate.
Form = Literal["one layer", "columns", "linear layers", "gated layer"]

# Coefficients of a program in a norm of matrices that is solved: 1,300 take two seconds, and
# 2,000 seven.
MOST_OF_MATRICES = 2_000


@dataclass(frozen=True)
class InducedNorm:
    """The norm on coefficients that an optimiser induces, and how that is known.

    Attributes
    ----------
    norm : str
        Of the coefficients as a matrix with a row a unit, as `Norm.of` takes it.
    exact : bool
        False where the program in this norm only bounds the problem in the weights from below.
    proof : str
    """

    norm: NormName
    exact: bool
    proof: str

    @property
    def described(self) -> str:
        """The norm in a few words."""
        words = {"rows": "sum of the units' l2 norms", "muon": "spectral norms of both layers"}
        return words.get(self.norm, f"{self.norm} norm of the coefficients")

    def dual_above(self, V: Array) -> float:
        """Return an upper bound of the dual norm of V (H, Q)."""
        return Norm.of(self.norm).dual.above(V)

    def value_above(self, zeta: Array, layers: float) -> float:
        """Return an upper bound of the norm of coefficients (H, Q).

        Parameters
        ----------
        zeta : (H, Q) array
        layers : float
            Product of the layers' norms, which the norm of the coefficients is no larger than, and
            which stands for "muon": it costs nothing along training.
        """
        if self.norm == "muon":
            return layers
        return Norm.of(self.norm).above(zeta)


_LAYER = "the weights are the coefficients"
_BALL = "|a_h| <= 1 keeps diag(a) W in the ball of W's norm, and a = 1 reaches all of it"
_UPPER = "a spectral matrix among the layers makes an l2 ball of what the others leave"


def _of_one_layer(polar: str) -> Mapping[LayerNorms, InducedNorm]:
    """Return the norms of one layer, and the proof where it goes by its polar factor."""
    norms: tuple[WeightNorm, ...] = ("l2", "linf", "l1")
    spectral = InducedNorm("spectral", True, polar)
    return {
        **{(norm, norm): InducedNorm(norm, True, _LAYER) for norm in norms},
        ("spectral", "spectral"): spectral,
        ("spectral", "linf"): spectral,
    }


# By the form of the network, and the norms of every layer but the last and of the last.
INDUCED: Mapping[Form, Mapping[LayerNorms, InducedNorm]] = MappingProxyType(
    {
        "one layer": _of_one_layer("the weights are a vector: its polar factor has its direction"),
        "columns": _of_one_layer(_LAYER),
        "linear layers": {
            ("l2", "l2"): InducedNorm("l2", True, "||W_L ... W_1|| is at most their product"),
            ("linf", "linf"): InducedNorm("linf", True, "all rows of W_1 alike reach the ball"),
            ("l1", "l1"): InducedNorm("l1", True, "the l1 norm of sum_h a_h W_h is at most N2 N1"),
            ("spectral", "spectral"): InducedNorm("l2", True, "operator norms of b = W_2 W_1"),
            ("spectral", "linf"): InducedNorm("l2", True, _UPPER),
        },
        "gated layer": {
            ("l2", "l2"): InducedNorm("rows", True, ENTRIES["gln"].source),
            ("linf", "linf"): InducedNorm("linf", True, _BALL),
            ("spectral", "linf"): InducedNorm("spectral", True, _BALL),
            ("spectral", "spectral"): InducedNorm(
                "muon",
                True,
                "zeta' diag(1/t) zeta <= I for some t of sum 1: a Schur complement, convex",
            ),
            ("l1", "l1"): InducedNorm(
                "l1", False, "(sum_h sqrt(||zeta_h||_1))^2 is not convex, and at least the l1 norm"
            ),
        },
    }
)


def coefficient_program(program: MaxMarginProgram, n_units: int) -> GatedRows:
    """Return the margins of a program as an image of coefficients (H, Q), a row a unit.

    Parameters
    ----------
    program : MaxMarginProgram
        Of a formulation, on NumPy arrays.
    n_units : int
        H: 1 for linear networks.
    """
    columns, n_inputs = int(program.design.Z.shape[1]), int(program.design.X.shape[1])
    return GatedRows(program, (n_units, columns * n_inputs // n_units))


def solve_in_norm(image: GatedRows, induced: InducedNorm) -> NormSolution | None:
    """Solve the program in an induced norm; None where nothing but bounds is at hand quickly."""
    from ..._support.solve import NormProgram

    norm = Norm.of(induced.norm)
    if norm.inside == "spectral" and image.shape[0] * image.shape[1] > MOST_OF_MATRICES:
        return None
    program = NormProgram(image, norm)
    if norm.blocks == "entries":
        return solve_norm_program(program, solver="highs")
    return solve_norm_program(program)
