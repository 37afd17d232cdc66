"""The max-margin program of selected tokens: the limit of one layer of softmax attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from ..._support.doors import door, parameters
from ..._support.kinds import anything
from ..._support.solve import (
    ArrayLike,
    Norm,
    NormName,
    NormProgram,
    NormSolution,
    Rows,
    Status,
    conclude_norm,
    norm_expression,
    require_real,
    require_scale,
    require_shape,
    solve_norm,
    solver_of,
    to_numpy,
)
from ...data.arrays import Floats
from ...data.tokens import TokenData, token_data
from ..formulation import Solving, chosen
from ..literal import LiteralProgram, constant, cvxpy_module, labelled
from ..result import SeparatingLimit

if TYPE_CHECKING:
    import cvxpy

Tokens = NDArray[np.int64]
# Gap up to which margins are those of the optimum.
NEAR = 1e-5


@parameters(norm=anything)
@dataclass(frozen=True)
class TokenMargin(LiteralProgram):
    """The attention SVM of chosen tokens a[n]: their logits are above those of lower scores.

        minimise  N(W)   s.t.   <x[n, a[n]] - x[n, t], W z[n]> >= 1
        for every n and t with score[n, t] < score[n, a[n]]

    Tokens of scores not below the chosen one's have no row. Where training selects the tokens a,
    better ones have margins above 1 in the solution: it then solves the papers' program as well,
    which has rows for all other tokens. The loss does not tell tokens of one score apart.

    Parameters
    ----------
    norm : str or Norm
        N, of a matrix (d, q): "l2" of W trained as one matrix, "nuclear" of W = K Q'.

    References
    ----------
    D. A. Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak, "Transformers as support vector machines",
    arXiv 2308.16898.
    """

    name: ClassVar[str] = "attention SVM"

    norm: Norm | NormName = "l2"

    def __post_init__(self) -> None:
        Norm.of(self.norm)

    def _program(self, data: TokenData, tokens: Tokens) -> NormProgram:
        """State the program of checked data and tokens (n,)."""
        ahead = data.X[np.arange(len(tokens)), tokens][:, None] - data.X
        n, t = np.nonzero(lower(data, tokens))
        rows = ahead[n, t][:, :, None] * data.queries[n][:, None, :]
        require_scale("X` times `queries", rows)
        return NormProgram(Rows(rows), Norm.of(self.norm))

    @door()
    def literal(
        self,
        X: ArrayLike,
        queries: ArrayLike | None,
        scores: ArrayLike,
        tokens: ArrayLike | None = None,
    ) -> cvxpy.Problem:
        """State the program; its variable is W (d, q), each constraint about one token of each.

        Parameters
        ----------
        X : (n, T, d) real array
        queries : (n, q) real array or None
        scores : (n, T) real array
        tokens : (n,) ints, optional
            The best of each sequence by default.

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        TypeError, ValueError
            As `solve_token_svm`.
        MissingExtra
            If cvxpy is not installed.

        Examples
        --------
        >>> problem = ib.programs.TokenMargin().literal(np.eye(2)[None], [[1.0]], [[1.0, 0.0]])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        0.707107
        """
        cp = cvxpy_module()
        data = token_data(X, queries, scores)
        a = chosen_tokens(data, tokens)
        below = lower(data, a)
        W = cp.Variable((data.X.shape[2], data.queries.shape[1]), name="W")
        z = constant(data.queries, "z")

        def logit(x: Floats, name: str) -> cvxpy.Expression:
            """Logits (n,) of one token of every sequence."""
            return cp.sum(cp.multiply(constant(x, name) @ W, z), axis=1)

        own = logit(data.X[np.arange(len(a)), a], "x_a")
        margins = [
            labelled((own - logit(data.X[:, t], f"x_{t}"))[rows] >= 1, f"margins over token {t}")
            for t, rows in enumerate(map(np.flatnonzero, below.T))
            if len(rows) > 0
        ]
        norm, stated = norm_expression(Norm.of(self.norm), [W])
        return cp.Problem(cp.Minimize(norm), margins + stated)


def lower(data: TokenData, tokens: Tokens) -> NDArray[np.bool_]:
    """Return which tokens (n, T) have a score below the chosen one's."""
    own = data.scores[np.arange(len(tokens)), tokens]
    return np.asarray(data.scores < own[:, None])


def chosen_tokens(data: TokenData, tokens: ArrayLike | None) -> Tokens:
    """Return chosen tokens (n,) as integers, by default the best of each sequence.

    Raises
    ------
    TypeError, ValueError
        If they are no numbers of tokens, two are the best of a sequence where none is named, or
        none is above any other.
    """
    if tokens is None:
        ties = np.flatnonzero((data.scores == data.scores.max(axis=1, keepdims=True)).sum(1) > 1)
        if len(ties):
            raise ValueError(
                f"`scores` must have one best token in every sequence, and two of sequence "
                f"{ties[0]} have the score {data.scores[ties[0]].max():g}: name one of them in "
                "`tokens`"
            )
        return data.best
    require_real("tokens", tokens)
    given = np.asarray(to_numpy(tokens))
    require_shape("tokens", given, data.X.shape[:1], "one token a sequence")
    T = data.X.shape[1]
    if not np.all((given == np.floor(given)) & (given >= 0) & (given < T)):
        raise ValueError(
            f"`tokens` must be whole numbers from 0 to {T - 1}, got values from {given.min():g} to "
            f"{given.max():g}"
        )
    if not lower(data, given.astype(np.int64)).any():
        raise ValueError("`tokens` must be above another token somewhere, and all are the worst")
    return given.astype(np.int64)


class TokenLimit(SeparatingLimit):
    """The max-margin solution of chosen tokens, in the norm of a parametrisation and an optimiser.

    Attributes
    ----------
    zeta : (d, q) array
        W at smallest margin 1.
    dual : (n, T) array
        Multipliers of the margins, 0 where there is none; with sum 1 where they prove
        inseparability.
    margins : (n,) array
        By how much the logit of the chosen token is above the largest of those of lower scores;
        infinite where none is lower.
    support : (n, T) boolean array
        Tokens that support: multiplier, relative to the largest, above the slack.
    tokens : (n,) ints
        The chosen tokens.
    better_margin : float
        The least margin over a token whose score is above the chosen one's; infinite if there is
        none.
    norm : str
        Name of the norm that is least: see `Norm.of`.
    status : Status
    certificate : Certificate
        Bounds of the optimum, recomputed from `zeta` and `dual`.
    tol, solver, iterations, seconds
        The gap asked for and how the solve went.

    Examples
    --------
    >>> limit = ib.limits.solve_token_svm(np.eye(2)[None], [[1.0]], [[1.0, 0.0]])
    >>> limit.status.name, limit.zeta.round(6).tolist(), limit.is_local
    ('SOLVED', [[0.5], [-0.5]], True)
    """

    RECORD = (
        *SeparatingLimit.RECORD, "n_support", "n_tokens", "is_local", "rank", "tokens",
    )  # fmt: skip
    BRIEF = (
        "{status.name}, {norm}, coefficients {_sizes} of rank {rank}\n"
        "  optimum in [{dual_objective:.10g}, {objective:.10g}], gap {gap:.2g} (tol {tol:.2g})\n"
        "  {n_support} support tokens of {n_samples} sequences of {n_tokens}\n"
        "  least margin of a better token {better_margin:.6g}: {_local}\n"
        "  {solver}, {iterations} iterations, {seconds:.3g} s"
    )
    ROW: ClassVar = SeparatingLimit.ROW | {"better_margin": "better_margin"}
    SCREEN = (
        "status", "objective", "lower_bound", "gap", "better_margin", "limit_seconds", "n_support",
    )  # fmt: skip
    LINES = (*SeparatingLimit.LINES, "better_margin")

    zeta: Floats
    dual: Floats
    margins: Floats
    support: NDArray[np.bool_]
    tokens: NDArray[np.int64]
    better_margin: float
    norm: NormName

    @property
    def n_tokens(self) -> int:
        """Number T of tokens of a sequence."""
        return int(self.dual.shape[1])

    @property
    def is_local(self) -> bool:
        """True if training can select these tokens: every better one has a margin above 1.

        The share of a token in the attention falls like the exponential of its margin, and what
        better tokens gain must fall faster than what lower ones lose. The papers call the tokens
        locally optimal: none that supports has a score as high as the chosen one's.
        """
        return self.gap < NEAR and self.better_margin > 1

    @property
    def rank(self) -> int:
        """Number of singular values above a millionth of the largest."""
        values = np.linalg.svd(self.zeta, compute_uv=False)
        return int((values > 1e-6 * values[0]).sum()) if values[0] > 0 else 0

    @property
    def unit_norms(self) -> Floats:
        """(1,) the norm of W."""
        return np.array([Norm.of(self.norm).value(self.zeta)])

    @property
    def live(self) -> NDArray[np.bool_]:
        """(1,) True: W is one unit."""
        return self.unit_norms > 0

    @property
    def is_unique(self) -> bool:
        """True if the norm has one least solution, so that directions may be compared."""
        return self.norm == "l2"

    def screen(self) -> dict[str, Any]:
        """Return what the first screen shows; supports are pairs of a sequence and a token."""
        return super().screen() | {"n_support": f"{self.n_support} tokens"}

    @property
    def _local(self) -> str:
        return "training can select these tokens" if self.is_local else "NOT self-consistent"

    @door()
    def attention(self, X: ArrayLike, queries: ArrayLike | None = None) -> Floats:
        """Return the attention (n, T) that W at smallest margin 1 pays to tokens (n, T, d).

        Raises
        ------
        TypeError, ValueError
            If an array is malformed or of other sizes.

        Examples
        --------
        >>> limit = ib.limits.solve_token_svm(np.eye(2)[None], [[1.0]], [[1.0, 0.0]])
        >>> limit.attention(np.eye(2)[None], [[1.0]]).round(3).tolist()
        [[0.731, 0.269]]
        """
        from scipy.special import softmax

        inputs = np.asarray(to_numpy(X), dtype=np.float64)
        scores = np.zeros(inputs.shape[:2])
        scores[..., :1] = 1.0  # any, of data that are checked
        data = token_data(inputs, queries, scores)
        _require_sizes(data, self.zeta)
        return np.asarray(softmax(logits(data, self.zeta), axis=1))

    @door()
    def certify(
        self,
        X: ArrayLike,
        queries: ArrayLike | None,
        scores: ArrayLike,
        W: ArrayLike | None = None,
    ) -> Self:
        """Prove W and multipliers anew on the data, or another W beside the same multipliers.

        Parameters
        ----------
        X, queries, scores : arrays
            As `solve_token_svm` takes them; the tokens are those of the limit.
        W : (d, q) array, optional
            A matrix from anywhere, at any scale: the result has its norm at smallest margin 1 as
            `objective` beside the certified lower bound, ``dual_objective / objective`` being at
            most the ratio of its margin to the largest. One that does not separate the tokens has
            an infinite objective.

        Returns
        -------
        TokenLimit
            With status, certificate and margins computed from these data, to the same tolerance.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed or of other sizes.

        Examples
        --------
        >>> data = np.eye(2)[None], [[1.0]], [[1.0, 0.0]]
        >>> limit = ib.limits.solve_token_svm(*data)
        >>> other = limit.certify(*data, W=[[4.0], [-2.0]])
        >>> other.status.name, round(limit.objective / other.objective, 6)
        ('INACCURATE', 0.948683)
        """
        data = token_data(X, queries, scores)
        if W is not None:
            require_real("W", W)
        own = self.zeta if W is None else np.asarray(to_numpy(W), dtype=np.float64)
        _require_sizes(data, own, "W")
        require_shape("scores", data.scores, self.dual.shape, "the limit's tokens")
        program = TokenMargin(self.norm)._program(data, self.tokens)
        lam = self.dual[lower(data, self.tokens)]
        return type(self)._of(
            program, conclude_norm(program, own, lam, **self._how), data, self.tokens
        )

    @classmethod
    def _of(
        cls, program: NormProgram, solution: NormSolution, data: TokenData, tokens: Tokens
    ) -> Self:
        """Read a solution as the limit of these tokens."""
        below, places = lower(data, tokens), np.arange(len(tokens))
        found = logits(data, solution.primal)
        ahead = found[places, tokens][:, None] - found
        margins = np.where(below, ahead, np.inf)
        better = data.scores > data.scores[places, tokens][:, None]
        dual, smallest, largest = np.zeros(below.shape), margins.min(), solution.dual.max()
        dual[below] = solution.dual
        support = dual > 0
        if smallest > 0 and largest > 0:
            support &= dual / largest > np.where(below, margins / smallest - 1, np.inf)
        return cls.read(
            solution,
            zeta=solution.primal,
            dual=dual,
            margins=margins.min(axis=1),
            support=support,
            tokens=tokens,
            better_margin=float(ahead[better].min(initial=np.inf)),
            norm=program.norm.name,
        )

    def _fault(self) -> str:
        n = len(self.tokens)
        if self.dual.ndim != 2 or self.support.shape != self.dual.shape or (
            len(self.dual) != n or self.margins.shape != (n,) or self.zeta.ndim != 2
        ):  # fmt: skip
            return "its arrays are not of one number of sequences and tokens"
        if not (np.isfinite(self.zeta).all() and np.isfinite(self.dual).all()):
            return "an array is not finite"
        above = Norm.of(self.norm).value(self.zeta)
        bound = self.objective * float(self.margins.min()) * (1 + 1e-9)
        if self.status is Status.SOLVED and not (above <= bound and self.gap <= self.tol):
            return "its arrays do not support its certificate"
        return ""


def logits(data: TokenData, W: Floats) -> Floats:
    """Return the logits (n, T) of attention, ``<x[n, t], W z[n]>``."""
    return np.asarray(np.einsum("ntd,nd->nt", data.X, data.queries @ W.T))


def _require_sizes(data: TokenData, W: Any, name: str = "X") -> None:
    sizes = (data.X.shape[2], data.queries.shape[1])
    if W.shape != sizes:
        raise ValueError(
            f"`{name}` must fit tokens of {sizes[0]} and queries of {sizes[1]} inputs: W is "
            f"{W.shape}, not {sizes}"
        )


@door(norm=anything)
def solve_token_svm(
    X: ArrayLike,
    queries: ArrayLike | None,
    scores: ArrayLike,
    tokens: ArrayLike | None = None,
    *,
    norm: Norm | NormName = "l2",
    **solving: Unpack[Solving],
) -> TokenLimit:
    r"""Solve for the direction in which attention grows while it selects these tokens.

    .. math:: \min N(W) \quad \text{s.t.} \quad
              (x_{n a_n} - x_{nt})^\top W z_n \ge 1 \quad (\gamma_{nt} < \gamma_{n a_n})

    of one layer :math:`f_n = \sum_t \mathrm{softmax}_t(x_{nt}^\top W z_n) u_{nt}` with a fixed
    value head, scores :math:`\gamma_{nt} = y_n u_{nt}` and a loss that falls in :math:`y_n f_n`.
    Which tokens training selects depends on its start: it is the program of those that is its
    limit, and that only where it is self-consistent, `is_local`.

    Parameters
    ----------
    X : (n, T, d) real array
        Tokens of each sequence, T >= 2.
    queries : (n, q) real array or None
        What each sequence is asked with; None stands for its last token.
    scores : (n, T) real array
        gamma. Or labels (n,): see `TokenData`.
    tokens : (n,) ints, optional
        The chosen tokens a, from 0 to T - 1; by default those of the largest scores.
    norm : str or Norm
        N. "l2": W is one matrix under gradient descent. "nuclear": W = K Q'. "linf" and "spectral":
        W under sign and spectral descent.
    **solving
        `solver`, by default the best for the norm, `tol`, `max_iterations`, `progress`, `threads`:
        see `Solving`.

    Returns
    -------
    TokenLimit
        With its certificate; call `.require()` to insist on `SOLVED`.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, sequences have one token, all tokens of one have one score, two
        are the best where no `tokens` are named, or the norm or solver does not take the program.

    References
    ----------
    D. A. Tarzanagh, Y. Li, C. Thrampoulidis, S. Oymak, "Transformers as support vector machines",
    arXiv 2308.16898 ("l2" by descent, locally and globally; "nuclear" by the regularisation path);
    H. Sheen, S. Chen, T. Wang, H. H. Zhou, arXiv 2403.08699 ("nuclear" by gradient flow from
    aligned starts).

    Examples
    --------
    >>> X = np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]])
    >>> limit = ib.limits.solve_token_svm(X, [[2.0]], [[1.0, 0.5, 0.0]])
    >>> limit.tokens.tolist(), round(limit.objective, 6), limit.better_margin
    ([0], 0.372678, inf)
    >>> ib.limits.solve_token_svm(X, [[2.0]], [[1.0, 0.5, 0.0]], [1]).is_local
    False
    """
    data = token_data(X, queries, scores)
    a = chosen_tokens(data, tokens)
    stated = TokenMargin(norm)
    program = stated._program(data, a)
    solver, settings = chosen(**({"solver": solver_of(program.norm)} | solving))  # type: ignore[arg-type]
    found = solve_norm(program, solver=solver, settings=settings)
    return TokenLimit._of(program, found, data, a)
