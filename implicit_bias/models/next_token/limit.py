"""The limit of a linear decoder of next tokens: a finite part, and a direction beside it."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door
from ..._support.kinds import anything
from ..._support.solve import (
    Norm,
    NormName,
    NormProgram,
    Rows,
    Solution,
    Status,
    certify_norm,
    conclude_norm,
    require_shape,
    solver_of,
    split_rows,
)
from ...data.arrays import Floats
from ...limits.exact.split import RESOLUTION, SplitLimit, no_direction, solve_direction
from ...limits.formulation import Solving, chosen
from ...quantities.definition import Quantity
from .tokens import ARRAYS, TokenCounts, TokenMargins

# Share of the log-odds that may be left of equations that have a solution.
SOLVABLE = 1e-9


class NextTokenLimit(SplitLimit):
    """The limit of gradient descent on a linear decoder W of contexts and their next tokens.

    W goes to `t zeta + finite`, t growing without end. The pairs (j, v) below are of a context and
    another token than its likeliest one: margins are by how much that one's score is above v's.

    Attributes
    ----------
    zeta : (V, D) array
        The direction: least norm, margins of at least 1 over tokens out of support, equal scores in
        support. Zeros where every token follows every context: nothing grows then.
    finite : (V, D) array
        The finite part, in the span F of `(e_z - e_z') h_j'` of tokens in support: the minimiser of
        their cross-entropy. Zeros with one token a context: F is empty.
    separable : (m, V) boolean array
        Pairs out of support whose margin grows: all of them if the contexts are separable.
    dual : (m, V) array
        Multipliers of the direction: not negative where separable, of any sign at the others.
    split_dual : (m, V) array
        Where pairs out of support cannot grow, multipliers that prove it: positive at these, of any
        sign in support. Zeros otherwise.
    split_bound : float
        What is left of their sum relative to its terms; a proof if at most 2^-52.
    finite_error : float
        A bound of the distance of `finite` from the minimiser, by gradient and lowest curvature,
        relative to `finite` where that is longer than 1.
    norm : str
        Norm of the direction. That gradient descent goes there is known for "l2".
    status : Status
        SOLVED if the split is proved, and both the direction's gap and `finite_error` are within
        `tol`.
    certificate : Certificate
        Bounds of the direction's norm.
    in_support : (m, V) boolean array
        Tokens that follow each context.
    rank : int
        Dimension of F.
    log_odds_error : float
        Largest distance of a difference of scores in support from the log-odds, at `finite`.
    compatible : bool
        Whether the log-odds equations have a solution; `finite` solves them then.
    entropy : float
        Of the tokens given their contexts, in nats: no loss is below it.
    excess : float
        The loss's limit above the entropy: 0 where it goes there.
    tol, solver, iterations, seconds
        The gap asked for and how the solve of the direction went.

    Examples
    --------
    >>> limit = ib.limits.solve_next_token(np.eye(2), [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    >>> limit.status.name, limit.compatible, limit.zeta.round(6).tolist()
    ('SOLVED', True, [[0.333333, -0.666667], [0.333333, 0.333333], [-0.666667, 0.333333]])
    """

    ROW: ClassVar = {
        "objective": "objective", "lower_bound": "dual_objective", "gap": "gap",
        "iterations": "iterations", "limit_seconds": "seconds",
    }  # fmt: skip
    SCREEN = ("status", "objective", "lower_bound", "gap", "limit_seconds")
    TITLE, HEADS = "prediction", ("", "{}")
    LINES = (
        "status", "objective", "lower_bound", "gap",
        Quantity("n_separable", "tokens out of support that part", "d"),
        Quantity("n_equal", "equalities in support", "d"),
        Quantity("rank", "  dimension of their span", "d"),
        Quantity("n_stuck", "tokens out of support that cannot part", "d"),
        Quantity("finite_error", "error of the finite part, at most", ".1e"),
        Quantity("log_odds_error", "log-odds missed by at most", ".1e"),
        Quantity("entropy", "entropy, in nats", ".6f"),
        Quantity("excess", "loss's limit above it", ".3g"),
        "iterations", "limit_seconds",
    )  # fmt: skip
    RECORD = (*SplitLimit.RECORD, "n_equal", "n_stuck")
    BRIEF = (
        "{status.name}{_because}, {norm}, decoder {_sizes}\n"
        "  {n_separable} tokens out of support part, {n_stuck} do not; {n_equal} equalities\n"
        "  direction in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  finite part of norm {_finite_norm:.6g} in {rank} dimensions, error at most "
        "{finite_error:.1g}\n"
        "  log-odds missed by {log_odds_error:.2g}; entropy {entropy:.6g}, the loss ends "
        "{excess:.2g} above"
    )

    in_support: NDArray[np.bool_]
    rank: int
    log_odds_error: float
    compatible: bool
    entropy: float
    excess: float

    @property
    def n_equal(self) -> int:
        """Number of independent equalities of scores, one less than tokens in support each."""
        return int(self.in_support.sum()) - len(self.in_support)

    @property
    def n_stuck(self) -> int:
        """Number of pairs out of support whose margin cannot grow."""
        return self.n_contradictory - self.n_equal

    @property
    def remark(self) -> str:
        """What these contexts have not: several tokens in support, any out of it, or room."""
        if self.n_equal == 0:
            return "one token follows each context, there is no finite part"
        if self.n_equal == self.n_contradictory and not self.n_separable:
            return "every token follows every context, nothing grows without end"
        return f"{self.n_stuck} tokens out of support cannot part" if self.n_stuck else ""

    @door(**ARRAYS)
    def certify(
        self, contexts: Floats, probabilities: Floats, weights: Floats | None = None
    ) -> NextTokenLimit:
        """Prove both parts anew on the data, whoever found or stored them.

        Parameters
        ----------
        contexts : (m, D) array
        probabilities : (m, V) array
        weights : (m,) array, optional

        Returns
        -------
        NextTokenLimit
            With status, bounds and errors computed from these data, to the same tolerance.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed, or the limit is of other sizes.

        Examples
        --------
        >>> contexts, p = np.eye(2), np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
        >>> limit = ib.limits.solve_next_token(contexts, p)
        >>> limit.certify(contexts, p).status.name, limit.certify(contexts, p[::-1]).status.name
        ('SOLVED', 'UNDECIDED')
        """
        data = TokenMargins(TokenCounts(contexts, probabilities, weights))
        require_shape("zeta", self.zeta, data.image.shape, "tokens x inputs of these data")
        require_shape("separable", self.separable, data.in_support.shape, "contexts x tokens")
        wrong = data.image.wrong
        apart, dual, split_dual = self.separable[wrong], self.dual[wrong], self.split_dual[wrong]
        apart = apart & ~data.equal
        found: Solution = no_direction(data.rows, self.tol, self.solver)
        if apart.any():
            E = None if apart.all() else Rows(data.rows[~apart])
            program = NormProgram(Rows(data.rows[apart]), Norm.of(self.norm), E)
            points = self.zeta, dual[apart], dual[~apart]
            found = conclude_norm(program, *points, **self._how)
        return _judged(data, self.norm, found, apart, dual, split_dual, self.finite)


@door(norm=anything, **ARRAYS)
def solve_next_token(
    contexts: Floats,
    probabilities: Floats,
    weights: Floats | None = None,
    *,
    norm: Norm | NormName = "l2",
    **solving: Unpack[Solving],
) -> NextTokenLimit:
    r"""Solve for the limit of a linear decoder W of next tokens, trained on cross-entropy.

    With S_j the tokens in support of context h_j, the direction is

    .. math:: \min N(W) \quad \text{s.t.} \quad \langle w_z - w_v, h_j \rangle \ge 1, \;
              \langle w_z - w_{z'}, h_j \rangle = 0 \qquad z, z' \in S_j, \; v \notin S_j

    and the finite part the minimiser, in the span of the equalities, of the loss in support

    .. math:: \sum_j \pi_j \sum_{z \in S_j} p_{jz}
              \log \sum_{z' \in S_j} e^{\langle w_{z'} - w_z, h_j \rangle},

    under which scores in support differ by the log-odds, where these equations have a solution.
    Tokens out of support that cannot be separated stay in the loss of the finite part, and have
    equal scores in the direction, as those in support.

    Parameters
    ----------
    contexts : (m, D) array
        Embeddings of distinct contexts.
    probabilities : (m, V) array
        Chances of the tokens after each, rows of sum 1. Rows with one token are hard labels, rows
        without a 0 have nothing to separate.
    weights : (m,) array, optional
        Shares of the contexts, positive at any scale. The direction does not depend on them, the
        finite part only where the log-odds equations have no solution.
    norm : str or Norm
        See `Norm.of`.
    **solving
        `solver`, by default the best for the norm, `tol`, `max_iterations`, `progress`, `threads`:
        see `Solving`.

    Returns
    -------
    NextTokenLimit

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, or the norm or solver does not take the program.

    References
    ----------
    C. Thrampoulidis, "Implicit optimization bias of next-token prediction in linear models", 2024,
    theorem 2 with definitions 1 to 3 ("l2", contexts that are compatible and separable); Z. Ji,
    M. Telgarsky, "The implicit bias of gradient descent on nonseparable data", 2019, whose argument
    covers the other cases.

    Examples
    --------
    >>> limit = ib.limits.solve_next_token([[1.0, 0.0]], [[0.2, 0.8, 0.0]])
    >>> scores = np.array([[1.0, 0.0]]) @ limit.finite.T
    >>> float(np.exp(scores[0, 1] - scores[0, 0]).round(6)), limit.n_equal, limit.n_separable
    (4.0, 1, 1)
    """
    data = TokenMargins(TokenCounts(contexts, probabilities, weights))
    wanted = Norm.of(norm)
    wanted.value(np.ones(data.image.shape))  # that it is one of such coefficients
    solver, settings = chosen(**({"solver": solver_of(wanted)} | solving))  # type: ignore[arg-type]
    apart, split_dual = ~data.equal, np.zeros(len(data.equal))
    found, dual = solve_direction(data.rows, apart, wanted, solver=solver, settings=settings)
    if found.status not in (Status.SOLVED, Status.INACCURATE):  # some margins cannot grow
        split = split_rows(Rows(data.rows[apart]), data.equalities)
        split_dual[apart], split_dual[~apart] = split.multipliers, split.equality_multipliers
        apart[apart] = split.separable
        found, dual = solve_direction(data.rows, apart, wanted, solver=solver, settings=settings)
    loss = data.loss(~apart)
    finite = loss.weights_of(loss.minimiser()).reshape(data.image.shape)
    return _judged(data, wanted.name, found, apart, dual, split_dual, finite)


def _judged(
    data: TokenMargins,
    norm: NormName,
    found: Solution,
    apart: NDArray[np.bool_],
    dual: Floats,
    split_dual: Floats,
    finite: Floats,
) -> NextTokenLimit:
    """Measure all that is said of a direction and a finite part, from the data alone."""
    image, loss, equal = data.image, data.loss(~apart), data.equal
    u = loss.basis @ finite.ravel()
    off_span = float(np.linalg.norm(finite.ravel() - loss.weights_of(u)))
    error = loss.error(u) + off_span / max(float(np.linalg.norm(u)), 1.0)
    rows, odds = data.rows[equal].reshape(len(data.log_odds), finite.size), data.log_odds
    missed, off = (
        float(np.abs(rows @ W - odds).max(initial=0.0))
        for W in (np.linalg.lstsq(rows, odds, rcond=None)[0], finite.ravel())
    )
    bound = _split_bound(data, apart, split_dual)
    status = found.status if bound <= RESOLUTION else Status.UNDECIDED
    if status is Status.SOLVED and not error <= found.tol:
        status = Status.INACCURATE
    return NextTokenLimit.read(
        found,
        zeta=found.primal.reshape(image.shape),
        finite=finite,
        separable=image.pairs(apart.astype(float)) > 0,
        dual=image.pairs(dual),
        split_dual=image.pairs(split_dual),
        split_bound=bound,
        finite_error=error,
        norm=norm,
        status=status,
        in_support=data.in_support,
        rank=len(u),
        log_odds_error=off,
        compatible=bool(missed <= SOLVABLE * (1 + np.abs(odds).max(initial=0.0))),
        entropy=float(data.counts.shares @ data.counts.entropies),
        excess=data.excess(finite, ~apart),
    )


def _split_bound(data: TokenMargins, apart: NDArray[np.bool_], multipliers: Floats) -> float:
    """Return what is left of a sum that proves that no other margins than these can grow."""
    stuck = ~apart & ~data.equal
    if not stuck.any():
        return 0.0
    if not multipliers[stuck].min() > 0:
        return 1.0
    program = NormProgram(Rows(data.rows[stuck]), Norm(), data.equalities)
    nu = multipliers[data.equal]
    return certify_norm(program, None, multipliers[stuck], nu).separation_bound
