"""Local limits: KKT points with their certificates, and equality of two of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import Status, require_tolerance
from ..predictors import DecisionFunction
from ..result import Result, how_many, proved, size_of
from ..stored import NOT_STORED

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LocalCertificate:
    """First-order conditions at weights w with smallest margin 1, in floating point.

    Attributes
    ----------
    residual : float
        ``||w - sum_n lam_n y_n grad f_n|| / ||w||``, or the largest ``|m_n - 1|`` of active
        samples if that is larger.
    smallest_margin : float
        Smallest margin of all samples; 1 up to rounding.
    smallest_multiplier : float
        Smallest multiplier of the active samples.
    """

    residual: float
    smallest_margin: float
    smallest_multiplier: float


@dataclass(frozen=True, eq=False)
class NetworkPredictor(DecisionFunction):
    """Scores of a PyTorch network of this package, in float64 on the CPU."""

    network: Any

    def __call__(self, X: Any, gates: Any = None) -> Array:
        """Return the scores (n,) or (n, K) of inputs (n, D) under their gates."""
        import torch

        from ...networks.placed_data import place_data

        data = place_data(self.network, X, None, gates)
        with torch.no_grad():
            scores: Array = self.network(data.X, data.gates).numpy()
        return scores


class Reached(Result):
    """Base of limits that are weights near those of a trained network.

    Attributes
    ----------
    weights : mapping of str to array
    value, start_value, distance : float
    """

    weights: Mapping[str, Array]
    value: float
    start_value: float
    distance: float


class Curved(Result):
    """Base of limits whose second order has been looked at.

    Attributes
    ----------
    curvature : (k,) array
    n_zero_modes, n_symmetry_modes : int
    escape : mapping of str to array, or None
    """

    curvature: Array
    n_zero_modes: int
    n_symmetry_modes: int
    escape: Mapping[str, Array] | None

    @property
    def n_explained(self) -> int:
        """Number of zero modes that rotations explain: no more than there are of either."""
        return min(self.n_zero_modes, self.n_symmetry_modes)

    @property
    def _lowest(self) -> str:
        """Lowest curvature, and the zero modes if there are any, in words."""
        lowest = f"{self.curvature[0]:.4g}" if len(self.curvature) else "not looked at"
        modes = f", {self.n_zero_modes} zero modes, {self.n_explained} of them symmetries"
        return lowest + modes * bool(self.n_zero_modes)


class LocalLimit(Curved, Reached):
    r"""The KKT point near a trained network, of the margin problem in its own weights.

    .. math:: \min_w \tfrac12 \|w\|^2 \quad\text{s.t.}\quad y_n f_w(x_n) \ge 1

    Attributes
    ----------
    weights : mapping of str to array
        By the names of the network's trained parameters, at smallest margin 1, read-only.
    multipliers : (n,) or (n, K) array
        lam >= 0 with ``w = sum_n lam_n y_n grad f_w(x_n)``; of K scores one for every other class.
    active : (n,) or (n, K) boolean array
        Samples with a multiplier, or samples and other classes.
    value : float
        ``(||w||^2 / L)^(L/2)`` over the smallest margin; smaller is better. With two layers that
        is the sum of the units' norms, the objective of the convex program.
    start_value : float
        The same of the network as it was given.
    distance : float
        ``||w - w_given|| / ||w||`` of both at smallest margin 1.
    curvature : (k,) array
        Lowest eigenvalues, ascending, of ``I - sum_n lam_n y_n hess f_n`` on the null space of the
        active gradients; empty where they were not looked at, or the null space is {0}.
    n_zero_modes, n_symmetry_modes : int
        Eigenvalues within 1e-7 of zero, and rotations of units along which the point stays a KKT
        point (units of linear layers, units with the same gates, parallel units), of which some may
        leave it as it is: it is one of an orbit of equal value, strictly optimal but for that.
    escape : mapping of str to array, or None
        Unit direction, shaped as `weights`, in which margins grow; for saddles alone.
    status : Status
        LOCAL_OPTIMUM, LIVE_OPTIMUM, SADDLE, FLAT, STATIONARY or FAILED.
    certificate : LocalCertificate
        First-order conditions; `curvature` is what is known of second order.
    reason : str
        Why no more is said; empty for the first three statuses.
    scores : (n,) or (n, K) array
        Of the training data.
    rounds : int
        Max-margin programs solved.
    seconds : float
    network : Module or None
        A copy of the network at `weights`, in float64 on the CPU. None in a limit that was loaded:
        a file holds the weights and not the class.
    n_kinks : int
        Pairs of an active sample and a ReLU whose input is 0 there.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.local_limit(ib.DeepLinear.from_weights(np.array([[1.0, -0.5]])), X, y)
    >>> limit.active.tolist(), limit.scores.round(6).tolist()
    ([True, True], [1.0, -1.0])
    """

    ADVICE: ClassVar = {
        Status.FAILED: "failed: no point was found at which first-order conditions hold; `reason` "
        "says why. Train longer, so that the network is nearer to its limit"
    }
    RECORD = ("curvature", "n_samples", "n_active", "n_weights")
    BRIEF = (
        "{status.name}{_because}\n"
        "  value {value:.10g}, that of the network {start_value:.6g}, distance {distance:.3g}\n"
        "  residual {residual:.2g}, smallest margin {certificate.smallest_margin:.10g}, smallest "
        "multiplier {certificate.smallest_multiplier:.3g}\n"
        "  lowest curvature {_lowest}\n"
        "  {n_active} active of {n_samples} samples, {rounds} programs, {seconds:.3g} s"
    )

    multipliers: Array
    active: NDArray[np.bool_]
    status: Status
    certificate: LocalCertificate
    reason: str
    scores: Array
    rounds: int
    seconds: float
    network: Any = field(default=None, metadata=NOT_STORED)
    n_kinks: int = 0

    residual = proved("residual", "Residual of the first-order conditions, of the certificate.")
    n_samples = size_of("active", "Number of samples.")
    n_active = how_many("active", "Number of samples with a multiplier.")

    def __post_init__(self) -> None:
        for array in (self.multipliers, self.active, self.curvature, self.scores):
            array.flags.writeable = False
        for name in ("weights", "escape"):
            mapping = getattr(self, name)
            if mapping is not None:
                for array in mapping.values():
                    array.flags.writeable = False
                object.__setattr__(self, name, MappingProxyType(dict(mapping)))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle, with mappings as plain dictionaries."""
        plain = super().__getstate__()
        for name in ("weights", "escape"):
            plain[name] = None if plain[name] is None else dict(plain[name])
        return plain

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of `__getstate__`, read-only."""
        super().__setstate__(state)
        self.__post_init__()

    @property
    def predictor(self) -> NetworkPredictor:
        """The limit as a function of new inputs and their gates, at smallest margin 1.

        Raises
        ------
        ValueError
            If the limit was loaded from a file.
        """
        if self.network is None:
            raise ValueError(
                "a loaded local limit has weights and no network: set the parameters of yours to "
                "its `weights`, by their names"
            )
        return NetworkPredictor(copy.deepcopy(self.network))

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return sum(array.size for array in self.weights.values())


@door()
def same_limit(a: LocalLimit, b: LocalLimit, tol: float = 1e-6) -> bool:
    """Return whether two local limits agree, up to permutations and rotations of their units.

    Limits that agree in value and in scores are one, whatever their weights. So are those that
    agree in value and multipliers where both have zero modes: along a rotation of units that no
    active sample tells apart these stay, while the scores of other samples change. A limit that
    FAILED equals none.

    Parameters
    ----------
    a, b : LocalLimit
        On the same data.
    tol : float
        Relative, of the values, of the largest score and of the largest multiplier.

    Raises
    ------
    ValueError
        If they have different numbers of samples, or `tol` is not in (0, 1).

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
    >>> network = ib.DeepLinear.from_weights(np.array([[1.0, -0.5]]))
    >>> limit = ib.local_limit(network, X, y)
    >>> ib.limits.same_limit(limit, limit)
    True
    """
    if len(a.scores) != len(b.scores):
        raise ValueError(
            f"`a` and `b` must be of the same data, got {len(a.scores)} and {len(b.scores)} samples"
        )
    require_tolerance(tol)
    if Status.FAILED in (a.status, b.status) or not abs(a.value - b.value) <= tol * a.value:
        return False
    on_an_orbit = min(a.n_zero_modes, b.n_zero_modes) > 0
    return _close(a.scores, b.scores, tol) or (
        on_an_orbit and _close(a.multipliers, b.multipliers, tol)
    )


def _close(a: Array, b: Array, tol: float) -> bool:
    return float(np.abs(a - b).max()) <= tol * float(np.abs(a).max())
