"""Gradient flow of a gated deep linear network in closed form, at every time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..._support.doors import door
from ..._support.kinds import any_number
from ..._support.solve import (
    Array,
    DenseArray,
    LeastSquaresProgram,
    LeastSquaresSolution,
    Status,
    array_namespace,
    as_float64,
    require_positive,
    solve_least_squares,
    to_numpy,
)
from .formulation import GatedLeastSquares


@dataclass(frozen=True, eq=False, repr=False)
class GatedFlow:
    """Gradient flow `tau dw/dt = (b - A w / K) / K` from w(0) in closed form; call it with a time.

        w(t) = w(0) + V (I - e^{-rates t}) displacement,    rates = eigenvalues / (K^2 tau)

    with the eigenvectors V of A on its range and `displacement = V^T (K A^+ b - w(0))`: the same
    as `e^{-t A / (K^2 tau)} w(0) + K A^+ (I - e^{-t A / (K^2 tau)}) b`, but exact at t = 0 and
    without ever computing the null space, where nothing moves.

    Attributes
    ----------
    initial : (K, D) array
        w(0).
    rates : (r,) array
        Positive, one per direction of the range of A.
    basis : (K D, r) array
        The orthonormal eigenvectors V; row k D + d is input d of unit k.
    displacement : (r,) array
        The limit less w(0), in the coordinates of `basis`.
    final_loss : float
        `1/2 <(y - f)^2>` at infinity.
    tau : float
        Time constant.
    """

    initial: DenseArray
    rates: DenseArray
    basis: DenseArray
    displacement: DenseArray
    final_loss: float
    tau: float

    @property
    def limit(self) -> DenseArray:
        """(K, D) weights `w(inf) = K A^+ b + P_null(A) w(0)`."""
        return self(math.inf)

    def __call__(self, t: Any) -> DenseArray:
        """Return the weights at given times.

        A gradient step of learning rate eta on the mean loss advances t by eta when tau = 1.

        Parameters
        ----------
        t : float or (...) array
            Times, 0 to infinity inclusive, in the unit of `tau`.

        Returns
        -------
        (..., K, D) array

        Raises
        ------
        ValueError
            If a time is negative or NaN.
        """
        xp = array_namespace(self.rates)
        t = self._times(t)
        found: DenseArray = self._moved(-xp.expm1(-t[..., None] * self.rates))
        return found

    def descent(self, n_steps: Any, learning_rate: float) -> DenseArray:
        """Return the weights (..., K, D) after `n_steps` (...) full-batch gradient steps, exactly.

        Each step multiplies the distance from the limit along eigenvector i of A by
        `1 - learning_rate lambda_i / K^2`, where the flow has an exponential.

        Raises
        ------
        ValueError
            If a number of steps is negative or NaN.
        """
        steps = self._times(n_steps, name="n_steps")
        share = 1 - (1 - learning_rate * self.tau * self.rates) ** steps[..., None]
        found: DenseArray = self._moved(share)
        return found

    def loss(self, t: Any) -> DenseArray:
        """Return the losses `1/2 <(y - f)^2>` (...) at times `t` (...); NaN if `<y^2>` is unknown.

            L(t) = L(inf) + 1/2 sum_i lambda_i (e^{-rates_i t} displacement_i / K)^2

        with the eigenvalues lambda_i of A.
        """
        xp = array_namespace(self.rates)
        t = self._times(t)
        # The mean's factor 1/K^2 in the excess loss turns eigenvalues into tau times rates.
        left = xp.exp(-t[..., None] * self.rates) * self.displacement
        found: DenseArray = self.final_loss + 0.5 * self.tau * xp.sum(
            self.rates * left * left, axis=-1
        )
        return found

    def _moved(self, share: Array) -> Array:
        xp = array_namespace(self.rates)
        shift = (share * self.displacement) @ self.basis.T
        return self.initial + xp.reshape(shift, (*share.shape[:-1], *self.initial.shape))

    def _times(self, t: Any, name: str = "t") -> Array:
        xp = array_namespace(self.rates)
        t = as_float64(t, like=self.rates)
        if not bool(xp.all(t >= 0)):
            raise ValueError(f"`{name}` must be at least 0 everywhere (math.inf allowed), no NaN")
        return t

    def __repr__(self) -> str:
        n_units, n_inputs = (int(size) for size in self.initial.shape)
        slowest = math.inf
        if len(self.rates):
            slowest = 1 / float(to_numpy(self.rates).min())
        return (
            f"GatedFlow(weights {n_units} x {n_inputs}, rank {len(self.rates)}, slowest time "
            f"{slowest:.4g}, final loss {self.final_loss:.6g})"
        )


@door()
def gated_flow(
    X: Array, y: Array, gates: Array, w0: Array, tau: float = 1.0, *, rcond: float | None = None
) -> GatedFlow:
    """Solve gradient flow of `1/2 <(y - 1/K sum_k g_k <w_k, x>)^2>` over samples in closed form.

    Parameters
    ----------
    X : (n, D) real array
        Inputs; NumPy array or torch tensor.
    y : (n,) real array
        Targets.
    gates : (n, K) array
        Gate of every sample in every unit: booleans, 0 and 1, or any real numbers.
    w0 : (K, D) array
        Initial weights.
    tau : float
        Time constant, positive: `tau dw/dt = -grad`.
    rcond : float, optional
        Eigenvalues of A at or below this share of the largest count as zero, in [0, 1); by default
        `(max(n, K D) 2^-52)^2`. Weights do not move along their directions.

    Returns
    -------
    GatedFlow
        `flow(t)` has the weights (K, D), `flow.limit` those at infinity, `flow.loss(t)` the loss.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, or `tau` is not positive.

    References
    ----------
    Notes on gated deep linear networks, equations (8) to (11), with the 1/K of the
    network's output restored and an initial condition of any sign.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> flow = ib.dynamics.gated_flow(one, np.ones(1), one, np.zeros((1, 1)))
    >>> [round(float(flow(t)[0, 0]), 6) for t in (0, np.log(2), np.inf)]
    [0.0, 0.5, 1.0]
    """
    return _flow(GatedLeastSquares().program(X, y, gates), w0, tau, rcond)


@door(second_moment=any_number)
def gated_flow_from_moments(
    A: Array,
    b: Array,
    w0: Array,
    tau: float = 1.0,
    *,
    second_moment: float = math.nan,
    rcond: float | None = None,
) -> GatedFlow:
    """Solve gradient flow of the squared loss of a population, given by its moments.

    Parameters
    ----------
    A : (K D, K D) array
        `<xt xt^T>` for `xt = (g_1(x) x, ..., g_K(x) x)`; row k D + d is input d of unit k.
    b : (K D,) array
        `<xt y>`.
    w0 : (K, D) array
        Initial weights, one row per unit.
    tau : float
        Time constant, positive: `tau dw/dt = -grad`.
    second_moment : float, optional
        `<y^2>`; without it losses are NaN.
    rcond : float, optional
        Eigenvalues of A at or below this share of the largest count as zero; by default
        `K D 2^-52`.

    Returns
    -------
    GatedFlow

    Raises
    ------
    ValueError
        If shapes disagree, values are not finite, `tau` is not positive, or b lies outside the
        range of A: no distribution has such moments, and the flow would not converge.
    """
    start = as_float64(w0)
    n_units = int(start.shape[0]) if start.ndim == 2 else 1
    program = GatedLeastSquares().program_of_moments(A, b, n_units, second_moment=second_moment)
    return _flow(program, w0, tau, rcond)


def _flow(program: LeastSquaresProgram, w0: Array, tau: float, rcond: float | None) -> GatedFlow:
    require_positive("tau", tau)
    return flow_to(solve_least_squares(program, rcond=rcond), w0, tau)


def flow_to(solution: LeastSquaresSolution, w0: Array, tau: float = 1.0) -> GatedFlow:
    """Return the flow from weights w0 (K, D) to the limit that a least-squares solution states.

    Raises
    ------
    ValueError
        If `w0` is not finite or of another shape, or the solution is of no distribution's moments.
    """
    spectrum = solution.spectrum
    xp = array_namespace(spectrum.basis)
    start = as_float64(w0, like=spectrum.basis)
    shape = tuple(int(size) for size in solution.coefficients.shape)
    if tuple(start.shape) != shape or not bool(xp.all(xp.isfinite(start))):
        raise ValueError(
            f"`w0` must be finite, of shape {shape}, got shape {tuple(start.shape)}: "
            "one row of weights per unit"
        )
    if solution.status is Status.INCONSISTENT:
        raise ValueError(f"`A` and `b` are {solution.advice}")
    n_units = shape[0]
    return GatedFlow(
        initial=start,
        rates=spectrum.eigenvalues / (n_units**2 * tau),
        basis=spectrum.basis,
        displacement=n_units * spectrum.minimiser - spectrum.basis.T @ xp.reshape(start, (-1,)),
        final_loss=solution.loss,
        tau=tau,
    )
