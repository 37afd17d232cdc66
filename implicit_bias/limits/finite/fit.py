"""Limits of training with weight decay: penalties, balls and interpolation, with certificates."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..._support.doors import door
from ..._support.kinds import anything, count, one_of
from ..._support.solve import (
    FIT_LOSSES,
    ArrayLike,
    Barrier,
    FitProgram,
    Interpolation,
    Norm,
    NormName,
    Regulariser,
    ball_binds,
    fit_bounds,
    fit_status,
    is_unique,
    require_positive,
    solve_fit_program,
    unreachable,
)
from ...data.arrays import Floats
from .arguments import checked_regulariser, norm_name
from .certificate import FitLimitCertificate
from .limit import FitLimit
from .problem import fit_problem


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
    sample_weight: ArrayLike | None = None,
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
    sample_weight : (n,) array, optional
        Positive weights of samples in the mean of the loss, of which a factor does not matter. They
        move a finite limit, and no limit without decay.
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
    begun = time.perf_counter()
    problem = fit_problem(X, y, gates, loss, n_contexts, sample_weight)
    name = norm_name(norm, problem, gates is not None)
    regulariser = checked_regulariser(name, penalty, radius, loss)
    if sample_weight is not None and isinstance(regulariser, Interpolation):
        raise ValueError("`sample_weight` does not move an interpolant: leave it out")
    found = _solved(problem, regulariser, name, loss, n_contexts, tol, max_iterations, begun)
    return found if sample_weight is None else replace(found, sample_weight=problem.loss.shares)


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
    problem = fit_problem(X, y, gates, loss, n_contexts)
    name = norm_name(norm, problem, gates is not None)
    found: list[FitLimit] = []
    for penalty in penalties:
        begun = time.perf_counter()
        regulariser = checked_regulariser(name, penalty, None, loss)
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
    problem = fit_problem(X, y, gates, loss, None)
    if problem.several:
        raise ValueError("`y` must have shape (n,): one score a sample")
    require_positive("weight_decay", weight_decay)
    require_positive("eps", eps)
    regulariser = Barrier(weight_decay, eps)
    return _solved(problem, regulariser, "adamw", loss, None, tol, None, begun)


def _solved(
    problem: FitProgram,
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
    start = None if before is None else before.dual / ys
    found = solve_fit_program(
        unit, regulariser.in_units(xs, ys), tol=tol, max_iterations=max_iterations, start=start
    )
    zeta, r = found.zeta * (ys / xs), found.r * ys
    interpolating, proof = isinstance(regulariser, Interpolation), None
    if interpolating:
        r, proof = found.r, unreachable(problem)
    proved = fit_bounds(problem, regulariser, zeta, r)
    V, scores, at_zero = problem.adjoint(r), problem.scores(zeta), problem.loss_at_zero
    return FitLimit(
        zeta=zeta.reshape(problem.own_shape),
        dual=r,
        unit_norms=problem.unit_norms(zeta),
        dual_norms=problem.unit_norms(V),
        scores=scores,
        loss=loss,
        norm=norm,
        penalty=None if interpolating else getattr(regulariser, "lam", None),
        radius=getattr(regulariser, "radius", None),
        eps=getattr(regulariser, "eps", None),
        n_contexts=n_contexts,
        sample_weight=None,
        is_unique=is_unique(problem, regulariser, V),
        binds=ball_binds(problem, regulariser, V, proved.objective),
        mean_loss=problem.loss.value(scores, problem.y),
        mean_loss_at_zero=at_zero,
        proof=proof,
        status=fit_status(problem, regulariser, proved, proof, tol),
        certificate=FitLimitCertificate(*proved),
        tol=tol,
        solver=found.solver,
        iterations=found.iterations,
        seconds=time.perf_counter() - begun,
    )


def _unit(array: Floats) -> float:
    largest = float(np.max(np.abs(array), initial=0.0))
    return 2.0 ** round(math.log2(largest)) if largest > 0 else 1.0
