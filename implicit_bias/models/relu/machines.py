"""Four max-margin machines that stand in for a trained ReLU network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np

from ..._support.doors import parameters
from ..._support.kinds import floats
from ..._support.solve import Array
from ...data.arrays import Floats
from ...limits.exact.frelu import FReLULimit, SVMFReLU
from ...limits.exact.linear import HardMarginSVM, LinearLimit
from ...limits.formulation import Formulation, Solving, solve_limit

RELU_SVMS: Mapping[str, str] = MappingProxyType(
    {"rc": "SVM-RC", "lc": "SVM-LC", "hl": "SVM-HL", "gates_only": "gates-only"}
)
"""The four machines: their names in results, and in the literature; the last in its program."""


@parameters(
    X=floats("n>=0 D"),
    y=floats("n: one label a row of X"),
    random_gates=floats("n R: one row of gates a row of X"),
    learned_gates=floats("n H: one row of gates a row of X"),
    features=floats("n K: one row of activations a row of X"),
)
@dataclass(frozen=True, eq=False)
class ReLUView:
    """Samples as the four machines see them; read-only float64 copies.

    Parameters
    ----------
    X : (n, D) array
        Inputs, the constant column included.
    y : (n,) array
        Labels in {-1, +1}.
    random_gates : (n, R) array
        Gates that know nothing of the network: random hyperplanes, an always-open unit. They are 0
        or 1; of leaky units their slope or 1.
    learned_gates : (n, H) array
        Gates of the network's hidden units, alike.
    features : (n, K) array
        Activations of its last hidden layer.

    Raises
    ------
    ValueError
        If the rows of these arrays are not as many, or an array is not of the right dimension.
    """

    X: Floats
    y: Floats
    random_gates: Floats
    learned_gates: Floats
    features: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            array = np.array(getattr(self, field.name))
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)

    def machines(self) -> dict[str, tuple[Formulation[Any], Array, Array | None]]:
        """Program, inputs and gates of the four machines, by their names in results."""
        return {
            "rc": (SVMFReLU(), self.X, self.random_gates),
            "lc": (SVMFReLU(), self.X, self.learned_gates),
            "hl": (HardMarginSVM(), self.features, None),
            # Which are open, whatever closed ones let through.
            "gates_only": (HardMarginSVM(), 1.0 * (self.learned_gates == 1), None),
        }


@dataclass(frozen=True, eq=False)
class ReLULimits:
    """The four max-margin solutions.

    Attributes
    ----------
    rc : FReLULimit
        SVM-RC: the group lasso over units with random gates.
    lc : FReLULimit
        SVM-LC: the same with the gates that the network has learned.
    hl : LinearLimit
        SVM-HL: the linear hard-margin SVM on hidden activations; `zeta` is (K,).
    gates_only : LinearLimit
        The linear hard-margin SVM on the pattern of learned gates; `zeta` is (H,).

    Any of them may be `NOT_SEPARABLE`, which is an answer: look at its `status`.
    """

    rc: FReLULimit
    lc: FReLULimit
    hl: LinearLimit
    gates_only: LinearLimit

    def scores(self, view: ReLUView) -> dict[str, Array]:
        """(n,) scores of those machines that separate their training data, by name.

        A machine that does not separate has no coefficients to predict with and is left out.
        """
        limits = {name: getattr(self, name) for name in RELU_SVMS}
        return {
            name: limits[name].predictor(inputs, gates)
            for name, (_, inputs, gates) in view.machines().items()
            if limits[name].certificate.proves_separability()
        }


def solve_relu_svms(view: ReLUView, **solving: Unpack[Solving]) -> ReLULimits:
    """Solve the four max-margin machines on training data.

        SVM-RC, SVM-LC   minimise sum_h ||zeta[h]||   s.t.   y_n sum_h g_h(n) <zeta[h], x_n> >= 1
        SVM-HL           minimise ||w||               s.t.   y_n <w, hidden activations of n> >= 1
        gates-only       minimise ||w||               s.t.   y_n <w, gate pattern of n> >= 1

    For one hidden layer SVM-LC is the limit of the network that goes on from here with its gates
    frozen; SVM-HL is, at any depth, that of one that goes on training its last layer alone. No
    theorem makes SVM-RC or gates-only a limit of the ReLU network: they are the controls.

    Parameters
    ----------
    view : ReLUView
        Training data; `comparison.view_relu` makes it from a trained network.
    **solving
        See `Solving`. `literal` of the formulations in `ReLUView.machines` states the programs in
        cvxpy.

    Raises
    ------
    ValueError
        If labels are not in {-1, +1}, gates malformed or values not finite.

    References
    ----------
    S. Lippl, L. F. Abbott, S. Chung, "The implicit bias of gradient descent on generalized gated
    linear networks", section 5.2; gates-only: the program published with it.
    """
    return ReLULimits(
        **{
            name: solve_limit(formulation, inputs, view.y, gates, **solving)
            for name, (formulation, inputs, gates) in view.machines().items()
        }
    )
