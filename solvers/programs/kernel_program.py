"""Max-margin programs of one group that are given by their kernel alone.

No features are formed and no eigenvalues computed: a point is a vector of multipliers, and what it
proves follows from a product with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from ..certificates.answer import Answer
from ..certificates.max_margin import Certificate, certificate_of
from ..certificates.solution import Solution
from ..certificates.status import Status
from ..numerics.arrays import Array, NotPositiveDefinite, cholesky_lower, is_sparse, scale_rows
from ..numerics.checks import require_finite, require_labels, require_scale
from ..numerics.memory import require_memory
from ..numerics.summation import rounding

# A kernel with eigenvalues further below zero, relative to its largest entry, is refused.
INDEFINITE = 1e-9
# Kernel, its signed copy, Newton matrix and factor.
MATRICES = 4


@dataclass(frozen=True, eq=False)
class KernelProgram:
    """Hard-margin program over the functions of a kernel.

        minimise    sqrt(a' K a)   subject to  y[n] (K a)[n] >= wanted[n]   for every n

    With Q the kernel of `y[n] phi(x[n]) / wanted[n]` its dual is

        maximise    sum_n lam[n]   subject to  lam >= 0,  sqrt(lam' Q lam) <= 1.

    Parameters
    ----------
    kernel : (n, n) float64 array, or csr_array of SciPy
        Symmetric; its symmetric part is used. Its entries count as exact.
    y : (n,) float64 array
        Labels in {-1, +1}.
    wanted : (n,) float64 array, optional
        Positive margins that are asked for; by default ones.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is not finite, the largest is beyond 1e304 or, if not zero,
        below 1e-304, a label is neither -1 nor +1, a margin that is asked for is not positive,
        memory cannot hold the program, or the kernel is indefinite beyond rounding.
    """

    kernel: Array
    y: np.ndarray
    wanted: np.ndarray | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.kernel.shape != (n, n) or self.y.shape != (n,) or n == 0:
            raise ValueError(
                f"`kernel` must have shape (n, n) for labels (n,), got {self.kernel.shape} and "
                f"{self.y.shape}"
            )
        require_finite("kernel", self.kernel)
        require_scale("kernel", self.kernel, power=2)
        require_labels(self.y)
        wanted = self.wanted
        if wanted is not None and not (
            wanted.shape == (n,) and np.all(wanted > 0) and np.all(np.isfinite(wanted))
        ):
            raise ValueError(f"`wanted` must hold {n} positive, finite margins")
        if is_sparse(self.kernel):
            _refuse_indefinite_sparse(self.kernel)
            return
        require_memory(MATRICES * n**2, f"the kernels of {n} samples", "take fewer samples")
        _refuse_indefinite(self.kernel)

    @property
    def signs(self) -> np.ndarray:
        """Labels over the margins asked for (n,): coefficients are these times multipliers."""
        return self.y if self.wanted is None else self.y / self.wanted

    @cached_property
    def signed(self) -> Array:
        """Kernel Q (n, n) of the signed features, sparse where the kernel is."""
        symmetric = 0.5 * (self.kernel + self.kernel.T)
        if is_sparse(symmetric):
            return scale_rows(scale_rows(symmetric, self.signs).T.tocsr(), self.signs)
        return np.asarray(symmetric * self.signs[:, None] * self.signs)

    def dense_rows(self) -> KernelProgram:
        """Return the program of the same kernel as a dense array.

        Raises
        ------
        ValueError
            If memory cannot hold it.
        """
        n = len(self.y)
        require_memory(MATRICES * n**2, f"the kernels of {n} samples", "take fewer samples")
        return KernelProgram(self.kernel.toarray(), self.y, self.wanted)


def _refuse_indefinite_sparse(kernel: Array) -> None:
    """Refuse a sparse kernel that diagonal dominance does not admit and Lanczos' method refutes."""
    sizes = np.asarray(abs(kernel).sum(axis=1))
    if np.all(2 * kernel.diagonal() >= sizes):
        return
    n, size = kernel.shape[0], float(np.abs(kernel.data).max())
    try:
        least = float(eigsh(kernel / size, k=1, which="SA", tol=1e-3, return_eigenvectors=False)[0])
    except (ArpackNoConvergence, TypeError):  # or so small that there is nothing to iterate
        _refuse_indefinite(kernel.toarray())
        return
    if least < -INDEFINITE * n:
        raise ValueError(NO_KERNEL)


NO_KERNEL = "`kernel` has eigenvalues below zero, beyond rounding: it is no kernel"


def _refuse_indefinite(kernel: np.ndarray) -> None:
    size = float(np.abs(kernel).max())
    shifted = (0.5 * (kernel + kernel.T)).T
    diagonal = np.einsum("nn->n", shifted)
    diagonal += INDEFINITE * len(kernel) * size + np.finfo(float).tiny
    try:
        cholesky_lower(shifted)
    except NotPositiveDefinite as error:
        raise ValueError(NO_KERNEL) from error


@dataclass(frozen=True, eq=False)
class KernelSolution(Answer):
    """Answer of `solve_kernel`, with its certificate.

    Attributes
    ----------
    dual : (n,) array
        Multipliers with `sqrt(lam' Q lam)` 1; with sum 1 if they prove inseparability.
    coefficients : (n,) array
        Coefficients of the function `sum_n coefficients[n] k(., x[n])`, with smallest margin 1 in
        units of those asked for, if the data were separated.
    margins : (n,) array
        Margins of that function over those asked for.
    status : Status
    certificate : Certificate
        See `certify_kernel`.
    tol, iterations, seconds, solver
        The gap asked for, and how the solve went.
    """

    ADVICE: ClassVar[Mapping[Status, str]] = Solution.ADVICE

    dual: np.ndarray
    coefficients: np.ndarray
    margins: np.ndarray
    status: Status
    certificate: Certificate
    tol: float
    iterations: int
    seconds: float
    solver: str = "kernel"


def certify_kernel(program: KernelProgram, lam: np.ndarray) -> Certificate:
    """Bound the optimum of a program of a positive semidefinite kernel by any multipliers.

    The function with coefficients `signs * lam` gives an upper bound of the optimum,
    `sqrt(lam' Q lam) / min (Q lam)`, and the multipliers `sum(lam) / sqrt(lam' Q lam)` as a lower
    one, rounding errors of both at their worst. `separation_bound` is `lam' Q lam` relative to the
    sum of the absolute values of its terms: if that is at most `separation_rounding`, a change of
    every entry of the kernel by so small a share of it makes lam a proof that no function
    separates.

    Parameters
    ----------
    program : KernelProgram
    lam : (n,) array
        Not negative, at any scale.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If `lam` has another shape or a negative entry.

    References
    ----------
    S. Boyd, L. Vandenberghe, "Convex Optimization", 2004, section 5.1 (weak duality).

    Examples
    --------
    With the kernel diag(4, 1) the optimum is the root of 1/4 + 1, at lam = (1/4, 1):

    >>> program = KernelProgram(np.diag([4.0, 1.0]), np.array([1.0, -1.0]))
    >>> round(certify_kernel(program, np.array([0.25, 1.0])).dual_objective ** 2, 9)
    1.25
    """
    n = len(program.y)
    if lam.shape != (n,) or not np.all(np.isfinite(lam)) or np.any(lam < 0):
        raise ValueError(f"`lam` must hold {n} finite multipliers that are not negative")
    Q, total = program.signed, float(lam.sum())
    if total == 0:
        return certificate_of((math.inf, -math.inf, 0.0), (0.0, 1.0))
    lam = lam / total
    products, sizes = Q @ lam, abs(Q) @ lam
    # Two roundings each: signs times the symmetric part of the kernel.
    lost = rounding(n + 6) * sizes
    terms = float(lam @ sizes)
    root = math.sqrt(float(lam @ products) + rounding(2 * n + 10) * terms)
    smallest, floor = float(products.min()), float((products - lost).min())
    objective = root / floor * (1 + rounding(4)) if floor > 0 else math.inf
    # The sum of the multipliers is one up to rounding.
    dual = (1 - rounding(n + 2)) / root * (1 - rounding(4)) if root > 0 else math.inf
    share = 1.0
    if not floor > 0:
        share = _exact_square(lam, Q) / terms if terms > 0 else 0.0
    return certificate_of((objective, smallest, smallest - floor), (dual, share))


def _exact_square(lam: np.ndarray, Q: Array) -> float:
    """Sum `lam' Q lam` in extended precision: terms cancel where nothing separates."""
    used = np.flatnonzero(lam)
    if is_sparse(Q):
        entries, long = Q.tocoo(), lam.astype(np.longdouble)
        rows, columns = entries.coords
        return max(float(np.sum(long[rows] * entries.data * long[columns])), 0.0)
    part = lam[used].astype(np.longdouble)
    return max(float(part @ (Q[np.ix_(used, used)].astype(np.longdouble) @ part)), 0.0)
