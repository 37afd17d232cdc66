"""Limits of training with weight decay: penalties, balls and interpolation, with certificates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .._doors import door, result
from .._kinds import anything, count, one_of
from .._solve import (
    ArrayLike,
    Norm,
    NormName,
    Status,
    require_finite,
    require_positive,
    require_real,
    require_shape,
    shown,
    to_numpy,
)
from ..data.arrays import Floats
from ..limits.predictors import (
    ContextPredictor,
    DecisionFunction,
    GateColumns,
    LinearPredictor,
    Predictor,
)
from ..limits.result import ReadOnlyResult
from .descent import has_proximal, solve_proximal
from .losses import FIT_LOSSES
from .newton import solve_barrier, solve_box, solve_groups, solve_l2_ball, solve_ridge
from .problem import FitProblem
from .regularisers import Ball, Barrier, Interpolation, Penalty, Regulariser, Ridge
from .rows import RowsProgram, solve_rows

__all__ = ["FitLimitCertificate", "FitLimit", "solve_adamw", "solve_fit", "solve_fit_path"]

EPS = float(np.finfo(np.float64).eps)
_LIVE = 1e-6  # slack of a dual norm below which a unit counts as live
# Samples for each coefficient from which one unknown a coefficient is less work, and coefficients
# up to which it is tried where the samples' method does not come through.
_TALL, _MOST_COEFFICIENTS = 2.0, 4000
_FELT = 1e-6  # share of the loss at 0 that a ball's constraint must cost to first order


@result()
@dataclass(frozen=True)
class FitLimitCertificate:
    """Bounds of the optimum, recomputed from coefficients and multipliers in plain arithmetic.

    Attributes
    ----------
    objective : float
        Mean loss and regulariser of the coefficients; their norm, for interpolation.
    dual_objective : float
        Lower bound of what any coefficients have.
    gap : float
        ``(objective - dual_objective) / objective``; for balls, where the optimum may be 0, over
        the loss of coefficients 0. 0 for 0 / 0.
    misfit : float
        ``||scores - y|| / ||y||`` of interpolation; 0 for the others.
    """

    objective: float
    dual_objective: float
    gap: float
    misfit: float


@result()
@dataclass(frozen=True, eq=False, repr=False)
class FitLimit(ReadOnlyResult):
    r"""The limit of training with weight decay, or of least-norm interpolation.

    .. math:: \min_\zeta \frac1n \sum_n \ell(f_\zeta(x_n), y_n) + R(\zeta)

    Attributes
    ----------
    zeta : array
        Coefficients: (D,), (H, D) behind gates, (H, C, D) behind contexts; with K scores (K, D) or
        (H, K, D).
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
        return float(Norm.of(name).value(self.zeta))  # type: ignore[arg-type]

    @property
    def predictor(self) -> DecisionFunction:
        """The limit as a function of new inputs and gates."""
        if self.n_contexts is not None:
            return ContextPredictor(self.zeta)
        if self.scores.ndim == 2 and self.zeta.ndim == 3:
            return _SeveralScores(self.zeta)
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
        problem = FitProblem.checked(X, y, gates, self.loss, self.n_contexts)
        B = _coefficients(network, problem.shape)
        return _certificate(problem, self._regulariser, B, problem.multipliers(B))

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
        problem = FitProblem.checked(X, y, gates, self.loss, self.n_contexts)
        require_shape("y", problem.y, self.dual.shape, "the samples of the limit")
        zeta = _coefficients(self.zeta, problem.shape)
        proved = _certificate(problem, self._regulariser, zeta, self.dual)
        status = _status(problem, self._regulariser, proved, self.proof, self.tol)
        return replace(self, certificate=proved, status=status)

    @property
    def _regulariser(self) -> Regulariser:
        return _regulariser(self.norm, self.penalty, self.radius, self.eps)

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


@dataclass(frozen=True, eq=False)
class _SeveralScores(DecisionFunction):
    """Scores ``sum_h g_h(x) zeta_h x`` (n, K) of coefficients (H, K, D)."""

    zeta: Floats

    def __call__(self, X: ArrayLike, gates: ArrayLike | None = None) -> Floats:
        """Return the scores (n, K) of X (n, D) under gates (n, H).

        Raises
        ------
        TypeError, ValueError
            If an array has another shape.
        """
        inputs = np.asarray(to_numpy(X), dtype=np.float64)
        rule = GateColumns(len(self.zeta), binary=False)
        opened = np.asarray(rule.check(np.asarray(to_numpy(gates)), inputs))
        return np.asarray(np.einsum("nh,hkd,nd->nk", opened, self.zeta, inputs))


@door(
    gates=anything,
    loss=one_of(FIT_LOSSES),
    norm=anything,
    n_contexts=count(1),
    max_iterations=count(1),
)
def solve_fit(
    X: ArrayLike,
    y: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    loss: str = "logistic",
    penalty: float | None = None,
    radius: float | None = None,
    norm: NormName | Norm | str | None = None,
    n_contexts: int | None = None,
    tol: float = 1e-8,
    max_iterations: int | None = None,
) -> FitLimit:
    r"""Solve for the limit of training with weight decay, or for the least-norm interpolant.

        penalty: min  mean loss + penalty N(zeta)           decay in the gradient (SGD, Adam)
        radius:  min  mean loss  s.t.  N(zeta) <= radius    decoupled decay of normalised steps
        neither: min  N(zeta)    s.t.  scores = y           the penalty as it goes to 0

    Two layers, gates frozen, trained on ``mean loss + lam/2 (||a||^2 + ||W||^2)`` end, at any
    width and from any start that is no saddle, at the first with the norm "units" and penalty lam,
    since ``||a w|| = min (a^2 + ||w||^2) / 2``; rates that differ by layer count as the root of
    their product. One layer ends at "ridge". Two linear layers of several scores have "nuclear".

    Parameters
    ----------
    X : (n, D) real array
        Inputs; a bias is a constant column, and is decayed too.
    y : (n,) array
        Labels in {-1, +1} for "logistic"; targets (n,) or (n, K) for "squared"; shares of K
        classes (n, K) for "softmax".
    gates : (n, H) array, optional
        Gates; contexts, integers from 0, with `n_contexts`.
    loss : {"logistic", "squared", "softmax"}
        Mean over samples; the squared one with a half.
    penalty, radius : float, optional
        Positive. At most one of them.
    norm : str or Norm, optional
        As `Norm.of` names them, and "ridge": ``penalty ||zeta||^2 / 2``. By default "units" behind
        gates, "nuclear" for several scores, else "l2".
    n_contexts : int, optional
        Contexts of every unit, which make `gates` contexts.
    tol : float
        Relative gap to reach, in (0, 1).
    max_iterations : int, optional
        By default 100 steps of an interior point, 20,000 of proximal gradients.

    Returns
    -------
    FitLimit
        With its certificate; call `.require()` to insist on `SOLVED`. Where nothing interpolates
        its `proof` shows it.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, an array is malformed, or no solver has this norm here.

    References
    ----------
    B. Neyshabur, R. Tomioka, N. Srebro, "In search of the real inductive bias"; L. Yang et al., "A
    better way to decay", for the penalty; S. Xie, Z. Li, "Implicit bias of AdamW: l_inf-norm
    constrained optimization", for the ball.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> limit = ib.limits.solve_fit(X, y, loss="squared", penalty=0.1, norm="ridge")
    >>> limit.zeta.round(6).tolist()
    [0.47619, -0.833333]
    >>> ib.limits.solve_fit(X, y, radius=0.25, norm="linf").zeta.round(6).tolist()
    [0.25, -0.25]
    >>> ib.limits.solve_fit(X, y, loss="squared", norm="l1").objective
    1.5
    """
    problem = FitProblem.checked(X, y, gates, loss, n_contexts)
    name = _norm_name(norm, problem, gates is not None)
    regulariser = _checked_regulariser(name, penalty, radius, loss)
    return _solved(
        problem, regulariser, name, loss, n_contexts, tol, max_iterations, time.perf_counter()
    )


@door(gates=anything, loss=one_of(FIT_LOSSES), norm=anything, n_contexts=count(1))
def solve_fit_path(
    X: ArrayLike,
    y: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    penalties: Sequence[float],
    loss: str = "logistic",
    norm: NormName | Norm | str | None = None,
    n_contexts: int | None = None,
    tol: float = 1e-8,
) -> tuple[FitLimit, ...]:
    """Solve `solve_fit` for several penalties, each from the multipliers of the one before.

    Parameters
    ----------
    X, y, gates, loss, norm, n_contexts, tol
        As `solve_fit` takes them.
    penalties : sequence of float
        Positive; solved in the order given, large ones first being the fastest.

    Returns
    -------
    tuple of FitLimit

    Raises
    ------
    TypeError, ValueError
        As `solve_fit`.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> path = ib.limits.solve_fit_path(X, y, np.eye(2), penalties=[0.5, 0.3, 0.1])
    >>> [int(limit.live.sum()) for limit in path]
    [0, 1, 2]
    """
    problem = FitProblem.checked(X, y, gates, loss, n_contexts)
    name = _norm_name(norm, problem, gates is not None)
    found: list[FitLimit] = []
    for penalty in penalties:
        begun = time.perf_counter()
        regulariser = _checked_regulariser(name, penalty, None, loss)
        before = found[-1] if found else None
        found.append(
            _solved(problem, regulariser, name, loss, n_contexts, tol, None, begun, before)
        )
    return tuple(found)


@door(gates=anything, loss=one_of(("squared", "logistic")))
def solve_adamw(
    X: ArrayLike,
    y: ArrayLike,
    gates: ArrayLike | None = None,
    *,
    weight_decay: float,
    eps: float = 1e-8,
    loss: str = "logistic",
    tol: float = 1e-8,
) -> FitLimit:
    r"""Solve for the fixed point of full-batch AdamW, of predictors linear in their weights.

    At a fixed point the first moment is the gradient g and the root of the second its absolute
    value, whatever the betas: ``lam w = -g / (|g| + eps)``. That is stationarity of the convex

        mean loss(w) + (eps / lam) sum_i (-lam |w_i| - log(1 - lam |w_i|)),

    a log barrier of the box ``|w_i| <= 1 / lam``: strictly inside for every eps above 0, and
    `solve_fit(..., radius=1 / lam, norm="linf")` as eps goes to 0. No published source was found;
    the proof is these lines.

    Parameters
    ----------
    X : (n, D) real array
    y : (n,) array
        Labels in {-1, +1}; real targets for "squared".
    gates : (n, H) array, optional
        Of a predictor with weights zeta (H, D) of its own behind every gate, one layer.
    weight_decay : float
        lam of ``w <- (1 - rate lam) w - rate update``, positive.
    eps : float
        That of AdamW, positive; relative to the gradient of the mean loss.
    loss : {"logistic", "squared"}
    tol : float
        Relative gap to reach, in (0, 1).

    Returns
    -------
    FitLimit

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or an array is malformed.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    >>> for eps in (1e-1, 1e-3, 1e-8):
    ...     print(ib.limits.solve_adamw(X, y, weight_decay=4.0, eps=eps).zeta.round(4).tolist())
    [0.2001, -0.1739]
    [0.2493, -0.2489]
    [0.25, -0.25]
    """
    begun = time.perf_counter()
    problem = FitProblem.checked(X, y, gates, loss, None)
    if problem.several:
        raise ValueError("`y` must have shape (n,): one score a sample")
    require_positive("weight_decay", weight_decay)
    require_positive("eps", eps)
    regulariser = Barrier(weight_decay, eps)
    return _solved(problem, regulariser, "adamw", loss, None, tol, None, begun)


# Solving


def _solved(
    problem: FitProblem,
    regulariser: Regulariser,
    norm: str,
    loss: str,
    n_contexts: int | None,
    tol: float,
    max_iterations: int | None,
    begun: float,
    before: FitLimit | None = None,
) -> FitLimit:
    # In units in which inputs and targets are of size 1, by powers of two: nothing is rounded.
    xs = _unit(problem.X)
    ys = _unit(problem.y) if loss == "squared" else 1.0
    unit = replace(problem, X=problem.X / xs, y=problem.y / ys)
    inner = _in_units(regulariser, xs, ys)
    start = None if before is None else before.dual / ys
    zeta, r, solver, iterations = _minimised(unit, inner, tol, max_iterations, start)
    zeta, r = zeta * (ys / xs), r * ys
    proof = None
    if isinstance(regulariser, Interpolation):
        r = r / ys
        proof = _unreachable(problem)
    proved = _certificate(problem, regulariser, zeta, r)
    V = problem.adjoint(r)
    scores = problem.scores(zeta)
    at_zero = problem.loss.value(np.zeros_like(problem.y), problem.y)
    return FitLimit(
        zeta=zeta,
        dual=r,
        unit_norms=problem.unit_norms(zeta),
        dual_norms=problem.unit_norms(V),
        scores=scores,
        loss=loss,
        norm=norm,
        penalty=getattr(regulariser, "lam", None)
        if not isinstance(regulariser, Interpolation)
        else None,
        radius=getattr(regulariser, "radius", None),
        eps=getattr(regulariser, "eps", None),
        n_contexts=n_contexts,
        is_unique=_unique(problem, regulariser, zeta, V),
        binds=isinstance(regulariser, Ball) and bool(regulariser.conjugate(V) > _FELT * at_zero),
        mean_loss=problem.loss.value(scores, problem.y),
        mean_loss_at_zero=at_zero,
        proof=proof,
        status=_status(problem, regulariser, proved, proof, tol),
        certificate=proved,
        tol=tol,
        solver=solver,
        iterations=iterations,
        seconds=time.perf_counter() - begun,
    )


def _minimised(
    problem: FitProblem,
    regulariser: Regulariser,
    tol: float,
    max_iterations: int | None,
    start: Floats | None,
) -> tuple[Floats, Floats, str, int]:
    """Return coefficients, multipliers, the solver's name and its steps."""
    zero = np.zeros(problem.shape)
    at_zero = problem.loss.multipliers(np.zeros_like(problem.y), problem.y)
    V = problem.adjoint(at_zero)
    dead = not np.any(V)
    if isinstance(regulariser, Penalty) and not isinstance(regulariser, Interpolation):
        dead = float(regulariser.norm.dual.above(V)) <= regulariser.lam
    if dead:
        return zero, at_zero, "closed form", 0
    if not problem.several:
        flat = _by_newton(problem, regulariser)
        if flat is not None:
            zeta = flat[0].reshape(problem.shape)
            return zeta, problem.multipliers(zeta), "Newton", flat[1]
        if isinstance(regulariser, Penalty) and _in_rows(regulariser.norm, problem):
            return _by_rows(problem, regulariser, tol, max_iterations or 100, start)

    def gap(zeta: Floats) -> float:
        return _certificate(problem, regulariser, zeta, problem.multipliers(zeta)).gap

    found = solve_proximal(
        problem, regulariser, gap, tol=tol / 10, max_iterations=max_iterations or 20000
    )
    return found.zeta, problem.multipliers(found.zeta), "proximal gradient", found.iterations


def _by_newton(problem: FitProblem, regulariser: Regulariser) -> tuple[Floats, int] | None:
    """Return coefficients of smooth regularisers, box and l2 ball, and the steps; else None."""
    y, loss = problem.y, problem.loss
    if isinstance(regulariser, Ridge):
        return solve_ridge(problem.matrix(), y, loss, regulariser.lam)
    if isinstance(regulariser, Barrier):
        return solve_barrier(problem.matrix(), y, loss, regulariser.lam, regulariser.eps)
    if isinstance(regulariser, Ball) and regulariser.norm == Norm.of("linf"):
        return solve_box(problem.matrix(), y, loss, regulariser.radius)
    if isinstance(regulariser, Ball) and regulariser.norm == Norm.of("l2"):
        return solve_l2_ball(problem.matrix(), y, loss, regulariser.radius)
    return None


def _in_rows(norm: Norm, problem: FitProblem) -> bool:
    """Return whether a norm is a sum of l2 norms over units, or over all, or over entries."""
    if norm == Norm.of("l2") or norm == Norm.of("l1"):
        return True
    return norm in (Norm.of("units"), Norm.of("rows")) and len(problem.shape) in (2, 3)


def _by_rows(
    problem: FitProblem,
    regulariser: Penalty,
    tol: float,
    max_iterations: int,
    start: Floats | None,
) -> tuple[Floats, Floats, str, int]:
    columns, group, inputs = problem.columns, problem.group, problem.X
    if regulariser.norm == Norm.of("l1"):  # every entry is a unit of a constant input
        columns = problem.matrix()
        group, inputs = np.arange(columns.shape[1]), np.ones((len(columns), 1))
    elif regulariser.norm == Norm.of("l2"):
        group = np.zeros_like(group)
    interpolating = isinstance(regulariser, Interpolation)
    loss = None if interpolating else problem.loss
    program = RowsProgram(inputs @ inputs.T, columns, group, problem.y, loss, regulariser.lam)

    def read(r: Floats, t: Floats) -> Floats:
        blocks = (columns * r[:, None]).T @ inputs
        return np.asarray(blocks * t[group][:, None]).reshape(problem.shape)

    def gap(r: Floats, t: Floats) -> float:
        if not interpolating:
            return _certificate(problem, regulariser, read(r, t), r).gap
        zeta = read(r, t)  # as they are: to move them onto the samples takes a factorisation
        missing = float(np.linalg.norm(problem.scores(zeta) - problem.y))
        size = regulariser.value(zeta)
        bound = float(problem.y @ r) * regulariser.scale(problem.adjoint(r))
        return max(_ratio(size - bound, size), missing / float(np.linalg.norm(problem.y)))

    by_groups = partial(_by_groups, problem, regulariser, group, tol)
    n, m = len(problem.y), columns.shape[1] * inputs.shape[1]
    if not interpolating and n > _TALL * m:
        return by_groups()
    found = solve_rows(program, gap, tol=tol / 30, max_iterations=max_iterations, start=start)
    r, t = found.r, found.t
    # Units whose dual norm stays clear of the penalty are 0, not small.
    slack = 1 - np.sqrt(np.maximum(program.products(r).T @ r, 0.0)) / regulariser.lam
    t, best = _pruned(t, slack, partial(gap, r), tol)
    if best > tol and not interpolating and m <= _MOST_COEFFICIENTS:
        other = by_groups()
        if _certificate(problem, regulariser, *other[:2]).gap < best:
            return other
    return read(r, t), r, "interior point in the rows", found.iterations


def _by_groups(
    problem: FitProblem, regulariser: Penalty, group: NDArray[np.int64], tol: float
) -> tuple[Floats, Floats, str, int]:
    """Solve a group penalty with one unknown a coefficient."""
    A = problem.matrix()
    of_each = np.repeat(group, A.shape[1] // len(group))

    def gap(w: Floats) -> float:
        zeta = w.reshape(problem.shape)
        return _certificate(problem, regulariser, zeta, problem.multipliers(zeta)).gap

    w, steps = solve_groups(A, problem.y, problem.loss, regulariser.lam, of_each, gap, tol=tol / 30)
    V = (A.T @ problem.multipliers(w.reshape(problem.shape))) ** 2
    slack = 1 - np.sqrt(np.bincount(of_each, V)) / regulariser.lam
    w, _ = _pruned(w, slack[of_each], gap, tol)
    zeta = w.reshape(problem.shape)
    return zeta, problem.multipliers(zeta), "Newton on the groups", steps


def _pruned(
    values: Floats, slack: Floats, gap: Callable[[Floats], float], tol: float
) -> tuple[Floats, float]:
    """Return values with those of clear slack at 0, as far as the gap allows, and their gap."""
    best = gap(values)
    for share in (1e-3, 1e-5, _LIVE):
        trial = np.where(slack > share, 0.0, values)
        found = gap(trial)
        if found <= max(best * (1 + 1e-3), tol / 30):
            values, best = trial, found
    return values, best


# Certificates


def _certificate(
    problem: FitProblem, regulariser: Regulariser, zeta: Floats, r: Floats
) -> FitLimitCertificate:
    """Return the bounds that coefficients and multipliers give; no solver is asked."""
    V = problem.adjoint(r)
    y = problem.y
    if isinstance(regulariser, Interpolation):
        f = problem.scores(zeta)
        missing = y - f
        A = problem.matrix() if not problem.several else None
        moved = zeta
        if A is not None:
            moved = zeta + np.linalg.lstsq(A, missing, rcond=None)[0].reshape(problem.shape)
        objective = regulariser.value(moved)
        left = float(np.linalg.norm(y - problem.scores(moved)))
        misfit = left / (float(np.linalg.norm(y)) or 1.0)
        bound = float(np.sum(y * r)) * regulariser.scale(V)
        return FitLimitCertificate(objective, bound, _ratio(objective - bound, objective), misfit)
    B = regulariser.pulled(zeta)
    objective = problem.loss.value(problem.scores(B), y) + regulariser.value(B)
    factor = regulariser.scale(V)
    # A factor up to 1 keeps the multipliers in the domain of the loss.
    bound = problem.loss.dual(factor * r, y) - regulariser.conjugate(factor * V)
    scale = objective
    if isinstance(regulariser, Ball):
        scale = problem.loss.value(np.zeros_like(y), y)
    return FitLimitCertificate(objective, bound, _ratio(objective - bound, scale), 0.0)


def _ratio(difference: float, scale: float) -> float:
    if not math.isfinite(difference):
        return math.inf
    if scale <= 0:
        return 0.0 if difference <= 0 else math.inf
    return max(difference, 0.0) / scale


def _status(
    problem: FitProblem,
    regulariser: Regulariser,
    proved: FitLimitCertificate,
    proof: Floats | None,
    tol: float,
) -> Status:
    if proof is not None and isinstance(regulariser, Interpolation):
        reached = problem.adjoint(proof)
        sizes = float(np.abs(problem.X).max() * np.abs(problem.columns).max() * np.abs(proof).sum())
        gain = float(np.sum(problem.y * proof))
        if np.abs(reached).max() <= 1e-10 * sizes and gain > 0:
            return Status.NOT_INTERPOLABLE
    return Status.SOLVED if proved.gap <= tol and proved.misfit <= tol else Status.INACCURATE


def _unreachable(problem: FitProblem) -> Floats | None:
    """Return the part of the targets outside the range of the scores; None where it is rounding."""
    if problem.several:
        return None
    A = problem.matrix()
    left = problem.y - A @ np.linalg.lstsq(A, problem.y, rcond=None)[0]
    large = float(np.linalg.norm(left)) > 1e-8 * float(np.linalg.norm(problem.y))
    return np.asarray(left) if large else None


def _unique(problem: FitProblem, regulariser: Regulariser, zeta: Floats, V: Floats) -> bool:
    """Return whether coefficients are those of the scores alone."""
    if isinstance(regulariser, Ridge | Barrier):
        return True
    if isinstance(regulariser, Interpolation) or problem.several:
        return False
    if not isinstance(regulariser, Penalty):
        A = problem.matrix()
        return bool(np.linalg.matrix_rank(A) == A.shape[1])
    if not _in_rows(regulariser.norm, problem):
        return False
    if regulariser.norm == Norm.of("l2"):
        return True
    # Coefficients are t_h V_h with t >= 0, and V is known: unique if the scores of the V_h are
    # independent, over all units whose dual norm is as large as the penalty.
    blocks = V.reshape(len(problem.group), -1)
    each = problem.columns * (problem.X @ blocks.T)
    if regulariser.norm == Norm.of("l1"):
        each, sizes = problem.matrix() * V.reshape(-1), np.abs(V).reshape(-1)
    else:
        starts = np.flatnonzero(np.diff(problem.group, prepend=-1))
        each, sizes = np.add.reduceat(each, starts, axis=1), problem.unit_norms(V)
    full = each[:, sizes >= (1 - _LIVE) * regulariser.lam]
    return bool(np.linalg.matrix_rank(full, tol=None) == full.shape[1])


# Arguments


def _norm_name(norm: Any, problem: FitProblem, gated: bool) -> str:
    if norm is None:
        if problem.several:
            return "sum-nuclear" if gated else "nuclear"
        return "units" if gated else "l2"
    if isinstance(norm, str) and norm == "ridge":
        return norm
    found = Norm.of(norm)
    if not gated and not problem.several and found.name not in ("l2", "linf", "l1"):
        raise ValueError(
            f"`norm` {found.name!r} is one of matrices: coefficients of one score without gates "
            "have 'l2', 'linf', 'l1' or 'ridge'"
        )
    return found.name


def _checked_regulariser(
    norm: str, penalty: float | None, radius: float | None, loss: str
) -> Regulariser:
    if penalty is not None and radius is not None:
        raise ValueError("`penalty` and `radius` are two forms of one regulariser: give one")
    if penalty is not None:
        require_positive("penalty", penalty)
    if radius is not None:
        require_positive("radius", radius)
    if norm == "ridge" and penalty is None:
        raise ValueError('`norm` "ridge" is half a squared norm: it needs `penalty`')
    if penalty is None and radius is None:
        if loss != "squared":
            raise ValueError(
                f'`loss` {loss!r} has no interpolant: give `penalty` or `radius`, or loss="squared"'
            )
        if norm not in ("l2", "l1", "units", "rows"):
            raise ValueError(
                f"`norm` {norm!r} has no solver of interpolation here: give `penalty` or `radius`"
            )
    if norm not in ("ridge",) and not has_proximal(Norm.of(norm)):  # type: ignore[arg-type]
        raise ValueError(
            f"`norm` {norm!r} has no solver here: one matrix has 'nuclear', 'spectral'"
        )
    return _regulariser(norm, penalty, radius, None)


def _regulariser(
    norm: str, penalty: float | None, radius: float | None, eps: float | None
) -> Regulariser:
    if norm == "adamw" and penalty is not None and eps is not None:
        return Barrier(penalty, eps)
    if norm == "ridge" and penalty is not None:
        return Ridge(penalty)
    own = Norm.of(norm)  # type: ignore[arg-type]
    if penalty is not None:
        return Penalty(own, penalty)
    if radius is not None:
        return Ball(own, radius)
    return Interpolation(own, 1.0)


def _in_units(regulariser: Regulariser, xs: float, ys: float) -> Regulariser:
    """Return the regulariser of coefficients in units of ``ys / xs``, values in those of ys^2."""
    if isinstance(regulariser, Interpolation):
        return regulariser
    if isinstance(regulariser, Penalty):
        return replace(regulariser, lam=regulariser.lam / xs / ys)
    if isinstance(regulariser, Ridge):
        return replace(regulariser, lam=regulariser.lam / xs / xs)
    if isinstance(regulariser, Barrier):
        return Barrier(regulariser.lam * (ys / xs), regulariser.eps / xs / ys)
    if isinstance(regulariser, Ball):
        return replace(regulariser, radius=regulariser.radius * (xs / ys))
    raise TypeError(f"no units of {type(regulariser).__name__}")


def _unit(array: Floats) -> float:
    largest = float(np.max(np.abs(array), initial=0.0))
    return 2.0 ** round(math.log2(largest)) if largest > 0 else 1.0


def _coefficients(network: Any, shape: tuple[int, ...]) -> Floats:
    """Return the coefficients of a network, or an array of them, in the shape of the limit's."""
    given = network
    if hasattr(network, "zeta") and callable(network.zeta):
        given = network.zeta()
        if hasattr(given, "detach"):
            given = given.detach()
    elif not hasattr(network, "shape") and not isinstance(network, list | tuple):
        raise TypeError(
            f"`network` must have `zeta`, or be an array of coefficients, got {shown(network)}"
        )
    require_real("network", given)
    B = np.asarray(to_numpy(given), dtype=np.float64)
    require_shape("network", B, shape, "coefficients as the limit has them")
    require_finite("network", B)
    return B
