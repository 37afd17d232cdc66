"""Certified local optima of two-layer ReLU networks: the result, and what it covers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._support.doors import door, result
from ..._support.pictures import draw
from ..._support.solve import (
    HingeProgram,
    Status,
    as_float64,
    certify_hinge,
    gap_between,
    require_columns,
    require_real,
    require_shape,
    to_numpy,
)
from ...data.arrays import Floats
from ..predictors import DecisionFunction
from ..result import Result, how_many, proved, size_of
from .bound import largest_dual
from .problem import ReLUProblem

if TYPE_CHECKING:
    import torch
    from matplotlib.axes import Axes

    from ...networks.relu import ReLU


@result()
@dataclass(frozen=True)
class ReLUCertificate:
    """Bounds of the value of two-layer ReLU networks, in floating point with its errors bounded.

    Attributes
    ----------
    objective : float
        Value of the limit: sum of the units' norms over the smallest margin.
    dual_objective : float
        Lower bound of the value of every network each of whose neurons lies in one of the cones:
        ``sum(lam) / max_h ||v_h||``.
    gap : float
        ``objective / dual_objective - 1``.
    smallest_turn : float
        Angle in degrees by which any neuron may turn without leaving its cone; norms are free.
    lower_bound : float
        Lower bound of the value of every network of any width; 0 where none was computed.
    global_gap : float
        ``objective / lower_bound - 1``; infinite where no bound was computed.
    """

    objective: float
    dual_objective: float
    gap: float
    smallest_turn: float
    lower_bound: float
    global_gap: float


@dataclass(frozen=True, eq=False)
class ReLUPredictor(DecisionFunction):
    """Scores of a two-layer ReLU network, in NumPy.

    Parameters
    ----------
    units : (H, D) array
        ``|a_h| w_h``.
    signs : (H,) array
        ``sign(a_h)``.
    slope : float
        Slope of the activation left of its kink.
    """

    units: Floats
    signs: Floats
    slope: float = 0.0

    def __call__(self, X: Any, gates: Any = None) -> Floats:
        """Return the scores (n,) of inputs (n, D); there are no gates.

        Raises
        ------
        TypeError, ValueError
            If `X` is no array of real numbers, or has another shape.
        """
        require_real("X", X)
        inputs = as_float64(to_numpy(X))
        require_columns("X", inputs, self.units.shape[1])
        z = inputs @ self.units.T
        return np.asarray((self.slope * z + (1 - self.slope) * np.maximum(z, 0.0)) @ self.signs)


class ConeProof(Result):
    """Base of limits that are proved for networks whose neurons lie in cones.

    Attributes
    ----------
    cone_signs : (K,) array
    cone_gates : (p, K) boolean array
    cone_shares : (p, K) array
    support : (n,) boolean array
    support_inputs, support_labels : (p, D), (p,) arrays
    slope : float
    """

    cone_signs: Floats
    cone_gates: NDArray[np.bool_]
    cone_shares: Floats
    support: NDArray[np.bool_]
    support_inputs: Floats
    support_labels: Floats
    slope: float = field(kw_only=True)

    n_samples = size_of("support", "Number of samples.")
    n_support = how_many("support", "Number of samples with a multiplier.")

    def _in_cones(self, u: Floats, signs: Floats, X: Floats, y: Floats) -> bool:
        """Whether each unit that is not 0 is in a cone, of support samples X (p, D) and labels."""
        live = np.any(u != 0, axis=1)
        for product, sign in zip((X @ u[live].T).T, signs[live], strict=True):
            own = y == sign
            sides = 2.0 * self.cone_gates[own] - 1
            inside = np.all(sides * product[own, None] >= 0, axis=0) & (self.cone_signs == sign)
            if not inside.any():
                return False
        return True


class Searched(Result):
    """Base of limits that a sequence of convex programs ends at.

    Attributes
    ----------
    start_value : float
    values : tuple of float
    births, programs, solves : int
    tol, seconds : float
    """

    start_value: float
    values: tuple[float, ...]
    births: int = field(kw_only=True)
    programs: int = field(kw_only=True)
    solves: int = field(kw_only=True)
    tol: float = field(kw_only=True)
    seconds: float = field(kw_only=True)


class ReLULocalLimit(Searched, ConeProof):
    r"""A local optimum of the margin problem of two-layer ReLU networks, with its proof.

    .. math:: \min_\theta \tfrac12 \|\theta\|^2 \quad\text{s.t.}\quad y_n f_\theta(x_n) \ge 1,
              \qquad f(x) = \sum_h a_h \max(\langle w_h, x \rangle, 0)

    With ``u_h = |a_h| w_h`` the least of half the squared norm at given u is ``sum_h ||u_h||``,
    its *value* at smallest margin 1.

    Attributes
    ----------
    units : (H, D) array
        ``u_h``, at smallest margin 1; parallel units of one sign are one.
    signs : (H,) array
        ``sign(a_h)``.
    multipliers : (n,) array
        lam >= 0.
    cone_signs : (K,) array
    cone_gates : (p, K) boolean array
        Cones of the proof: a neuron of this sign lies in cone k if it is on the closed side of
        every sample of its label by the gates. There are p samples with a multiplier, `support`.
    cone_shares : (p, K) array
        Slopes that stand for the activations in the proof: gates of samples of the cone's label,
        anything in [0, 1] for the others.
    support : (n,) boolean array
        Samples with a multiplier.
    support_inputs, support_labels : (p, D), (p,) arrays
    turn : (H,) array
        Angle in degrees by which a unit may turn without leaving its cones.
    start_value : float
        Value of the network as it was given; infinite if it does not separate the data.
    values : tuple of float
        Value after each convex program; they never rise.
    kinks_helping, kinks_opposing : int
        Pairs of a unit and a sample with a multiplier at which the unit has its kink, by whether
        the unit is of the sample's label.
    n_spare : int
        Units that the network had beyond those of the limit; 0 where the width was free.
    escape : (D,) array or None
        Best direction found for a further unit, `escape_sign` its sign.
    escape_sign : float
    escape_dual : float
        Dual function there, over its largest value at the limit's own units: above 1, and with
        unique multipliers, a unit that is born there lowers the value.
    status : Status
        GLOBAL_OPTIMUM, LOCAL_OPTIMUM, LIVE_OPTIMUM, STATIONARY or
        FAILED.
    certificate : ReLUCertificate
    reason : str
        Why no more is said.
    scores : (n,) array
        Of the training data.
    slope : float
        Slope of the activation left of its kink: 0 but for leaky ReLUs.
    births : int
        Units that were added on the way.
    programs, solves : int
        Convex programs, and the group lassos that they took.
    tol : float
        The relative gap that was required.
    seconds : float

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    >>> network = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
    >>> limit = ib.limits.relu_local_limit(network, X, y)
    >>> limit.status.name, round(limit.value, 6), limit.covers(network)
    ('GLOBAL_OPTIMUM', 1.5, True)
    """

    ADVICE: ClassVar = {
        Status.LOCAL_OPTIMUM: "local optimum: no network has a lower value whose neurons all lie "
        "in the cones of the certificate, and no unit of this width is left for another one. "
        "Networks further away may have lower values",
        Status.STATIONARY: "stationary: optimal in the convex program of its own gates, but with "
        "more kinks at samples of its own label than all sides of which can be looked at",
        Status.FAILED: "failed: no network was found whose gap is within the tolerance; `reason` "
        "says why. Train longer, or raise `tol`",
    }
    RECORD = ("n_units", "n_samples", "n_support")
    BRIEF = (
        "{status.name}{_because}\n"
        "  value {value:.10g}, that of the network {start_value:.6g}, lower bound of all widths "
        "{_overall}\n"
        "  gap {gap:.2g} among networks whose neurons turn by less than "
        "{certificate.smallest_turn:.3g} degrees\n"
        "  {n_units} units, {n_spare} to spare, {n_support} of {n_samples} samples support, kinks "
        "{kinks_helping} helping and {kinks_opposing} opposing\n"
        "  {programs} programs, {solves} group lassos, {seconds:.3g} s"
    )

    units: Floats
    signs: Floats
    multipliers: Floats
    turn: Floats
    kinks_helping: int
    kinks_opposing: int
    n_spare: int
    escape: Floats | None
    escape_sign: float
    escape_dual: float
    status: Status
    certificate: ReLUCertificate
    reason: str
    scores: Floats

    value = proved("objective", "Value of the limit, of the certificate.")
    bound = proved(
        "dual_objective",
        "Lower bound of the value of every network in the cones, of the certificate.",
    )
    gap = proved("gap", "``value / bound - 1``.")
    n_units = size_of("units", "Number of units.")

    @property
    def network(self) -> ReLU:
        """The limit as a network: balanced weights at smallest margin 1, in float64.

        Raises
        ------
        ValueError
            If there is none.
        """
        from ...networks.relu import ReLU

        if not len(self.units):
            raise ValueError(f"there is no network: {self.advice}")
        roots = np.sqrt(np.linalg.norm(self.units, axis=1))
        w1, w2 = self.units / roots[:, None], self.signs * roots
        return ReLU.from_weights(w1, w2, slope=self.slope)

    @property
    def predictor(self) -> ReLUPredictor:
        """The limit as a function of new inputs, at smallest margin 1."""
        return ReLUPredictor(self.units, self.signs, self.slope)

    @door()
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the dual function, over the circle or the sphere, or the values along the programs.

        On new axes unless `ax` is given.
        """
        return draw("runs.drawing.relu_limits:plot_relu_limit", self, ax=ax)

    @door()
    def covers(self, network: torch.nn.Module) -> bool:
        """Return whether every neuron of a network lies in a cone of the certificate.

        Then its value is at least `bound`, whatever its width and the norms of its neurons.

        Parameters
        ----------
        network : Module
            A ReLU network of one hidden layer, as for `relu_local_limit`.

        Raises
        ------
        TypeError, ValueError
            If it is no such network, takes other inputs, or has another slope.

        Examples
        --------
        >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
        >>> network = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
        >>> limit = ib.limits.relu_local_limit(network, X, y)
        >>> limit.covers(ib.ReLU.from_weights([[1.0, -9.0], [3.0, 5.0]], [7.0, -1.0]))
        True
        >>> limit.covers(ib.ReLU.from_weights([[-1.0, -9.0], [3.0, 5.0]], [7.0, -1.0]))
        False
        """
        u, signs, slope = network_units(network)
        require_columns("units", u, self.support_inputs.shape[1], "those of the limit")
        if slope != self.slope:
            raise ValueError(f"`network` must have the limit's slope {self.slope}, got {slope}")
        return self._in_cones(u, signs, self.support_inputs, self.support_labels)

    @property
    def in_own_cones(self) -> bool:
        """True if the limit is itself a network that its certificate covers."""
        return self._in_cones(self.units, self.signs, self.support_inputs, self.support_labels)

    @door()
    def certify(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Prove units, cones and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        X : (n, D) array
        y : (n,) array
            Labels in {-1, +1}.

        Returns
        -------
        ReLULocalLimit
            With the certificate of these data, that of all widths included where this one has it;
            FAILED if a gap that its status claims is above the tolerance.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or of another number of samples or inputs.

        Examples
        --------
        >>> X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
        >>> network = ib.ReLU.from_weights([[1.0, 0.1], [0.2, 1.0]], [1.0, -1.0])
        >>> limit = ib.limits.relu_local_limit(network, X, y)
        >>> limit.certify(X, y).status.name, round(limit.certify(2 * X, y).value, 6)
        ('GLOBAL_OPTIMUM', 0.75)
        """
        problem = ReLUProblem.checked(X, y, self.slope)
        require_shape("y", problem.y, self.support.shape, "the samples of the limit")
        require_columns("X", problem.inputs, self.support_inputs.shape[1], "those of the limit")
        rows = self.support
        if not rows.any():
            return replace(self, status=Status.FAILED, certificate=no_certificate())
        value = problem.value(self.units @ problem.basis.T, self.signs)
        own = self.cone_signs == problem.y[rows, None]
        slopes = self.slope + (1 - self.slope) * np.where(own, self.cone_gates, 0.0)
        cones = HingeProgram(
            problem.inputs[rows],
            np.where(own, slopes, -self.slope),
            np.where(own, 0.0, 1 - self.slope),
        )
        nowhere = np.zeros((len(self.cone_signs), problem.inputs.shape[1]))
        lam = self.multipliers[rows]
        bound = certify_hinge(cones, nowhere, lam, self.cone_shares).dual_objective
        lower = 0.0
        if self.certificate.lower_bound > 0:
            own = self.units @ problem.basis.T
            own /= np.linalg.norm(own, axis=1, keepdims=True)
            lower = float(lam.sum()) / largest_dual(problem, self.multipliers, own).bound
        if not self._in_cones(self.units, self.signs, problem.inputs[rows], problem.y[rows]):
            bound = 0.0  # that of other networks
        gap, overall = (gap_between(value, below, below) for below in (bound, lower))
        claimed = overall if self.status is Status.GLOBAL_OPTIMUM else gap
        smallest = self.certificate.smallest_turn
        certificate = ReLUCertificate(value, bound, gap, smallest, lower, overall)
        proved = replace(self, certificate=certificate)
        if claimed <= self.tol:
            return proved
        why = f"on these data the gap is {claimed:.2g}, above `tol`"
        return replace(proved, status=Status.FAILED, reason=why)

    @property
    def _overall(self) -> str:
        lower = self.certificate.lower_bound
        return f"{lower:.10g}" if lower > 0 else "not computed"


class NetworkUnits(NamedTuple):
    """Units of a network of one hidden layer: ``|a_h| w_h`` (H, D), ``sign(a_h)`` (H,), slope."""

    u: Floats
    signs: Floats
    slope: float


def network_units(network: Any) -> NetworkUnits:
    """Return the units of a network of one hidden layer, and the slope left of their kinks.

    Raises
    ------
    TypeError
        If it is no ReLU network.
    ValueError
        If it has several hidden layers, several outputs, biases, a slope outside [0, 1), or weights
        that are not finite.
    """
    from ...networks.recognition.relu import read_relu

    layers = read_relu(network)
    matrices = layers.without_biases()
    if len(matrices) != 2:
        raise ValueError(
            f"`network` must have one hidden layer, got {len(matrices) - 1}: products of "
            "ReLUs have no such programs"
        )
    w, a = matrices
    if len(a) != 1:
        raise ValueError(f"`network` must have one output, got {len(a)}")
    a = a.reshape(-1)
    return NetworkUnits(np.abs(a)[:, None] * w, np.where(a < 0, -1.0, 1.0), layers.slope)


def degrees(sines: Floats) -> Floats:
    """Return the angles in degrees of sines."""
    return np.asarray(np.degrees(np.arcsin(np.clip(sines, 0.0, 1.0))))


def no_certificate(value: float = math.inf) -> ReLUCertificate:
    """Return a certificate that proves nothing."""
    return ReLUCertificate(value, 0.0, math.inf, 0.0, 0.0, math.inf)
