"""The limit of ReLU networks on orthogonally separable data: two vectors and one function."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from ..._support.doors import door
from ..._support.solve import (
    ArrayLike,
    Certificate,
    DenseArray,
    Solution,
    Status,
    array_namespace,
    as_float64,
    require_columns,
)
from ...limits.limit import Limit
from ...limits.predictors import DecisionFunction
from ...limits.result import Result

LABELS = {"positive": 1, "negative": -1}
Surviving = Literal["both", "positive", "negative"]
"""Label of each class, in the order of the rows of `OrthosepLimit.zeta`."""


@dataclass(frozen=True, eq=False)
class RampFunction(DecisionFunction):
    """The function `f(x) = u relu(<w_plus, x>) - z relu(<w_minus, x>)`; call it with inputs.

    With a slope it has leaky ReLUs.

    Parameters
    ----------
    w_plus, w_minus : (D,) float64 arrays
        NumPy arrays or torch tensors; inputs must be of the same kind.
    u, z : float
        Factors of the two ramps.
    slope : float
        Of a ramp below 0.
    """

    w_plus: DenseArray
    w_minus: DenseArray
    u: float = 1.0
    z: float = 1.0
    slope: float = 0.0

    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> DenseArray:
        """Return scores (n,) in float64 of inputs `X` (n, D); `gates` is not used."""
        X, n_inputs = as_float64(X, like=self.w_plus), int(self.w_plus.shape[0])
        require_columns("X", X, n_inputs, f"the function was made from {n_inputs} inputs")
        plus, minus = (ramp(X @ w, self.slope) for w in (self.w_plus, self.w_minus))
        found: DenseArray = self.u * plus - self.z * minus
        return found


def ramp(z: DenseArray, slope: float) -> DenseArray:
    """Return z where it is not negative, else `slope` times it."""
    xp = array_namespace(z)
    rising: DenseArray = xp.clip(z, min=0.0)
    return rising + slope * xp.clip(z, max=0.0) if slope else rising


class OneSidedSolution(Result, eq=True):
    """The solved program of one class.

        minimise ||w||   s.t.   <w, x_i> >= 1  for every i with y_i = label

    Attributes
    ----------
    label : int
        +1 or -1.
    n_samples, n_support : int
        Samples of the class, and those with a multiplier.
    support_rank : int
        Dimension of what the support examples span; the theorem assumes D.
    status : Status
        Whether the program of this class is solved.
    certificate : Certificate
        Bounds of this class's program alone; `certificate.objective` is `||w||`.
    iterations, seconds : int, float
        Iterations of the solver and wall-clock time.
    """

    ADVICE = Solution.ADVICE

    label: int
    n_samples: int
    n_support: int
    support_rank: int
    status: Status
    certificate: Certificate
    iterations: int
    seconds: float


class OrthosepLimit(Limit):
    """Max-margin vectors of both classes and the function that a ReLU network converges to.

    `zeta` has shape (2, D), rows `w_plus` and `-w_minus`: output weight times neuron of a network
    with one neuron a class. Certificate and status are those of `OrthogonallySeparable`, the sum
    of both one-sided programs, whose optimum is `||w_plus|| + ||w_minus||`. Margins are those of
    a sample under its own class's vector, which are the margins of `predictor` if the data are
    orthogonally separable.

    Leaky units of a slope also see the samples of the other class: there is one program of both
    vectors, and no solutions of single classes.

    Attributes
    ----------
    classes : tuple of OneSidedSolution
        One for each class that has samples; see `positive`, `negative`. None of leaky units.
    slope : float
        Of the network's units where they are inactive.

    Examples
    --------
    >>> limit = ib.solve_orthosep(np.array([[2.0, 0.0], [0.0, -4.0]]), np.array([1, -1]))
    >>> limit.predictor([[2.0, 1.0], [1.0, -4.0]]).round(6).tolist()
    [1.0, -0.5]
    >>> limit.positive.n_support, limit.supports_span
    (1, False)
    """

    FORMULATION: ClassVar[str] = "models.orthosep.formulation:OrthogonallySeparable"

    classes: tuple[OneSidedSolution, ...] = ()
    slope: float = field(default=0.0, kw_only=True)

    @property
    def w_plus(self) -> DenseArray:
        """(D,) `argmin ||w||` with `<w, x_i> >= 1` on the positive samples; zeros without any."""
        found: DenseArray = self.zeta[0]
        return found

    @property
    def w_minus(self) -> DenseArray:
        """(D,) `argmin ||w||` with `<w, x_i> >= 1` on the negative samples; zeros without any."""
        found: DenseArray = -self.zeta[1]
        return found

    @property
    def positive(self) -> OneSidedSolution | None:
        """The program of class +1; None if it has no samples."""
        return next((part for part in self.classes if part.label == 1), None)

    @property
    def negative(self) -> OneSidedSolution | None:
        """The program of class -1; None if it has no samples."""
        return next((part for part in self.classes if part.label == -1), None)

    @property
    def supports_span(self) -> bool:
        """True if the support vectors of each class span R^D, which theorem 3.1 assumes.

        Networks converge to the limit in experiments without it too: on the data of
        `make_orthosep` it is False.
        """
        rank = int(self.zeta.shape[1])
        return bool(self.classes) and all(part.support_rank == rank for part in self.classes)

    @property
    def predictor(self) -> RampFunction:
        """The function `relu(<w_plus, x>) - relu(<w_minus, x>)`, of smallest margin 1."""
        return RampFunction(self.w_plus, self.w_minus, slope=self.slope)

    @door()
    def limit_function(self, *, surviving: Surviving = "both") -> RampFunction:
        r"""Return the limit of `f_theta(x) / ||theta||^2`.

            [relu(<w_plus, x>) - relu(<w_minus, x>)] / (2 (||w_plus|| + ||w_minus||))

        The constants u = z follow since the margins of both groups grow like log(1/loss), and
        `||W_plus||^2 / log(1/loss) -> ||w_plus||`. If all neurons of one sign are inactive, that
        group's ramp and its norm drop out: `u = 1 / (2 ||w_plus||)` and z = 0, or mirrored.

        Parameters
        ----------
        surviving : {"both", "positive", "negative"}
            Groups with neurons that are active on some sample.

        Returns
        -------
        RampFunction

        Raises
        ------
        ValueError
            If `surviving` is unknown, its classes have no samples or no solution, or it is one of
            them with leaky units, which then solve another program.

        References
        ----------
        M. Phuong, "Underspecification in Deep Learning", corollary 3.1, where u and z are left
        open.
        """
        if self.slope and surviving != "both":
            raise ValueError(
                f"`surviving` must be 'both' with leaky units, got {surviving!r}: those of one "
                "sign alone have another program"
            )
        active = [surviving in ("both", group) for group in LABELS]
        total = sum(float(norm) for norm, own in zip(self.unit_norms, active, strict=True) if own)
        if not total > 0:
            raise ValueError(
                f"there is no limit for surviving={surviving!r}: its class has no samples, or no "
                f"solution (status {self.status.name})"
            )
        u, z = (0.5 / total if own else 0.0 for own in active)
        return RampFunction(self.w_plus, self.w_minus, u=u, z=z, slope=self.slope)

    def balanced_weights(self) -> tuple[DenseArray, DenseArray]:
        """Return weights W (2, D), a (2,) of the least norm with which two neurons are `predictor`.

            W = (w_plus / sqrt(||w_plus||), w_minus / sqrt(||w_minus||)),
            a = (sqrt(||w_plus||), -sqrt(||w_minus||)),

        a KKT point, and the minimum at any width, of `1/2 ||theta||^2` at margins 1, with the
        value `||w_plus|| + ||w_minus||`.

        References
        ----------
        M. Phuong, "Underspecification in Deep Learning", lemma B.6.
        """
        xp = array_namespace(self.zeta)
        signs = as_float64(np.array([1.0, -1.0]), like=self.zeta)
        roots = xp.sqrt(self.unit_norms)
        safe = xp.where(roots > 0, roots, xp.ones_like(roots))
        return signs[:, None] * self.zeta / safe[:, None], signs * roots

    def to_dict(self) -> dict[str, Any]:
        """Return its record, with those of the classes."""
        classes = [asdict(part) | {"status": part.status.name} for part in self.classes]
        return super().to_dict() | {"classes": classes, "supports_span": self.supports_span}
