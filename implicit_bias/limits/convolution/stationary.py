"""Certified stationary points of the quasi-norm of frequencies, and the door to all depths."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, Unpack, cast, overload

import numpy as np
from scipy.linalg import null_space

from ..._support.doors import door, result
from ..._support.kinds import anything, count
from ..._support.solve import (
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Status,
    certify,
    require_shape,
    to_numpy,
)
from ...data.arrays import Floats
from ...data.groups import Group, Indices
from ..exact.linear import LinearPredictor
from ..formulation import Solving, solve_limit, solve_program
from ..result import Result, proved, size_of
from .frequencies import (
    ConvolutionLimit,
    FrequencyMargin,
    Places,
    fourier_columns,
    spectrum,
    unit_sizes,
)

# Convex programs of one search, and the share of the largest frequency that is 0.
PROGRAMS, DEAD = 100, 1e-7
# Relative step of the search at which Newton's method takes over.
NEAR = 1e-6
# Curvature, in its units, that is rounding.
FLAT = 1e-8


@result()
@dataclass(frozen=True)
class ConvolutionCertificate:
    """What is proved of a point in more than two layers, recomputed from its arrays.

    Attributes
    ----------
    objective : float
        ``||F b||_(2/L)`` over the smallest margin: an upper bound of the least.
    lower_bound : float
        Certified lower bound of the quasi-norm of every predictor of margin 1: the optimum of
        `FrequencyMargin` with as many layers.
    residual : float
        ``||grad - sum_n lam_n y_n x_n|| / ||grad||`` over the frequencies that are not 0, grad of
        the sum of ``|F b|^(2/L)``. At those that are 0 its slope is infinite: they ask nothing.
    smallest_multiplier : float
        Over the largest, among those of samples on the margin; negative if one is.
    curvature : float
        Least eigenvalue of the Hessian where all active margins stay, in units in which it is 1
        across the phase of a frequency and ``2/L - 1`` along its size. Infinite where nothing
        stays: the point is a vertex.
    """

    objective: float
    lower_bound: float
    residual: float
    smallest_multiplier: float
    curvature: float


class ConvolutionPoint(Result):
    """A stationary point of the quasi-norm of frequencies, with more than two layers.

    Attributes
    ----------
    zeta : (D,) array
        The predictor end to end, at smallest margin 1.
    dual : (n,) array
        Multipliers of the margins.
    bound_dual : (n,) array
        Multipliers that prove the lower bound.
    margins : (n,) array
    depth : int
    group : int array
        Sizes (k,) of circles.
    status : Status
        GLOBAL_OPTIMUM: it attains the lower bound. LOCAL_OPTIMUM: no predictor nearby has a smaller
        quasi-norm at this margin. SADDLE or FLAT: stationary, but not proved that. FAILED: the
        residual is above `tol`. NOT_SEPARABLE.
    certificate : ConvolutionCertificate
    programs : int
        Convex programs of the search.
    tol, seconds : float

    Examples
    --------
    >>> X, y = np.array([[3.0, 1.0, 0.0], [-1.0, -3.0, 0.0]]), np.array([1.0, -1.0])
    >>> point = ib.limits.solve_convolution(X, y, depth=3)
    >>> point.status.name, round(point.value, 6), round(point.certificate.lower_bound, 6)
    ('GLOBAL_OPTIMUM', 0.433013, 0.433013)
    """

    ADVICE: ClassVar = {
        Status.LOCAL_OPTIMUM: "local optimum: first-order conditions hold, and no predictor nearby "
        "has a smaller quasi-norm at this margin, in floating point. Others may be better: only "
        "the lower bound is of all",
        Status.SADDLE: "saddle: first-order conditions hold, and the quasi-norm falls along a "
        "direction in which all active margins stay. Give another `start`",
        Status.FLAT: "flat: first-order conditions hold, and second-order ones decide nothing",
        Status.FAILED: "failed: the residual is above `tol`. Give another `start`",
    }
    RECORD = ("n_samples", "n_live", "n_support")
    BRIEF = (
        "{status.name}, {depth} layers, {n_live} frequencies live\n"
        "  value {value:.10g}, no predictor below {certificate.lower_bound:.10g}\n"
        "  residual {residual:.2g}, smallest multiplier {certificate.smallest_multiplier:.2g}, "
        "curvature {certificate.curvature:.3g}\n"
        "  {programs} programs, {seconds:.3g} s"
    )

    zeta: Floats
    dual: Floats
    bound_dual: Floats
    margins: Floats
    depth: int
    group: Indices
    status: Status
    certificate: ConvolutionCertificate
    programs: int = field(kw_only=True)
    tol: float = field(kw_only=True)
    seconds: float = field(kw_only=True)

    value = proved("objective", "Quasi-norm of the frequencies at smallest margin 1.")
    residual = proved("residual", "Relative residual of the first-order conditions.")
    n_samples = size_of("dual", "Number of samples.")

    @property
    def n_support(self) -> int:
        """Number of samples with a multiplier."""
        return int(np.sum(self.dual > 0))

    @property
    def n_live(self) -> int:
        """Number of frequencies that are not 0, conjugate pairs as two."""
        sizes = self.spectrum
        return int(np.sum(sizes > DEAD * sizes.max()))

    @property
    def spectrum(self) -> Floats:
        """Sizes of the unitary Fourier transform, in the shape of the group."""
        return spectrum(self.zeta, self.group)

    @property
    def unit_norms(self) -> Floats:
        """What each frequency (H,) costs alone, a conjugate pair as one."""
        return unit_sizes(self.zeta, self.group, self.depth)

    @property
    def predictor(self) -> LinearPredictor:
        """The point as a function of new inputs, at smallest margin 1."""
        return LinearPredictor(self.zeta)

    @door()
    def certify(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Prove predictor and multipliers anew on the data, whoever found or stored them.

        Parameters
        ----------
        X : (n, D) array
        y : (n,) array
            Labels in {-1, +1}.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or of another number of samples or inputs.

        Examples
        --------
        >>> X, y = np.array([[3.0, 1.0, 0.0], [-1.0, -3.0, 0.0]]), np.array([1.0, -1.0])
        >>> point = ib.limits.solve_convolution(X, y, depth=3)
        >>> point.certify(X, y).status.name, point.certify(X + 0.1, y).status.name
        ('GLOBAL_OPTIMUM', 'FAILED')
        """
        problem = _Problem.of(X, y, self.depth, self.group)
        require_shape("y", problem.y, self.dual.shape, "the samples of the point")
        z = problem.parts(np.asarray(self.zeta, dtype=np.float64))
        how = {name: getattr(self, name) for name in ("programs", "tol", "seconds")}
        return cast("Self", problem.conclude(z, self.dual, self.bound_dual, **how))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Least ``sum_f c_f |z_f|^p`` at margins 1, z real and imaginary parts, one of each pair."""

    bound: MaxMarginProgram
    depth: int
    places: Group
    columns: Floats
    owner: Indices
    features: Floats
    unit: float

    @classmethod
    def of(cls, X: Any, y: Any, depth: int, group: Any) -> _Problem:
        X, y = (np.asarray(to_numpy(one), dtype=np.float64) for one in (X, y))
        FrequencyMargin(depth, group).program(X, y)  # which refuses what is out of range
        unit = 2.0 ** math.frexp(float(np.abs(X).max()))[1]
        bound = FrequencyMargin(depth, group).program(X / unit, y)
        places = Group.of(group, X.shape[1])
        columns, of = fourier_columns(places)
        return cls(bound, depth, places, columns, of, X / unit @ columns, unit)

    @property
    def y(self) -> Floats:
        return np.asarray(self.bound.y)

    @property
    def rows(self) -> Floats:
        """Margins as rows (n, D) of the parts."""
        return np.asarray(self.y[:, None] * self.features)

    @property
    def p(self) -> float:
        return 2 / self.depth

    @property
    def shares(self) -> Floats:
        """The factor c_f of each frequency: of a conjugate pair two of half the size."""
        return np.asarray(self.places.frequencies[1] ** (1 - self.p))

    def parts(self, beta: Floats) -> Floats:
        """Return the parts (D,) of a predictor, of inputs over `unit`."""
        require_shape("zeta", beta, (len(self.columns),), "a predictor of the inputs")
        return np.asarray(beta * self.unit @ self.columns / np.sum(self.columns**2, axis=0))

    def sizes(self, z: Floats) -> Floats:
        """Return ``|z_f|`` (H,)."""
        return np.sqrt(np.bincount(self.owner, z**2))

    def search(self, z: Floats, **solving: Any) -> tuple[Floats, Floats, int]:
        """Return parts and multipliers to which convex programs lead from z, and their number.

        Each minimises the tangent of the concave sum at the sizes before, which never rises.
        """
        programs, moved, lam = 0, math.inf, np.zeros(len(self.y))
        while programs < PROGRAMS and moved > NEAR:
            size = self.sizes(z)
            live = size > DEAD * size.max()
            kept, programs = live[self.owner], programs + 1
            slopes = self.shares[self.owner[kept]] * size[self.owner[kept]] ** (self.p - 1)
            group = (np.cumsum(live) - 1)[self.owner[kept]]
            ones = np.ones((len(self.y), 1))
            design = GatedDesign(ones, self.features[:, kept] / slopes, group)
            found = solve_program(MaxMarginProgram(design, self.y), **solving)
            if not found.certificate.proves_separability():
                raise ValueError("`start` must have frequencies that separate the data")
            before, z = z, np.zeros_like(z)
            z[kept] = np.ravel(found.primal) / slopes
            moved, lam = float(np.abs(z - before).max() / np.abs(z).max()), np.asarray(found.dual)
        return z, lam, programs

    def polish(self, z: Floats, lam: Floats) -> tuple[Floats, Floats]:
        """Return the point of Newton's method on the active samples and live frequencies."""
        active = np.flatnonzero(lam > 1e-6 * lam.max())
        kept = (self.sizes(z) > DEAD * self.sizes(z).max())[self.owner]
        A, x, mu = self.rows[np.ix_(active, np.flatnonzero(kept))], z[kept], lam[active]
        for _ in range(20):
            whole = np.zeros_like(z)
            whole[kept] = x
            slope, hessian = self.slope(whole)[kept], self.hessian(whole)[np.ix_(kept, kept)]
            matrix = np.block([[hessian, -A.T], [A, np.zeros((len(active),) * 2)]])
            right = np.concatenate([A.T @ mu - slope, 1 - A @ x])
            step = np.linalg.lstsq(matrix, right, rcond=None)[0]
            x, mu = x + step[: len(x)], mu + step[len(x) :]
            if np.abs(step[: len(x)]).max() <= 1e-14 * np.abs(x).max():
                break
        moved, multipliers = np.zeros_like(z), np.zeros_like(lam)
        moved[kept], multipliers[active] = x, mu
        return moved, multipliers

    def slope(self, z: Floats) -> Floats:
        """Return the gradient (D,) of the sum, 0 at frequencies that are 0."""
        size = self.sizes(z)
        live = size > DEAD * size.max()
        powers = np.zeros_like(size)
        powers[live] = self.p * self.shares[live] * size[live] ** (self.p - 2)
        return np.asarray(powers[self.owner] * z)

    def hessian(self, z: Floats) -> Floats:
        """Return the Hessian (D, D) of the sum, 0 at frequencies that are 0."""
        size, slope = self.sizes(z), self.slope(z)
        safe = np.where(size > 0, size, 1.0)[self.owner]
        same = self.owner[:, None] == self.owner
        across = np.divide(slope, z, out=np.zeros_like(z), where=z != 0)
        power = np.zeros_like(size)
        np.maximum.at(power, self.owner, across)
        radial = np.outer(z / safe, z / safe) * same * (self.p - 2)
        return np.asarray(power[self.owner][:, None] * (np.eye(len(z)) + radial))

    def conclude(self, z: Floats, lam: Floats, bound: Floats, **how: Any) -> ConvolutionPoint:
        """Return the point with all that is said of it recomputed from z and multipliers."""
        margins = self.rows @ z
        margin = float(margins.min())
        proof = certify(self.bound, dual=bound)
        zeta, lower = self.columns @ z / self.unit, proof.dual_objective / self.unit
        nothing = ConvolutionCertificate(math.inf, lower, math.inf, 0.0, 0.0)
        whole = ConvolutionPoint(
            zeta, lam, bound, margins, self.depth, self.places.stored, Status.FAILED, nothing, **how
        )
        if not margin > 0:
            status = Status.NOT_SEPARABLE if proof.proves_inseparability() else Status.FAILED
            return replace(whole, status=status)
        z, margins = z / margin, margins / margin
        size, slope = self.sizes(z), self.slope(z)
        value = float(np.sum(self.shares * size**self.p) ** (1 / self.p))
        lam = lam * float(slope @ z) / max(float(lam.sum()), 1e-300)  # <grad, z> = sum of lam
        live = (size > DEAD * size.max())[self.owner]
        missing = (slope - lam @ self.rows)[live]
        active = lam != 0
        slack = float(np.max(np.where(active, margins - 1, 0.0)))
        residual = max(float(np.linalg.norm(missing) / np.linalg.norm(slope)), slack)
        least = float(lam[active].min() / np.abs(lam).max()) if active.any() else 0.0
        units = (self.shares**-0.5 * np.where(size > 0, size, 1.0) ** (1 - self.p / 2))[self.owner]
        free = null_space((self.rows * units)[np.ix_(active, live)], rcond=1e-10)
        curved = (self.hessian(z) * np.outer(units, units) / self.p)[np.ix_(live, live)]
        curvature = float(np.linalg.eigvalsh(free.T @ curved @ free)[0]) if free.size else math.inf
        status = Status.FAILED
        if residual <= how["tol"] and least > 0:
            status = Status.LOCAL_OPTIMUM if curvature > FLAT else Status.SADDLE
            status = Status.FLAT if abs(curvature) <= FLAT else status
            if value <= proof.dual_objective * (1 + how["tol"]):
                status = Status.GLOBAL_OPTIMUM
        return replace(
            whole, zeta=zeta / margin, dual=lam, margins=margins, status=status,
            certificate=ConvolutionCertificate(
                value / self.unit, lower, residual, least, curvature
            ),
        )  # fmt: skip


@overload
def solve_convolution(
    X: ArrayLike, y: ArrayLike, depth: Literal[1, 2] = 2, group: Places = None,
    **solving: Unpack[Solving],
) -> ConvolutionLimit: ...  # fmt: skip
@overload
def solve_convolution(
    X: ArrayLike, y: ArrayLike, depth: int = 2, group: Places = None, *,
    start: ArrayLike | None = None, **solving: Unpack[Solving],
) -> ConvolutionLimit | ConvolutionPoint: ...  # fmt: skip
@door(depth=count(1), group=anything, start=anything)
def solve_convolution(
    X: ArrayLike,
    y: ArrayLike,
    depth: int = 2,
    group: Places = None,
    *,
    start: ArrayLike | None = None,
    **solving: Unpack[Solving],
) -> ConvolutionLimit | ConvolutionPoint:
    r"""Solve for the limit of linear convolutions as wide as the inputs, below a linear layer.

    .. math:: \min \|F b\|_{2/L} \quad \text{s.t.} \quad y_n \langle b, x_n \rangle \ge 1

    F is the unitary Fourier transform, and the least is
    :math:`(\|w\|^2 / L)^{L/2}` of all networks of L layers with margin 1 whose
    convolutions have the factor ``1 / sqrt(D)``. Without it, as torch has them, values are
    ``D^(-(L - 1) / 2)`` times these; the directions are the same.

    Parameters
    ----------
    X : (n, D) real array
        NumPy array or torch tensor, without a constant column, which has no place on a circle.
    y : (n,) array
        Labels in {-1, +1}.
    depth : int
        L: with 1 the norm is l2, with 2 l1, of which the optimum is proved. Beyond the problem is
        not convex: what is found is a stationary point, proved a strict local optimum where its
        status says so, and a convex program bounds all predictors from below.
    group : None, sequence of int, or (D, D) ints
        None is one circle; sizes are those of circles whose product the inputs are, in C order,
        such as ``(8, 8)`` of images; or the table of products of any finite group, entry (g, h) the
        number of g h, with up to two layers.
    start : (D,) array, optional
        With more than two layers a predictor, such as a trained network's, next to which the point
        is looked for; by default the optimum of the convex program.
    **solving
        `solver`, `tol`, `max_iterations`, `progress`, `threads`: see `Solving`.

    Returns
    -------
    ConvolutionLimit
        Of one or two layers, with its certificate; call `.require()` to insist on `SOLVED`.
        `FrequencyMargin.literal` states the program in cvxpy.
    ConvolutionPoint
        Of more layers, with its own certificate.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, the group has another number of elements than inputs have columns,
        or the start's frequencies do not separate the data.

    References
    ----------
    S. Gunasekar, J. D. Lee, D. Soudry, N. Srebro, "Implicit bias of gradient descent on linear
    convolutional networks", theorem 2 (two layers: the limit is this optimum; more: a first-order
    point); H. Lawrence, K. Georgiev, A. Dienes, B. T. Kiani, "Implicit bias of linear equivariant
    networks" (finite groups).

    Examples
    --------
    One sample: its largest frequency alone, of norm one over it.

    >>> x = np.array([[3.0, 1.0, 0.0, 0.0]])
    >>> limit = ib.limits.solve_convolution(x, [1.0])
    >>> round(limit.objective, 6), limit.zeta.round(6).tolist()
    (0.5, [0.25, 0.25, 0.25, 0.25])
    """
    if depth <= 2:
        if start is not None:
            raise ValueError(f"`start` is for more than two layers, got `depth` {depth}")
        return solve_limit(FrequencyMargin(depth, group), X, y, **solving)
    begin = time.perf_counter()
    problem = _Problem.of(X, y, depth, group)
    bound = solve_limit(FrequencyMargin(depth, group), X, y, **solving)
    bound_dual = np.asarray(to_numpy(bound.dual))
    beta = bound.zeta if start is None else start
    z, programs = problem.parts(np.asarray(to_numpy(beta), dtype=np.float64)), 1
    lam = bound_dual
    if bound.certificate.proves_separability():
        z, lam, searched = problem.search(z, **solving)
        z, lam = problem.polish(z, lam)
        programs += searched
    tol = solving.get("tol", 1e-8)
    how = {"programs": programs, "tol": tol, "seconds": time.perf_counter() - begin}
    return problem.conclude(z, lam, bound_dual, **how)
