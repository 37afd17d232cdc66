"""The limit of training with weight decay, as a result with its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from .._doors import door, result
from .._kinds import anything
from .._solve import ArrayLike, Norm, Status, require_shape
from ..data.arrays import Floats
from ..limits.predictors import (
    ContextPredictor,
    DecisionFunction,
    GateColumns,
    LinearPredictor,
    MulticlassPredictor,
    Predictor,
    unit_matrices,
)
from ..limits.result import ReadOnlyResult
from .arguments import coefficients_of
from .certificate import FitLimitCertificate, certificate_of, status_of
from .problem import FitProblem
from .regularisers import Regulariser, regulariser_of

__all__ = ["FitLimit"]


@result()
@dataclass(frozen=True, eq=False, repr=False)
class FitLimit(ReadOnlyResult):
    r"""The limit of training with weight decay, or of least-norm interpolation.

    .. math:: \min_\zeta \frac1n \sum_n \ell(f_\zeta(x_n), y_n) + R(\zeta)

    Attributes
    ----------
    zeta : array
        Coefficients: (D,), (H, D) behind gates, (H, C, D) behind contexts; with K scores (K, D),
        (H, K, D) or (H, K, C, D).
    dual : (n,) or (n, K) array
        Multipliers r: minus the slopes of the mean loss in the scores.
    unit_norms, dual_norms : (H,) arrays
        ``||zeta_h||`` and ``||sum_n r_n g_h(n) x_n||``: with a group penalty a unit of a dual norm
        below `penalty` is dead.
    scores : array like `dual`
    loss : {"squared", "logistic", "softmax"}
    norm : str
        Name of the norm N; "ridge" for half its square in l2; "adamw" for the barrier.
    penalty : float or None
        lam of ``lam N(zeta)``, of ``lam ||zeta||^2 / 2`` for "ridge", or the decay of AdamW.
    radius : float or None
        Of the ball ``N(zeta) <= radius``.
    eps : float or None
        That of AdamW.
    n_contexts : int or None
    sample_weight : (n,) array or None
        Of samples in the mean, up to a factor; None counts them alike.
    is_unique : bool
        True if no other coefficients have these values: scores are always unique, coefficients
        where the live units' scores are independent. False where it is not known.
    binds : bool
        True if a ball's constraint is felt: without it the loss would be lower. Where it is not,
        many coefficients have the least loss, and nothing but the loss is predicted.
    mean_loss : float
        Mean loss of the coefficients, without the regulariser.
    mean_loss_at_zero : float
        Mean loss of coefficients 0.
    proof : array like `dual` or None
        Multipliers that prove that nothing interpolates.
    status : Status
    certificate : FitLimitCertificate
    tol : float
    solver : str
    iterations : int
    seconds : float

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_fit(X, y, np.eye(2), loss="squared", penalty=0.1)
    >>> limit.status.name, limit.zeta.round(3).tolist(), limit.live.tolist()
    ('SOLVED', [[0.45, 0.0], [0.0, -0.8]], [True, True])
    """

    ADVICE: ClassVar[Mapping[Status, str]] = MappingProxyType(
        {
            Status.SOLVED: (
                "solved: no coefficients have a value lower by more than the tolerance, by the "
                "multipliers of the loss"
            ),
            Status.INACCURATE: (
                "inaccurate: the gap or the misfit is above the tolerance. Its numbers hold as "
                "reported: allow more iterations, raise `tol`, or take a larger penalty"
            ),
        }
    )

    zeta: Floats
    dual: Floats
    unit_norms: Floats
    dual_norms: Floats
    scores: Floats
    loss: str
    norm: str
    penalty: float | None
    radius: float | None
    eps: float | None
    n_contexts: int | None
    sample_weight: Floats | None = field(default=None, kw_only=True)
    is_unique: bool
    binds: bool
    mean_loss: float
    mean_loss_at_zero: float
    proof: Floats | None
    status: Status
    certificate: FitLimitCertificate
    tol: float
    solver: str
    iterations: int
    seconds: float

    @property
    def objective(self) -> float:
        """Value of the coefficients, of the certificate."""
        return self.certificate.objective

    @property
    def gap(self) -> float:
        """Relative gap, of the certificate."""
        return self.certificate.gap

    @property
    def live(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(H,) booleans: units that have coefficients."""
        return np.asarray(self.unit_norms > 0)

    @property
    def size(self) -> float:
        """Norm of the coefficients; the l2 norm for "ridge", the largest entry for "adamw"."""
        name = {"ridge": "l2", "adamw": "linf"}.get(self.norm, self.norm)
        return float(Norm.of(name).value(unit_matrices(self.zeta)))  # type: ignore[arg-type]

    @property
    def predictor(self) -> DecisionFunction:
        """The limit as a function of new inputs and gates."""
        if self.scores.ndim == 2 and self.zeta.ndim > 2:
            return MulticlassPredictor(self.zeta)
        if self.n_contexts is not None:
            return ContextPredictor(self.zeta)
        if self.zeta.ndim == 1 or self.scores.ndim == 2:
            return LinearPredictor(self.zeta)
        return Predictor(self.zeta, GateColumns(len(self.zeta), binary=False))

    @door()
    def balanced_weights(self) -> tuple[Floats, Floats]:
        """Return first and second layer of a network with these coefficients, at equal norms.

        It is a fixed point of training with the decay, for a penalty of the norm "units" or of
        "l2" without gates.

        Returns
        -------
        (H, ...) array, (H,) array
            ``zeta_h / sqrt||zeta_h||`` and ``sqrt||zeta_h||``.

        Examples
        --------
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> limit = ib.limits.solve_fit(X, y, np.eye(2), loss="squared", penalty=0.1)
        >>> w1, w2 = limit.balanced_weights()
        >>> np.allclose(w1 * w2[:, None], limit.zeta), np.allclose(np.linalg.norm(w1, axis=1), w2)
        (True, True)
        """
        roots = np.sqrt(self.unit_norms)
        units = self.zeta if len(self.unit_norms) > 1 or self.zeta.ndim > 1 else self.zeta[None]
        safe = np.where(roots > 0, roots, 1.0).reshape(-1, *[1] * (units.ndim - 1))
        return np.asarray(units / safe), roots

    @door(network=anything, gates=anything)
    def gap_of(
        self, network: Any, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None
    ) -> float:
        """Return by how much the value of a network is certified to be above the optimum at most.

        Nothing is solved: coefficients and loss slopes of the network bound the optimum from both
        sides. So every checkpoint of a run carries its own certificate.

        Parameters
        ----------
        network : Module or array
            With `zeta`, or coefficients of the shape of the limit's.
        X, y, gates
            The data of the limit.

        Returns
        -------
        float
            Relative, as the gap of the certificate.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or the coefficients have another shape.

        Examples
        --------
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> limit = ib.limits.solve_fit(X, y, np.eye(2), loss="logistic", penalty=0.1)
        >>> limit.gap_of(limit.zeta, X, y, np.eye(2)) < 1e-8
        True
        >>> round(limit.gap_of(ib.FReLU.from_zeta(1.1 * limit.zeta), X, y, np.eye(2)), 4)
        0.0919
        """
        return self.bounds_of(network, X, y, gates).gap

    @door(network=anything, gates=anything)
    def bounds_of(
        self, network: Any, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None
    ) -> FitLimitCertificate:
        """Return the certificate of a network's coefficients and its own loss slopes.

        Parameters and errors are those of `gap_of`.
        """
        problem = FitProblem.checked(X, y, gates, self.loss, self.n_contexts, self.sample_weight)
        B = coefficients_of(network, problem)
        return certificate_of(problem, self._regulariser, B, problem.multipliers(B))

    @door(gates=anything)
    def certify(self, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None = None) -> Self:
        """Prove coefficients and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        X, y, gates
            As `solve_fit` takes them.

        Returns
        -------
        FitLimit
            With the certificate and the status of these data.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or of other sizes than the limit's.

        Examples
        --------
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> limit = ib.limits.solve_fit(X, y, loss="squared", penalty=0.1)
        >>> limit.certify(X, y).status.name, limit.certify(X, -y).status.name
        ('SOLVED', 'INACCURATE')
        """
        problem = FitProblem.checked(X, y, gates, self.loss, self.n_contexts, self.sample_weight)
        require_shape("y", problem.y, self.dual.shape, "the samples of the limit")
        zeta = coefficients_of(self.zeta, problem)
        proved = certificate_of(problem, self._regulariser, zeta, self.dual)
        status = status_of(problem, self._regulariser, proved, self.proof, self.tol)
        return replace(self, certificate=proved, status=status)

    @property
    def _regulariser(self) -> Regulariser:
        return regulariser_of(self.norm, self.penalty, self.radius, self.eps)

    def _summary(self) -> dict[str, Any]:
        return {
            "n_samples": len(self.dual),
            "n_units": len(self.unit_norms),
            "n_live": int(self.live.sum()),
            "size": self.size,
            "unit_norms": self.unit_norms.tolist(),
            "dual_norms": self.dual_norms.tolist(),
        }

    def __repr__(self) -> str:
        proof = self.certificate
        asked = {
            True: f"penalty {self.penalty:.4g}" if self.penalty is not None else "",
            False: f"radius {self.radius:.4g}" if self.radius is not None else "interpolation",
        }[self.penalty is not None]
        return (
            f"FitLimit({self.status.name}: {self.loss} loss, {self.norm}, {asked}\n"
            f"  objective {proof.objective:.10g}, gap {proof.gap:.2g}, mean loss "
            f"{self.mean_loss:.6g}, size {self.size:.6g}\n"
            f"  {int(self.live.sum())} of {len(self.unit_norms)} units live, {len(self.dual)} "
            f"samples, {self.solver}, {self.iterations} iterations, {self.seconds:.3g} s)"
        )
