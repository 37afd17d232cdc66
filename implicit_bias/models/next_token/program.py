"""The two programs of next tokens, as their theory states them in cvxpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._support.doors import door, parameters
from ..._support.kinds import anything
from ..._support.solve import Norm, NormName, norm_expression
from ...data.arrays import Floats
from ...limits.literal import LiteralProgram, constant, cvxpy_module, labelled
from .tokens import ARRAYS, TokenCounts, TokenMargins

if TYPE_CHECKING:
    import cvxpy


@parameters(norm=anything)
@dataclass(frozen=True)
class NextTokenSVM(LiteralProgram):
    """The direction of a decoder W of next tokens: least norm, equal scores in support.

        minimise  N(W)   s.t.   <w[z] - w[v], h[j]> >= 1   for v out of support of context j,
                                <w[z] - w[z'], h[j]> = 0   for z' in support,

    z being the likeliest token of context j: with the equalities, any in support will do.

    Parameters
    ----------
    norm : str or Norm
        N, by default the l2 norm of all entries: see `Norm.of`.

    References
    ----------
    C. Thrampoulidis, "Implicit optimization bias of next-token prediction in linear models",
    definition 3 with equations (6a) and (6b).
    """

    name: ClassVar[str] = "next-token margin"

    norm: Norm | NormName = "l2"

    def __post_init__(self) -> None:
        Norm.of(self.norm)

    @door(contexts=ARRAYS["contexts"], probabilities=ARRAYS["probabilities"])
    def literal(self, contexts: Floats, probabilities: Floats) -> cvxpy.Problem:
        """State the program; its variable is W (V, D), each constraint about one token.

        Parameters
        ----------
        contexts : (m, D) array
        probabilities : (m, V) array

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed.
        MissingExtra
            If cvxpy is not installed.

        Examples
        --------
        >>> problem = ib.programs.NextTokenSVM().literal(np.eye(2), [[1, 0, 0], [0, 0.5, 0.5]])
        >>> round(float(problem.solve(solver="CLARABEL")), 6)
        1.154701
        """
        cp, data = cvxpy_module(), TokenMargins(TokenCounts(contexts, probabilities))
        h = constant(data.counts.contexts, "h")
        e = constant(1.0 - data.image.wrong, "e")  # 1 at the likeliest token
        W = cp.Variable(data.image.shape, name="W")
        scores = h @ W.T
        own = cp.sum(cp.multiply(e, scores), axis=1)
        constraints = []
        for v in range(data.image.n_classes):
            inside = data.in_support[:, v]
            out, equal = np.flatnonzero(~inside), np.flatnonzero(inside & data.image.wrong[:, v])
            lead = own - scores[:, v]
            constraints += [labelled(lead[out] >= 1, f"margins over token {v}")] * (len(out) > 0)
            constraints += [labelled(lead[equal] == 0, f"token {v} in support")] * (len(equal) > 0)
        norm = Norm.of(self.norm)
        blocks = [W[[v], :] for v in range(W.shape[0])] if norm.blocks == "units" else [W]
        objective, stated = norm_expression(norm, blocks)
        return cp.Problem(cp.Minimize(objective), constraints + stated)


@dataclass(frozen=True)
class InSupportLoss(LiteralProgram):
    """The loss in support of a decoder W of next tokens, whose minimiser is the finite part.

        minimise  sum_j pi[j] (t[j] - sum_z p[j, z] <w[z], h[j]>),
        t[j] = log sum_(z in support) exp <w[z], h[j]>

    Its optimum is the limit of the loss where all tokens out of support can be separated, and the
    entropy where the log-odds equations have a solution. Of several minimisers the finite part is
    the one of least l2 norm.

    References
    ----------
    C. Thrampoulidis, "Implicit optimization bias of next-token prediction in linear models",
    equation (2) of tokens in support, (4) its solution.
    """

    name: ClassVar[str] = "loss in support"

    @door(**ARRAYS)
    def literal(
        self, contexts: Floats, probabilities: Floats, weights: Floats | None = None
    ) -> cvxpy.Problem:
        """State the program; its variables are W (V, D) and t (m, 1), bounded from below alone.

        Parameters
        ----------
        contexts : (m, D) array
        probabilities : (m, V) array
        weights : (m,) array, optional

        Returns
        -------
        cvxpy.Problem
            Not yet solved.

        Raises
        ------
        TypeError, ValueError
            If an array is malformed.
        MissingExtra
            If cvxpy is not installed.

        Examples
        --------
        >>> problem = ib.programs.InSupportLoss().literal(np.eye(2), [[1, 0, 0], [0, 0.5, 0.5]])
        >>> round(float(problem.solve(solver="CLARABEL") / np.log(2)), 4)  # half of one bit
        0.5
        """
        cp, counts = cvxpy_module(), TokenCounts(contexts, probabilities, weights)
        h, p, pi = (
            constant(getattr(counts, name), letter)
            for name, letter in (("contexts", "h"), ("probabilities", "p"), ("shares", "pi"))
        )
        W = cp.Variable((p.shape[1], h.shape[1]), name="W")
        t = cp.Variable((p.shape[0], 1), name="t")
        s = constant(counts.probabilities > 0, "s")  # 1 in support
        scores, ones = h @ W.T, constant(np.ones((1, p.shape[1])), "ones")
        sums = cp.sum(cp.multiply(s, cp.exp(scores - t @ ones)), axis=1)
        loss = t[:, 0] - cp.sum(cp.multiply(p, scores), axis=1)
        return cp.Problem(cp.Minimize(pi @ loss), [labelled(1 - sums >= 0, "exponentials")])
