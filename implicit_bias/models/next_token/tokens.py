"""Distinct contexts with the chances of the tokens that follow them, and the rows they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, kl_div, softmax

from ..._support.doors import door, parameters
from ..._support.kinds import count, floats
from ..._support.shown import Shown
from ..._support.solve import RelativeMargins, Rows, dense_rows, require_memory, require_scale
from ...data.arrays import Floats
from ...data.dataset import digest
from ...limits.exact.split import SpanLoss

# Error of a sum of probabilities that came in single precision.
ROUNDING = 1e-5
COPIES = 4  # of the rows of all margins, as a solve has them
ARRAYS = {
    "contexts": floats("m D", require_scale),
    "probabilities": floats("m V>=2"),
    "weights": floats("m"),
}


@parameters(contexts=ARRAYS["contexts"], probabilities=ARRAYS["probabilities"])
@dataclass(frozen=True, eq=False, repr=False)
class TokenCounts(Shown):
    """Distinct contexts, and how often each token follows each of them.

    Arrays are read-only; rows of probabilities are divided by their sums, and weights by theirs.

    Parameters
    ----------
    contexts : (m, D) array
        Embeddings h_j, which stay as they are.
    probabilities : (m, V) array
        Chances p_jz of the tokens, rows of sum 1; tokens of chance 0 are out of support.
    weights : (m,) array, optional
        Shares pi_j of the contexts, positive; equal by default.

    Raises
    ------
    TypeError, ValueError
        If an array has another shape, a number is not finite, probabilities are negative or do not
        sum to 1, nothing follows a context, or a weight is not positive.

    Examples
    --------
    >>> ib.datasets.TokenCounts(np.eye(2), [[0.5, 0.5, 0], [0, 0, 1]], [1, 3]).weights.tolist()
    [0.25, 0.75]
    """

    contexts: Floats
    probabilities: Floats
    weights: Floats | None = None

    def __post_init__(self) -> None:
        p, sums = self.probabilities, self.probabilities.sum(axis=1)
        if p.min() < 0:
            raise ValueError(
                f"`probabilities` must not be negative, got {p.min():g} in row "
                f"{int(p.min(axis=1).argmin())}: give the chances of the tokens"
            )
        if not sums.all():
            raise ValueError(
                f"`probabilities` has no token that follows context {int(sums.argmin())}: leave "
                "contexts out that nothing follows"
            )
        worst = int(np.abs(sums - 1).argmax())
        if abs(sums[worst] - 1) > ROUNDING:
            raise ValueError(
                f"`probabilities` must have rows of sum 1, got {sums[worst]:g} in row {worst}: "
                "divide counts by their sums, and give these as `weights`"
            )
        weights = np.ones(len(p)) if self.weights is None else self.weights
        if weights.shape != (len(p),) or not weights.min() > 0:
            raise ValueError(
                f"`weights` must be {len(p)} positive numbers, got shape {weights.shape}, the "
                f"least {weights.min(initial=np.inf):g}: give one a context, leave others out"
            )
        arrays = {"contexts": self.contexts, "probabilities": p / sums[:, None]}
        for name, array in (arrays | {"weights": weights / weights.sum()}).items():
            array = array.copy()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def shares(self) -> Floats:
        """(m,) weights of the contexts, of sum 1."""
        assert self.weights is not None  # since it is made
        return self.weights

    @property
    def entropies(self) -> Floats:
        """(m,) entropy of the tokens after each context, the least loss there, in nats."""
        return np.asarray(entr(self.probabilities).sum(axis=1))

    def digest(self) -> str:
        """Return the SHA-256 of the arrays, equal on every machine."""
        return digest(self.contexts, self.probabilities, self.shares)


@dataclass(frozen=True, eq=False)
class TokenMargins:
    """By how much the score of the likeliest token of each context is above that of each other.

    Attributes
    ----------
    counts : TokenCounts
    """

    counts: TokenCounts

    @property
    def in_support(self) -> NDArray[np.bool_]:
        """(m, V) tokens that may follow."""
        return np.asarray(self.counts.probabilities > 0)

    @cached_property
    def image(self) -> RelativeMargins:
        """The margins of a decoder (V, D), as a map."""
        p = self.counts.probabilities
        return RelativeMargins(self.counts.contexts, p.argmax(axis=1), p.shape[1])

    @cached_property
    def rows(self) -> Floats:
        """(m (V - 1), V, D) rows of the margins."""
        (m, V), size = self.in_support.shape, self.counts.contexts.shape[1]
        what = f"{m} contexts with {V} tokens in {size} dimensions"
        require_memory(COPIES * m * V**2 * size, what, "give fewer contexts or tokens")
        return dense_rows(self.image).reshape(-1, *self.image.shape)

    @property
    def equal(self) -> NDArray[np.bool_]:
        """(m (V - 1),) margins over tokens in support, which the direction leaves as they are."""
        return np.asarray(self.in_support[self.image.wrong])

    @property
    def equalities(self) -> Rows | None:
        """Rows of these margins; None where there is none."""
        return Rows(self.rows[self.equal]) if self.equal.any() else None

    @cached_property
    def log_odds(self) -> Floats:
        """These margins where the chances are the given ones."""
        logs = np.log(np.where(self.in_support, self.counts.probabilities, 1.0))
        return self.image.margins_of(logs)[self.equal]

    def loss(self, others: NDArray[np.bool_]) -> SpanLoss:
        """Return the loss of margins (m (V - 1),), as a function on their span."""
        wrong = self.image.wrong
        samples = np.nonzero(wrong)[0][others]
        rows = self.rows.reshape(len(self.rows), -1)[others]
        shares = self.counts.probabilities[wrong][others]
        return SpanLoss(rows, samples, shares, self.counts.shares[samples])

    def excess(self, decoder: Floats, others: NDArray[np.bool_]) -> float:
        """Return the loss of these margins above the entropy, in nats."""
        seen = self.image.pairs(others.astype(float)) + ~self.image.wrong
        scores = np.where(seen > 0, self.counts.contexts @ decoder.T, -np.inf)
        apart = kl_div(self.counts.probabilities, softmax(scores, axis=1))
        return float(self.counts.shares @ apart.sum(axis=1))


@door(contexts=floats("n D", require_scale), tokens=floats("n: one token a row"), n_tokens=count(2))
def token_counts(contexts: Floats, tokens: Floats, n_tokens: int | None = None) -> TokenCounts:
    """Count which tokens follow each distinct context.

    Parameters
    ----------
    contexts : (n, D) array
        One row a token of the text: equal rows are one context.
    tokens : (n,) ints
        The next tokens, from 0.
    n_tokens : int, optional
        V, by default one more than the largest token, two at least.

    Returns
    -------
    TokenCounts
        Its weights are the shares of the contexts.

    Raises
    ------
    ValueError
        If a token is no whole number from 0 to V - 1.

    Examples
    --------
    >>> found = ib.datasets.token_counts([[1.0], [1.0], [2.0]], [0, 1, 1])
    >>> found.probabilities.tolist(), found.weights.round(3).tolist()
    ([[0.5, 0.5], [0.0, 1.0]], [0.667, 0.333])
    """
    V = n_tokens or max(2, int(tokens.max()) + 1)
    if np.any((tokens != np.floor(tokens)) | (tokens < 0) | (tokens >= V)):
        raise ValueError(f"`tokens` must be whole numbers from 0 to {V - 1}")
    distinct, place = np.unique(contexts + 0.0, axis=0, return_inverse=True)
    counts = np.zeros((len(distinct), V))
    np.add.at(counts, (place.ravel(), tokens.astype(np.int64)), 1.0)
    sums = counts.sum(axis=1)
    return TokenCounts(distinct, counts / sums[:, None], sums)
