"""The least norm of frequencies: the limit of full-width linear convolutional networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from ..._support.doors import door, parameters
from ..._support.kinds import anything, arrays, count
from ..._support.solve import (
    Array,
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Norm,
    NormProgram,
    Rows,
    Solution,
    array_namespace,
    as_float64,
    conclude_norm,
    require_inputs,
    solve_norm,
    to_numpy,
)
from ...data.arrays import Floats
from ...data.groups import Group, Indices, as_places
from ..exact.linear import HardMarginSVM, LinearPredictor
from ..formulation import Formulation, Solving, chosen, real_data
from ..limit import Limit
from ..literal import constant, max_margin

if TYPE_CHECKING:
    import cvxpy

Places = Sequence[int] | ArrayLike | None


class ConvolutionLimit(Limit):
    """The predictor of least norm of its frequencies; `zeta` has shape (D,).

    Units are frequencies, those of a conjugate pair as one; of one layer, and of a group known by
    its table, there is one unit, with the norm of all.

    Attributes
    ----------
    depth : int
        Layers of weights.
    group : int array
        Sizes (k,) of circles, or the table (D, D) of products.

    Examples
    --------
    >>> limit = ib.limits.solve_convolution([[3.0, 1.0], [-1.0, -3.0]], [1, -1])
    >>> limit.zeta.round(6).tolist(), limit.unit_norms.round(6).tolist()
    ([0.25, 0.25], [0.353553, 0.0])
    """

    FORMULATION: ClassVar[str] = "limits.convolution.frequencies:FrequencyMargin"

    depth: int
    group: Indices

    @property
    def predictor(self) -> LinearPredictor:
        """The limit as a function of new inputs, at smallest margin 1."""
        return LinearPredictor(self.zeta)

    @property
    def spectrum(self) -> Floats:
        """Sizes of the unitary Fourier transform, in the shape of the group.

        Of a group that is known by its table the singular values (D,) of the predictor as a matrix.
        """
        return spectrum(np.asarray(to_numpy(self.zeta)), self.group)

    def _norm(self) -> float:
        if self.depth == 1:
            return super()._norm()
        sizes = unit_sizes(np.asarray(to_numpy(self.zeta)), self.group, self.depth)
        return float(np.linalg.norm(sizes))


@parameters(depth=count(1), group=anything)
@dataclass(frozen=True, eq=False)
class FrequencyMargin(Formulation[ConvolutionLimit]):
    r"""The largest margin per l1 norm of frequencies.

        minimise  ||F b||_1   s.t.   y[n] <b, x[n]> >= 1,   F the unitary Fourier transform

    Sizes of complex frequencies are summed, so that it is a group lasso of their real and imaginary
    parts. With one layer the norm is ``||b||_2``. Beyond two the limit's quasi-norm
    ``||F b||_(2/L)`` is no less than the sum of what each real wave costs alone, ``|(F b)_f|`` of a
    frequency that is its own conjugate and ``2^(L/2) |(F b)_f|`` of a pair: the program is then
    this lower bound. Of a finite group that is known by its table the norm is the sum of the
    singular values of ``R(b) / sqrt(D)``, ``R(b)[g, h] = b[g^-1 h]``: on circles these are the
    sizes of frequencies.

    Parameters
    ----------
    depth : int
        Layers of weights; up to 2 of a group that is known by its table.
    group : None, sequence of int, or (D, D) ints
        See `solve_convolution`.

    References
    ----------
    S. Gunasekar, J. D. Lee, D. Soudry, N. Srebro, "Implicit bias of gradient descent on linear
    convolutional networks", theorem 2. Of groups H. Lawrence, K. Georgiev, A. Dienes, B. T. Kiani,
    "Implicit bias of linear equivariant networks". That the table's norm is that of irreducible
    representations: R contains each as often as it has dimensions.

    Examples
    --------
    >>> X, y = np.array([[3.0, 1.0], [-1.0, -3.0]]), np.array([1.0, -1.0])
    >>> round(ib.limits.solve_limit(ib.programs.FrequencyMargin(), X, y).objective, 6)
    0.353553
    """

    name: ClassVar[str] = "Fourier margin"

    depth: int = 2
    group: Places = None

    def __post_init__(self) -> None:
        if self.group is not None:
            as_places(self.group)

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation that a limit solves, over its group."""
        assert isinstance(limit, ConvolutionLimit)
        return cls(limit.depth, limit.group)

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """Build the program with the real and imaginary part of each frequency as its columns.

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or the group has
            another number of elements than inputs have columns.
        """
        X, y = real_data(X, y)
        require_inputs(X)
        group = Group.of(self.group, int(X.shape[1]))
        if self.depth > 2 and not group.sizes:
            raise ValueError(
                f"`depth` {self.depth} needs circles as its `group`: of a table of products the "
                "limit of two layers is known"
            )
        if self.depth == 1 or not group.sizes:
            return HardMarginSVM().program(X, y)
        columns, of = fourier_columns(group, self.depth)
        xp = array_namespace(X)
        design = GatedDesign(
            X=xp.ones_like(X[:, :1]),
            Z=X @ as_float64(columns, like=X),
            group=xp.asarray(of, device=X.device),
        )
        return MaxMarginProgram(design=design, y=y)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> ConvolutionLimit:
        """Read a solution as a predictor (D,)."""
        X, Z = program.design.X, program.design.Z
        D = int(max(X.shape[1], Z.shape[1]))
        group = Group.of(self.group, D)
        found = ConvolutionLimit.from_solution(
            program, solution, (D,), depth=self.depth, group=group.stored
        )
        if self.depth == 1:
            return found
        if not group.sizes:
            below = self._matrices(program).image.adjoint(np.asarray(to_numpy(solution.dual)))
            sizes = (found._norm(), Norm.of("spectral").value(below))
            total, largest = (as_float64(np.array([one]), like=found.zeta) for one in sizes)
            return replace(found, unit_norms=total, dual_norms=largest)
        columns, _ = fourier_columns(group, self.depth)
        return replace(found, zeta=as_float64(columns, like=found.zeta) @ found.zeta)

    @door()
    def coefficients(self, limit: Limit, program: MaxMarginProgram) -> Array:
        """Return the frequencies' real and imaginary parts (D, 1), or the predictor (1, D).

        Raises
        ------
        ValueError
            If the limit is of other sizes.
        """
        design = program.design
        D = int(max(design.X.shape[1], design.Z.shape[1]))
        if tuple(limit.zeta.shape) != (D,):
            raise ValueError(
                f"`X` has {D} columns, and the limit's coefficients {tuple(limit.zeta.shape)}: "
                "give the data that it was solved on"
            )
        if int(design.X.shape[1]) == D:
            return limit.zeta[None, :]
        columns, _ = fourier_columns(Group.of(self.group, D), self.depth)
        inverse = (columns / np.sum(columns**2, axis=0)).T
        return (as_float64(inverse, like=limit.zeta) @ limit.zeta)[:, None]

    @door(gates=arrays)
    def certify(
        self, limit: Limit, X: Array, y: Array, gates: Array | None = None
    ) -> ConvolutionLimit:
        """Return a limit with all but its coefficients and multipliers computed from the data.

        Parameters and errors are those of `Limit.certify`, which calls it.
        """
        D = int(np.shape(X)[-1]) if np.ndim(X) == 2 else 0
        if D and D != len(limit.zeta):
            raise ValueError(
                f"`X` has {D} columns, and the limit {len(limit.zeta)} coefficients: give the data "
                "that it was solved on"
            )
        return super().certify(limit, X, y)

    def _solve(self, program: MaxMarginProgram, **solving: Unpack[Solving]) -> Solution:
        if not self._by_table(program):
            return super()._solve(program, **solving)
        solver, settings = chosen(**solving)
        found = solve_norm(self._matrices(program), solver=solver, settings=settings)
        # The mean over places of one quotient loses no margin and adds nothing to the norm.
        D = len(found.primal)
        quotients = Group.of(self.group, D).quotients.ravel()
        zeta = np.bincount(quotients, found.primal.ravel(), D) / math.sqrt(D)
        how = {name: getattr(found, name) for name in ("tol", "solver", "iterations", "seconds")}
        return self._conclude(program, zeta[None, :], found.dual, how)

    def _conclude(
        self, program: MaxMarginProgram, primal: Array, dual: Array, how: dict[str, Any]
    ) -> Solution:
        if not self._by_table(program):
            return super()._conclude(program, primal, dual, how)
        zeta = np.asarray(to_numpy(primal)).ravel()
        matrix = zeta[Group.of(self.group, len(zeta)).quotients] / math.sqrt(len(zeta))
        found = conclude_norm(self._matrices(program), matrix, np.asarray(to_numpy(dual)), **how)
        size = float(np.abs(matrix).max()) or 1.0
        scale = float(np.abs(found.primal).max()) / size
        return replace(
            found,
            primal=as_float64(scale * zeta[None, :], like=program.y),
            dual=as_float64(found.dual, like=program.y),
        )

    def _by_table(self, program: MaxMarginProgram) -> bool:
        return self.depth > 1 and int(program.design.X.shape[1]) > 1

    def _matrices(self, program: MaxMarginProgram) -> NormProgram:
        """The program of matrices (D, D) whose sum of singular values is least."""
        X, y = np.asarray(to_numpy(program.design.X)), np.asarray(to_numpy(program.y))
        quotients = Group.of(self.group, X.shape[1]).quotients
        rows = y[:, None, None] * X[:, quotients] / math.sqrt(X.shape[1])
        return NormProgram(Rows(rows), Norm.of("nuclear"))

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        design, y = program.design, program.y
        if self.depth == 1:
            return HardMarginSVM().literal(design.X, y)
        if not self._by_table(program):
            phi, of = constant(design.Z, "phi"), np.asarray(to_numpy(design.group))
            z = cp.Variable(phi.shape[1], name="z")
            sizes = [cp.norm(z[np.flatnonzero(of == f)], 2) for f in range(of.max() + 1)]
            return max_margin(cp.sum(sizes), y, phi @ z)
        X = constant(design.X, "X")
        b = cp.Variable(X.shape[1], name="b")
        quotients = Group.of(self.group, X.shape[1]).quotients
        matrix = cp.reshape(b[quotients.ravel()], quotients.shape, order="C")
        return max_margin(cp.normNuc(matrix) / math.sqrt(len(quotients)), y, X @ b)


def spectrum(beta: Floats, group: Indices) -> Floats:
    """Return the sizes of the unitary Fourier transform of a predictor (D,).

    In the shape of circles; of a table of products the singular values (D,) as a matrix.
    """
    known = Group.of(group, len(beta))
    if known.sizes:
        return np.asarray(np.abs(np.fft.fftn(beta.reshape(known.sizes), norm="ortho")))
    values = np.linalg.svd(beta[known.quotients], compute_uv=False)
    return np.asarray(values / math.sqrt(len(beta)), dtype=np.float64)


def unit_sizes(beta: Floats, group: Indices, depth: int) -> Floats:
    """Return what each frequency (H,) of a predictor costs, a conjugate pair as one.

    Of a table of products the sum of the singular values (1,).
    """
    values = spectrum(beta, group).ravel()
    if np.ndim(group) == 2:
        return np.array([values.sum()])
    kept, number = Group.of(group, len(beta)).frequencies
    return np.asarray(values[kept] * number ** (depth / 2))


def fourier_columns(group: Group, depth: int = 2) -> tuple[Floats, Any]:
    """Return the columns (D, D) of real and imaginary parts of a product of circles.

    Parameters
    ----------
    group : Group
        Of D elements, with sizes.
    depth : int
        L: columns of pairs are over ``2^(L/2 - 1)``.

    Returns
    -------
    (D, D) array
        ``x @ columns`` are the parts of the unitary transform of x, one conjugate of each pair.
    (D,) int array
        Which of the frequencies each column belongs to.
    """
    kept, number = group.frequencies
    places = np.indices(group.sizes).reshape(len(group.sizes), -1)
    turns = sum(
        np.outer(place, place[kept]) % size / size
        for place, size in zip(places, group.sizes, strict=True)
    )
    waves = np.exp(-2j * np.pi * turns) / math.sqrt(len(group.quotients))
    columns = np.concatenate([waves.real, waves.imag[:, number == 2]], axis=1)
    every = np.arange(len(kept))
    of = np.concatenate([every, every[number == 2]])
    return columns / number[of] ** (depth / 2 - 1), of
