"""Two one-sided max-margin programs: the limit of ReLU networks on orthogonally separable data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Self, Unpack

import numpy as np

from ..._support.doors import door, parameters
from ..._support.kinds import fraction, signed
from ..._support.solve import (
    Array,
    ArrayLike,
    GatedDesign,
    MaxMarginProgram,
    Solution,
    Status,
    array_namespace,
    as_float64,
    certify,
    conclude,
    support_vectors,
    to_numpy,
    worst_status,
)
from ...data.arrays import checked_data
from ...data.made.orthants import is_orthogonally_separable
from ...limits.formulation import Formulation, Solving, solve_program
from ...limits.limit import Limit
from ...limits.literal import constant, labelled, max_margin
from .limit import LABELS, OneSidedSolution, OrthosepLimit

if TYPE_CHECKING:
    import cvxpy


class NotOrthogonallySeparable(UserWarning):
    """Warning: the data are not orthogonally separable, and the theorem does not cover them."""


@parameters(slope=fraction)
@dataclass(frozen=True)
class OrthogonallySeparable(Formulation[OrthosepLimit]):
    """The two one-sided max-margin programs, stated as one: they share no coefficient.

        minimise ||zeta[0]|| + ||zeta[1]||
        s.t.  <zeta[0], x[n]> >= 1 where y[n] = +1,   -<zeta[1], x[n]> >= 1 where y[n] = -1

    It is the frozen-gate ReLU program for the gates that neurons have in the extremal sectors:
    the first open on the positive samples, the second on the negative ones. The argument `gates`
    is not used. The variables of `literal` are w_positive = zeta[0] and w_negative = -zeta[1].

    With a slope a closed gate is that slope, and both vectors share all margins:

        y[n] (<zeta[0], x[n]> g[n, 0] + <zeta[1], x[n]> g[n, 1]) >= 1,   g = 1 or slope

    Parameters
    ----------
    slope : float
        Of the units where they are inactive, in [0, 1).

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", equations (3.6) and (3.7), with norms in place
    of their squares, so that the sum of both has the optima of each.

    Examples
    --------
    >>> X, y = np.array([[2.0, 0.0], [0.0, -4.0]]), np.array([1, -1])
    >>> problem = ib.programs.OrthogonallySeparable().literal(X, y)
    >>> round(float(problem.solve(solver="CLARABEL")), 6)
    0.75
    """

    name: ClassVar[str] = "one-sided SVMs"

    slope: float = 0.0

    @classmethod
    @door()
    def of(cls, limit: Limit) -> Self:
        """Return the formulation that a limit solves."""
        return cls(limit.slope if isinstance(limit, OrthosepLimit) else 0.0)

    @door()
    def program(self, X: Array, y: Array, gates: Array | None = None) -> MaxMarginProgram:
        """State the program: one gate column and one group per class, open on its samples.

        Parameters
        ----------
        X : (n, D) real array
            Inputs; NumPy array or torch tensor.
        y : (n,) array
            Labels in {-1, +1}.
        gates : None
            Not used.

        Returns
        -------
        MaxMarginProgram
            Its coefficients are zeta (2, D).

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite or labels are not -1 and +1.
        """
        checked_data(X, y)
        X = as_float64(X)
        xp = array_namespace(X)
        y = as_float64(y, like=X)
        own = xp.stack([xp.astype(y == label, X.dtype) for label in LABELS.values()], axis=1)
        Z = self.slope + (1 - self.slope) * own if self.slope else own
        group = xp.arange(len(LABELS), device=X.device)
        return MaxMarginProgram(design=GatedDesign(X=X, Z=Z, group=group), y=y)

    @door(label=signed)
    def one_sided(self, X: Array, y: Array, *, label: int) -> MaxMarginProgram:
        """State the program of one class: `minimise ||w||  s.t.  <w, x[n]> >= 1` on its samples.

        Margins of both classes are positive: `w_minus` points towards the negative samples.

        Parameters
        ----------
        X : (n, D) real array
            Inputs of both classes.
        y : (n,) array
            Labels in {-1, +1}.
        label : int
            The class, -1 or +1.

        Returns
        -------
        MaxMarginProgram
            Its coefficients are w (1, D).

        Raises
        ------
        ValueError
            If shapes disagree, values are not finite, labels are not -1 and +1, or no sample has
            this label.
        """
        both = self.program(X, y)
        if label not in LABELS.values():
            raise ValueError(f"`label` must be -1 or +1, got {label}")
        xp = array_namespace(both.y)
        (rows,) = xp.nonzero(both.y == label)
        if len(rows) == 0:
            raise ValueError(f"no sample has the label {label:+d}: its program has no constraints")
        X, ones = both.design.X[rows], xp.ones_like(both.y[rows])
        group = xp.zeros(1, dtype=xp.int64, device=X.device)
        return MaxMarginProgram(design=GatedDesign(X=X, Z=ones[:, None], group=group), y=ones)

    @door()
    def limit(
        self, program: MaxMarginProgram, solution: Solution, gates: Array | None = None
    ) -> OrthosepLimit:
        """Return the limit that a solution states, without the certificates of single classes."""
        shape = (len(LABELS), int(program.design.X.shape[1]))
        found = OrthosepLimit.from_solution(program, solution, shape)
        return replace(found, slope=self.slope) if self.slope else found

    @door()
    def certify(
        self, limit: Limit, X: Array, y: Array, gates: Array | None = None
    ) -> OrthosepLimit:
        """Return a limit with all but its coefficients and multipliers computed from the data.

        Parameters and errors are those of `Limit.certify`, which calls it.
        """
        found = super().certify(limit, X, y, gates)
        assert isinstance(limit, OrthosepLimit)
        if self.slope:
            return found
        program = self.program(X, y)
        effort = {part.label: part for part in limit.classes}
        parts = []
        for row, label in enumerate(LABELS.values()):
            own = program.y == label
            if bool(array_namespace(own).any(own)):
                known = effort.get(label)
                one_sided = self.one_sided(program.design.X, program.y, label=label)
                solution = conclude(
                    one_sided, label * found.zeta[row : row + 1], found.dual[own], tol=limit.tol,
                    iterations=0 if known is None else known.iterations,
                    seconds=0.0 if known is None else known.seconds, solver=limit.solver,
                )  # fmt: skip
                parts.append(_part(label, one_sided, solution))
        return replace(found, classes=tuple(parts))

    def _literal(
        self, cp: ModuleType, program: MaxMarginProgram, gates: Array | None
    ) -> cvxpy.Problem:
        X, y = to_numpy(program.design.X), to_numpy(program.y)
        if self.slope:
            w_plus, w_minus = (cp.Variable(X.shape[1], name=f"w_{name}") for name in LABELS)
            g = constant(program.design.Z, "g")
            scores = cp.multiply(g[:, 0], X @ w_plus) - cp.multiply(g[:, 1], X @ w_minus)
            return max_margin(cp.norm(w_plus, 2) + cp.norm(w_minus, 2), program.y, scores)
        norms, constraints = [], []
        for name, label in LABELS.items():
            w = cp.Variable(X.shape[1], name=f"w_{name}")
            norms.append(cp.norm(w, 2))
            if label in y:
                margins = constant(X[y == label], f"X_{name}") @ w
                constraints.append(labelled(margins >= 1, f"margins of {name} samples"))
        return cp.Problem(cp.Minimize(cp.sum(norms)), constraints)


@door(slope=fraction)
def solve_orthosep(
    X: ArrayLike, y: ArrayLike, *, slope: float = 0.0, **solving: Unpack[Solving]
) -> OrthosepLimit:
    """Solve for the limit direction of gradient flow from near zero on a two-layer ReLU network.

    A one-sided max-margin program is solved for each class that has samples. Every neuron that
    stays active on some sample converges in direction to `w_plus` (positive output weight) or
    `w_minus` (negative), and the network to `OrthosepLimit.limit_function`. That is a theorem for
    orthogonally separable data, small balanced initialisation and an exponential-like loss (a loss
    with a polynomial tail has another limit).

    The theorem is about ReLUs. On such data leaky units converge in direction to the two vectors of
    one program of both, the least norm over all widths, if neither kind vanishes beside the other:
    this package's own argument, in the notes.

    Parameters
    ----------
    X : (n, D) real array
        Inputs; NumPy array or torch tensor.
    y : (n,) array
        Labels in {-1, +1}.
    slope : float
        Of units where they are inactive, in [0, 1): above 0 they are leaky.
    **solving
        Solver, tolerance and iterations of each of the two programs, the fields of `Solving`.

    Returns
    -------
    OrthosepLimit
        With its certificate; call `.require()` to raise unless the status is `SOLVED`.
        `OrthogonallySeparable.literal` states the program in cvxpy.

    Raises
    ------
    TypeError, ValueError
        If shapes disagree, values are not finite, or labels are not -1 and +1.

    Warns
    -----
    NotOrthogonallySeparable
        If the data are not orthogonally separable: the programs are solved all the same, but
        the theorem does not apply.

    Notes
    -----
    Let ``y_i y_j <x_i, x_j> >= 0`` for all pairs, and 0 < slope < 1. Along gradient flow
    ``y_i sign(a_j) <w_j, x_i>`` never falls, so that in the limit of directions none is negative:
    positive units are active on the positive samples, and at a kink there is no multiplier. The
    units of a KKT point are therefore multiples of
    ``v_s = s sum_n lam_n y_n g_n x_n``, g_n = 1 on the samples of their sign s and the slope on
    others, of norm 1 where there are such units: the conditions of the program. No unit of any
    direction has a longer such vector, as all gates that could be chosen enter products that are
    not negative, and opposing ones may be bounded by the slope: no network of any width is below.

    References
    ----------
    M. Phuong, "Underspecification in Deep Learning", theorem 3.1 and corollary 3.1. KKT points:
    K. Lyu, J. Li, "Gradient descent maximizes the margin of homogeneous neural networks".

    Examples
    --------
    >>> limit = ib.solve_orthosep(np.array([[2.0, 0.0], [0.0, -4.0]]), np.array([1, -1]))
    >>> np.round(limit.w_plus, 6).tolist(), np.round(limit.w_minus, 6).tolist()
    ([0.5, 0.0], [0.0, -0.25])
    >>> round(limit.objective, 6), round(limit.limit_function().u, 6)
    (0.75, 0.666667)
    >>> leaky = ib.solve_orthosep(np.array([[2.0, 0.0], [0.0, -4.0]]), np.array([1, -1]), slope=0.5)
    >>> round(leaky.objective, 6)
    0.67082
    """
    formulation = OrthogonallySeparable(slope)
    program = formulation.program(X, y)
    separability = is_orthogonally_separable(program.design.X, program.y)
    if not separability:
        warnings.warn(
            f"the data are {separability.message}: the limit of theorem 3.1 may not apply",
            NotOrthogonallySeparable,
            stacklevel=3,
        )
    if slope:
        return formulation.limit(program, solve_program(program, **solving))
    xp = array_namespace(program.y)
    primal = program.dual_blocks(xp.zeros_like(program.y))
    dual = xp.zeros_like(program.y)
    parts, solutions = [], []
    for row, label in enumerate(LABELS.values()):
        own = program.y == label
        if not bool(xp.any(own)):
            continue
        one_sided = formulation.one_sided(program.design.X, program.y, label=label)
        solution = solve_program(one_sided, **solving)
        primal[row] = label * solution.primal[0]
        dual[own] = solution.dual
        parts.append(_part(label, one_sided, solution))
        solutions.append(solution)
    joined = _join(program, primal, dual, solutions)
    return replace(formulation.limit(program, joined), classes=tuple(parts))


def _join(
    program: MaxMarginProgram, primal: Array, dual: Array, solutions: list[Solution]
) -> Solution:
    """Return one solution of the joint program from those of its parts.

    Multipliers of the parts come with block norm 1 and so do those of the whole, whose gap is then
    a mean of theirs, to rounding: two solved parts may make a whole just above the tolerance. A
    proof of inseparability is a set of multipliers on one class alone, and holds for both.
    """
    status, tol = worst_status(solution.status for solution in solutions), solutions[0].tol
    if status is Status.NOT_SEPARABLE:
        for label, solution in zip(_labels(program), solutions, strict=True):
            if solution.status is not Status.NOT_SEPARABLE:
                dual[program.y == label] = 0.0
        dual = dual / array_namespace(dual).sum(dual)
    certificate = certify(program, primal, dual)
    if status is Status.SOLVED and not certificate.proves_optimality(tol):
        status = Status.INACCURATE
    return Solution(
        primal=primal,
        dual=dual,
        status=status,
        certificate=certificate,
        tol=tol,
        iterations=sum(solution.iterations for solution in solutions),
        seconds=sum(solution.seconds for solution in solutions),
        solver=solutions[0].solver,
    )


def _labels(program: MaxMarginProgram) -> list[int]:
    return [label for label in LABELS.values() if bool((program.y == label).any())]


def _part(label: int, program: MaxMarginProgram, solution: Solution) -> OneSidedSolution:
    support = to_numpy(support_vectors(program, solution.primal, solution.dual))
    vectors = to_numpy(program.design.X)[support]
    return OneSidedSolution(
        label=label,
        n_samples=program.n_samples,
        n_support=int(support.sum()),
        # Of no vectors NumPy 2.0 has no rank.
        support_rank=int(np.linalg.matrix_rank(vectors)) if len(vectors) else 0,
        status=solution.status,
        certificate=solution.certificate,
        iterations=solution.iterations,
        seconds=solution.seconds,
    )
