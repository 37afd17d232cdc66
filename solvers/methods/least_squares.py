"""Least squares of minimum norm: solved by the spectrum, certified without it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from ..certificates.answer import Answer
from ..certificates.html import FloatRecord
from ..certificates.status import Status
from ..numerics.arrays import Array, array_namespace, float_of
from ..numerics.checks import require_fraction, require_shape, require_tolerance
from ..programs.least_squares import (
    EPS,
    LeastSquaresProgram,
    MomentLeastSquares,
    Spectrum,
)


@dataclass(frozen=True)
class FitCertificate(FloatRecord):
    """Proved distance of coefficients from the minimiser of least norm of a least-squares program.

    Attributes
    ----------
    loss : float
        The objective at the coefficients; NaN where the targets' second moment is unknown.
    stationarity : float
        `||b - A c|| / (trace(A) ||c|| + sqrt(trace(A) <y^2>))`: changing the moments by this
        share of their size makes c a minimiser (`||b||` stands for the root if `<y^2>` is
        unknown). 0 for 0 / 0.
    null_share : float
        `||c - image(dual)|| / ||c||`: an upper bound of the share of c in the null space of A,
        which is its relative distance from the minimiser of least norm. 0 for 0 / 0.
    residual_curvature : float
        `||A r|| / (trace(A) ||r||)` of the residual `r = b - A c`; at rounding, the residual
        lies in the null space and nothing reduces it. `inf` for r = 0, 0 for A = 0.
    """

    loss: float
    stationarity: float
    null_share: float
    residual_curvature: float

    def proves_optimality(self, tol: float) -> bool:
        """True if c is the minimiser of least norm to the tolerance; NaN proves nothing."""
        return self.stationarity <= tol and self.null_share <= tol


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution(Answer):
    """Minimiser of least norm, with its spectrum and its certificate.

    Attributes
    ----------
    coefficients : (J, D) array
        `A^+ b`.
    spectrum : Spectrum
        A on its range, with the cut-off that was used.
    status : Status
    certificate : FitCertificate
        Recomputed from `coefficients` and `spectrum.dual`, without the spectrum.
    tol : float
        Tolerance to which the status was judged.
    seconds : float
        Wall-clock time of the solve.
    """

    ADVICE: ClassVar[Mapping[Status, str]] = MappingProxyType(
        {
            Status.SOLVED: (
                "solved: the normal equations hold and the coefficients lie in the range of the "
                "design, so they are the minimiser of least norm, to within tolerance"
            ),
            Status.INACCURATE: (
                "inaccurate: the normal equations or the minimum norm are missed by more than the "
                "tolerance. Directions of nearly zero variance decide here: move `rcond` off their "
                "eigenvalues, rescale the inputs, or raise `tol`"
            ),
        }
    )

    coefficients: Array
    spectrum: Spectrum
    status: Status
    certificate: FitCertificate
    tol: float
    seconds: float

    @property
    def loss(self) -> float:
        """Certified loss, at least 0: rounding can leave a perfect fit slightly below."""
        return 0.0 if self.certificate.loss < 0 else self.certificate.loss


def certify_fit(program: LeastSquaresProgram, V: Array, dual: Array) -> FitCertificate:
    """Measure how far coefficients are from the minimiser of least norm, whoever found them.

    Parameters
    ----------
    program : SampledLeastSquares or MomentLeastSquares
    V : (J, D) array
        Coefficients.
    dual : array
        Dual vector whose `program.image` should be V: (n,) of samples, (J, D) of moments.

    Returns
    -------
    FitCertificate

    Raises
    ------
    ValueError
        If `V` has another shape than the program's coefficients.

    References
    ----------
    G. H. Golub, C. F. Van Loan, "Matrix Computations", 2013, section 5.5: a minimiser lies in the
    range of A, as `image(dual)` does, exactly if it is the one of least norm.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import GatedDesign, SampledLeastSquares
    >>> design = GatedDesign(np.array([[1.0], [2.0]]), np.ones((2, 1)), np.zeros(1, dtype=np.int64))
    >>> program = SampledLeastSquares(design, np.array([1.0, 2.0]))
    >>> certify_fit(program, np.ones((1, 1)), np.array([0.4, 0.8])).proves_optimality(1e-15)
    True
    """
    require_shape("V", V, program.shape)
    trace, size = program.trace(), _norm(V)
    residual = program.residual(V)
    stuck = 0.0 if _norm(residual) > 0 else math.inf
    return FitCertificate(
        loss=program.loss(V),
        stationarity=_ratio(_norm(residual), trace * size + program.rhs_bound()),
        null_share=_ratio(_norm(V - program.image(dual)), size),
        residual_curvature=_ratio(
            _norm(program.product(residual)), trace * _norm(residual), empty=stuck
        ),
    )


def solve_least_squares(
    program: LeastSquaresProgram, *, rcond: float | None = None, tol: float = 1e-8
) -> LeastSquaresSolution:
    """Find the minimiser of least norm of a least-squares program, and certify it.

    Parameters
    ----------
    program : SampledLeastSquares or MomentLeastSquares
    rcond : float, optional
        Eigenvalues of A at or below this share of the largest count as zero, in [0, 1). By
        default what float64 resolves: `(max(n, J D) 2^-52)^2` from samples, whose singular
        values are the roots of the eigenvalues, `J D 2^-52` from moments.
    tol : float
        Tolerance to which stationarity and minimum norm are asked for, in (0, 1).

    Returns
    -------
    LeastSquaresSolution
        With coefficients (J, D), the spectrum of A and the status that the certificate proves.

    Raises
    ------
    ValueError
        If `rcond` or `tol` is out of range, or A is not positive semidefinite.

    References
    ----------
    G. H. Golub, C. F. Van Loan, "Matrix Computations", 2013, section 5.5 (minimum-norm solutions
    by the singular value decomposition).

    Examples
    --------
    Of all c with c_1 + c_2 = 2 the shortest is (1, 1):

    >>> import numpy as np
    >>> from solvers import GatedDesign, SampledLeastSquares
    >>> design = GatedDesign(np.ones((1, 2)), np.ones((1, 1)), np.zeros(1, dtype=np.int64))
    >>> program = SampledLeastSquares(design, np.array([2.0]))
    >>> solve_least_squares(program).require().coefficients.round(9).tolist()
    [[1.0, 1.0]]
    """
    if rcond is not None:
        require_fraction("rcond", rcond)
    require_tolerance(tol)
    start = time.perf_counter()
    spectrum = program.spectrum(rcond)
    xp = array_namespace(spectrum.basis)
    # C order: entry j D + d of the flat vector is coefficient d of column j.
    V = xp.reshape(spectrum.basis @ spectrum.minimiser, program.shape)
    certificate = certify_fit(program, V, spectrum.dual)
    return LeastSquaresSolution(
        coefficients=V,
        spectrum=spectrum,
        status=_status(program, certificate, tol),
        certificate=certificate,
        tol=tol,
        seconds=time.perf_counter() - start,
    )


def _status(program: LeastSquaresProgram, certificate: FitCertificate, tol: float) -> Status:
    rounding = math.prod(program.shape) * EPS
    # A negative mean square, by more than the rounding of the terms that cancel in it.
    impossible = certificate.loss < -tol * abs(_second_moment(program))
    if impossible or (
        not certificate.stationarity <= tol and certificate.residual_curvature <= rounding
    ):
        return Status.INCONSISTENT
    return Status.SOLVED if certificate.proves_optimality(tol) else Status.INACCURATE


def _second_moment(program: LeastSquaresProgram) -> float:
    return program.second_moment if isinstance(program, MomentLeastSquares) else 0.0


def _norm(array: Array) -> float:
    xp = array_namespace(array)
    return float_of(xp.linalg.vector_norm(array))


def _ratio(numerator: float, denominator: float, *, empty: float = 0.0) -> float:
    if denominator > 0:
        return numerator / denominator
    return empty if numerator == 0 else math.inf
