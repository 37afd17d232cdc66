"""The limit of training with weight decay, as a result with its certificate."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np

from ..._support.doors import door
from ..._support.kinds import anything
from ..._support.solve import (
    ArrayLike,
    FitProgram,
    Norm,
    Regulariser,
    Status,
    fit_bounds,
    fit_status,
    regulariser_of,
    require_shape,
)
from ...data.arrays import Floats
from ...quantities.definition import Quantity
from ..predictors import (
    ContextPredictor,
    DecisionFunction,
    GateColumns,
    LinearPredictor,
    MulticlassPredictor,
    Predictor,
    unit_matrices,
)
from ..result import Solved, how_many, proved, size_of
from .arguments import coefficients_of
from .certificate import FitLimitCertificate
from .problem import fit_problem


class FitChoice(Solved):
    """Base of limits of fits: what was fitted, by which loss and regulariser.

    Attributes
    ----------
    loss : {"squared", "logistic", "softmax"}
    norm : str
    penalty, radius, eps : float or None
    n_contexts : int or None
    sample_weight : (n,) array or None
    """

    loss: str
    norm: str
    penalty: float | None
    radius: float | None
    eps: float | None
    n_contexts: int | None
    sample_weight: Floats | None = field(default=None, kw_only=True)

    @property
    def _regulariser(self) -> Regulariser:
        return regulariser_of(self.norm, self.penalty, self.radius, self.eps)

    @property
    def _asked(self) -> str:
        """What was asked of the norm, in words."""
        if self.penalty is not None:
            return f"penalty {self.penalty:.4g}"
        return f"radius {self.radius:.4g}" if self.radius is not None else "interpolation"

    def _problem(self, X: ArrayLike, y: ArrayLike, gates: ArrayLike | None) -> FitProgram:
        return fit_problem(X, y, gates, self.loss, self.n_contexts, self.sample_weight)


class FitLimit(FitChoice):
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

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: no coefficients have a value lower by more than the tolerance, by "
        "the multipliers of the loss",
        Status.INACCURATE: "inaccurate: the gap or the misfit is above the tolerance. Its numbers "
        "hold as reported: allow more iterations, raise `tol`, or take a larger penalty",
    }
    RECORD = ("n_samples", "n_units", "n_live", "size", "unit_norms", "dual_norms")
    BRIEF = (
        "{status.name}: {loss} loss, {norm}, {_asked}\n"
        "  objective {objective:.10g}, gap {gap:.2g}, mean loss {mean_loss:.6g}, size {size:.6g}\n"
        "  {n_live} of {n_units} units live, {n_samples} samples, {solver}, {iterations} "
        "iterations, {seconds:.3g} s"
    )

    ROW: ClassVar = {
        "objective": "objective", "lower_bound": "certificate.dual_objective", "gap": "gap",
        "n_units": "n_units", "n_live": "n_live", "iterations": "iterations",
        "limit_seconds": "seconds",
    }  # fmt: skip
    SCREEN = ("lower_bound", "gap", "status")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = (
        "status",
        Quantity("objective", "least value", "{:.10g}".format),
        "lower_bound",
        "gap",
        Quantity("mean_loss", "mean loss there", "{:.6g}".format),
        Quantity("size", "size", "{:.6g}".format),
        "n_units",
        "n_live",
        Quantity("_bound_by_ball", "the ball binds"),
        "iterations",
        "limit_seconds",
    )

    zeta: Floats
    dual: Floats
    unit_norms: Floats
    dual_norms: Floats
    scores: Floats
    is_unique: bool
    binds: bool
    mean_loss: float
    mean_loss_at_zero: float
    proof: Floats | None
    status: Status
    certificate: FitLimitCertificate

    objective = proved("objective", "Value of the coefficients, of the certificate.")
    gap = proved("gap", "Relative gap, of the certificate.")
    n_samples = size_of("dual", "Number of samples.")
    n_units = size_of("unit_norms", "Number of units.")
    n_live = how_many("live", "Number of units that have coefficients.")

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
        problem = self._problem(X, y, gates)
        B = coefficients_of(network, problem)
        return FitLimitCertificate(*fit_bounds(problem, self._regulariser, B))

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
        problem = self._problem(X, y, gates)
        require_shape("y", problem.y, self.dual.shape, "the samples of the limit")
        zeta = coefficients_of(self.zeta, problem)
        proved = fit_bounds(problem, self._regulariser, zeta, self.dual)
        status = fit_status(problem, self._regulariser, proved, self.proof, self.tol)
        return replace(self, certificate=FitLimitCertificate(*proved), status=status)

    @property
    def _bound_by_ball(self) -> str | None:
        return ("yes" if self.binds else "NO") if self.radius else None
