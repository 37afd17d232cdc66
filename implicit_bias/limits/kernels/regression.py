"""Least squares with a constant tangent kernel: errors at every step, and their limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.solve import Array, Status, require_positive, require_tolerance
from ...data.arrays import Floats
from ..literal import LiteralProgram, constant, cvxpy_module
from ..result import Result
from .arrays import check_kernel, cross_matrix, targets

if TYPE_CHECKING:
    import cvxpy

# Eigenvalues below n times the resolution of float64 times the largest are zero to rounding; those
# this many times as far below zero are not.
_INDEFINITE = 1e3


@dataclass(frozen=True)
class KernelRegressionCertificate:
    """Certificate of the coefficients of a kernel regression, recomputed from the kernel as passed.

    Attributes
    ----------
    remaining : float
        ``||K c - e_0|| / ||e_0||``: the share of the initial errors that remains. Rounding,
        if the kernel has full rank and is well conditioned. 0 for 0 / 0.
    stationarity : float
        ``||K (K c - e_0)|| / (||K|| ||e_0||)``, spectral norm of K: 0 where no coefficients leave
        less, so that the errors that remain lie outside the range of K.
    """

    remaining: float
    stationarity: float


class KernelRegression(Result):
    r"""Gradient descent on :math:`\tfrac12 \sum_n e_n^2`, e the errors, with a constant kernel K.

    Attributes
    ----------
    start : (n,) array
        Initial errors f_0(x) - y.
    coefficients : (n,) array
        c with K c = e_0 on the range of the kernel: training ends at ``f_0 - k(., X) c``.
    condition : float
        Largest over least positive eigenvalue of K: gradient descent takes steps in proportion.
    rank : int
        Eigenvalues that are not zero to rounding. Where it is less than n, errors outside the
        range of K stay.
    status : Status
    certificate : KernelRegressionCertificate
    tol : float
        Tolerance on the stationarity.
    eigenvalues : (n,) array, ascending
    eigenvectors : (n, n) array, in columns

    Examples
    --------
    >>> regression = ib.kernels.kernel_regression(np.eye(2), [1.0, -1.0])
    >>> regression.rank, regression.error(np.inf).tolist(), regression.status.name
    (2, [0.0, 0.0], 'SOLVED')
    """

    ADVICE: ClassVar = {
        Status.SOLVED: "solved: no coefficients leave smaller errors at the end of training, to "
        "within tolerance",
        Status.INACCURATE: "inaccurate: other coefficients would leave smaller errors, by more "
        "than the tolerance. The least eigenvalues of the kernel decide here: add a multiple of "
        "the identity, leave out samples that are nearly equal, or raise `tol`",
    }

    start: Floats
    coefficients: Floats
    condition: float
    rank: int
    status: Status
    certificate: KernelRegressionCertificate
    tol: float
    eigenvalues: Floats
    eigenvectors: Floats

    def error(self, t: Any) -> Floats:
        r"""Return errors :math:`e^{-K t} e_0` of gradient flow at times `t`: (n,) or (T, n).

        Raises
        ------
        ValueError
            If a time is negative or NaN.
        """
        times = np.asarray(t, dtype=np.float64)
        if times.ndim > 1 or not np.all(times >= 0):
            raise ValueError(f"`t` must hold times that are not negative, got {t}")
        spent = np.where(self._kept, times[..., None] * self.eigenvalues, 0.0)
        return self._through(np.exp(-spent))

    @door()
    def after(self, n_steps: Array, rate: float) -> Floats:
        r"""Return errors :math:`(I - \alpha K)^N e_0` (n,) or (T, n) after N steps of size alpha.

        For the loss :math:`\sum e^2`, without the half, a step of size alpha is one of 2 alpha
        here. Sizes of 2 over the largest eigenvalue and more diverge.

        Parameters
        ----------
        n_steps : int or (T,) ints
        rate : float
            Positive.

        Raises
        ------
        ValueError
            If a number of steps is negative or not whole, or the rate is not positive and finite.
        """
        steps = np.asarray(n_steps, dtype=np.float64)
        if steps.ndim > 1 or not np.all((steps >= 0) & (steps == np.floor(steps))):
            raise ValueError(f"`n_steps` must hold whole numbers from 0, got {n_steps}")
        require_positive("rate", rate)
        factors = np.where(self._kept, 1 - rate * self.eigenvalues, 1.0)
        return self._through(factors ** steps[..., None])

    def limit(self, k_cross: Any, f0_new: Any = 0.0) -> Floats:
        r"""Return the limits (m,) of new samples' scores, :math:`f_0(x) - k(x, X) K^{-1} e_0`.

        Parameters
        ----------
        k_cross : (m, n)
            Kernels of the new samples with the training samples.
        f0_new : (m,), optional
            Scores of the new samples at the beginning; by default 0.

        Raises
        ------
        TypeError, ValueError
            If shapes disagree or an entry is not finite.
        """
        cross = cross_matrix(k_cross, len(self.start))
        first = np.zeros(len(cross)) if np.ndim(f0_new) == 0 else f0_new
        if np.ndim(f0_new) == 0:
            first = first + float(f0_new)
        return np.asarray(targets("f0_new", first, len(cross)) - cross @ self.coefficients)

    @property
    def _kept(self) -> NDArray[np.bool_]:
        return np.arange(len(self.eigenvalues)) >= len(self.eigenvalues) - self.rank

    def _through(self, factors: Floats) -> Floats:
        """Return the initial errors, their parts along eigenvectors times factors (..., n)."""
        parts = self.eigenvectors.T @ self.start
        return np.asarray((factors * parts) @ self.eigenvectors.T)


@dataclass(frozen=True)
class KernelLeastSquares(LiteralProgram):
    """Least squares in a kernel's space on the initial errors of a network.

        minimise  1/2 sum_n (f_0(x[n]) - (K c)[n] - y[n])^2

    Of several minimisers, where K is singular, `kernel_regression` takes the one of least norm.

    References
    ----------
    L. Chizat, E. Oyallon, F. Bach, "On lazy training in differentiable programming": the squared
    loss while the tangent kernel is constant, here with the half that makes a step `e - alpha K e`.
    """

    name: ClassVar[str] = "kernel regression"

    def literal(self, K: Any, y: Any, f0: Any = 0.0) -> cvxpy.Problem:
        """State the program; its one variable is c (n,), its optimum half the remaining squares.

        Parameters
        ----------
        K : (n, n) array
        y : (n,) array
            Real targets.
        f0 : (n,) array or float
            Initial scores.

        Raises
        ------
        MissingExtra
            Without cvxpy.

        Examples
        --------
        >>> problem = ib.programs.KernelLeastSquares().literal(np.diag([2.0, 0.0]), [1.0, -1.0])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        0.5
        """
        cp = cvxpy_module()
        kernel, errors = _checked(K, y, f0)
        c = cp.Variable(len(errors), name="c")
        left = constant(errors, "e0") - constant(kernel, "K") @ c
        return cp.Problem(cp.Minimize(cp.sum_squares(left) / 2))


@door()
def kernel_regression(
    K: Array, y: Array, f0: Array = 0.0, *, tol: float = 1e-8
) -> KernelRegression:
    r"""Predict gradient descent on squared errors with a constant tangent kernel.

    At finite width it is the limit of large output scales: a network trained as
    :math:`h = \alpha (f_w - f_{w_0})` on :math:`(h - y)^2 / (2 \alpha^2)` follows it up to
    O(1/alpha).

    Parameters
    ----------
    K : (n, n) array
        Tangent kernel of the training samples, symmetric and positive semidefinite.
    y : (n,) array
        Real targets.
    f0 : (n,) array or float
        Initial scores; by default 0.
    tol : float
        Tolerance on the stationarity of the coefficients, in (0, 1).

    Returns
    -------
    KernelRegression
        With its certificate; call `.require()` to insist on `SOLVED`. A singular kernel (few
        weights, equal samples), of lower `rank`, fits the part of the targets in its range.
        `KernelLeastSquares.literal` states the program in cvxpy.

    Raises
    ------
    TypeError, ValueError
        If `K` is not symmetric and positive semidefinite up to rounding, or is zero, or targets or
        scores are not (n,) finite numbers, or `tol` is out of range.

    Examples
    --------
    >>> regression = ib.kernels.kernel_regression(np.diag([2.0, 1.0]), [1.0, -1.0])
    >>> regression.after(1, 0.5).tolist(), regression.limit([[1.0, 1.0]]).tolist()
    ([0.0, 0.5], [-0.5])
    """
    require_tolerance(tol)
    kernel, errors = _checked(K, y, f0)
    n = len(kernel)
    values, vectors = np.linalg.eigh(kernel)
    floor = n * np.finfo(np.float64).eps * float(values[-1])
    if not values[-1] > 0 or values[0] < -_INDEFINITE * floor:
        raise ValueError(
            f"`K` must be positive semidefinite and not zero, got eigenvalues from {values[0]:.3g} "
            f"to {values[-1]:.3g}: no tangent kernel"
        )
    kept = values > floor
    weights = np.divide(1.0, values, out=np.zeros(n), where=kept)
    coefficients = vectors @ (weights * (vectors.T @ errors))
    certificate = _certify(kernel, coefficients, errors, float(values[-1]))
    return KernelRegression(
        start=errors,
        coefficients=coefficients,
        condition=float(values[-1] / values[kept][0]),
        rank=int(kept.sum()),
        status=Status.SOLVED if certificate.stationarity <= tol else Status.INACCURATE,
        certificate=certificate,
        tol=tol,
        eigenvalues=values,
        eigenvectors=vectors,
    )


def _checked(K: Any, y: Any, f0: Any) -> tuple[Floats, Floats]:
    """The kernel and the first errors f_0(x) - y, as `kernel_regression` takes and raises."""
    kernel = check_kernel(K)
    n = len(kernel)
    first = np.full(n, float(f0)) if np.ndim(f0) == 0 else f0
    return kernel, targets("f0", first, n) - targets("y", y, n)


def _certify(
    kernel: Floats, coefficients: Floats, errors: Floats, largest: float
) -> KernelRegressionCertificate:
    size, left = float(np.linalg.norm(errors)), kernel @ coefficients - errors
    if size == 0:
        return KernelRegressionCertificate(0.0, 0.0)
    slope = float(np.linalg.norm(kernel / largest @ left))
    return KernelRegressionCertificate(
        remaining=float(np.linalg.norm(left)) / size, stationarity=slope / size
    )
