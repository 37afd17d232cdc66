"""Sequences of tokens with their queries and the scores of all tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.doors import door, parameters
from .._support.kinds import count, series
from .._support.shown import Shown
from .._support.solve import (
    require_finite,
    require_real,
    require_scale,
    require_shape,
    require_sizes,
    to_numpy,
)
from .arrays import Floats
from .dataset import digest
from .files.array_files import read_arrays

TOKENS = "(n, T, d): T >= 2 tokens of each sequence"


@parameters(X=series, queries=series, scores=series)
@dataclass(frozen=True, eq=False, repr=False)
class TokenData(Shown):
    """Sequences of tokens, a query for each, and what every token is worth.

    Parameters
    ----------
    X : (n, T, d) real array
        T >= 2 tokens of each of n sequences.
    queries : (n, q) real array
        What each sequence is asked with.
    scores : (n, T) real array
        Scores of the tokens: of labels y and a fixed value head v they are ``y[n] <v, X[n, t]>``.
        Or labels (n,) in {-1, +1}: the head is then the mean of ``y[n] X[n, t]``, of length 1.
    description : str
        One line that names the source.

    Raises
    ------
    TypeError, ValueError
        If an array is malformed, sequences have one token only, or all tokens of one have one
        score.

    Examples
    --------
    >>> data = ib.datasets.TokenData(np.eye(2)[None], [[0.0, 1.0]], [[1.0, 0.0]])
    >>> data.best.tolist(), data.digest()[:8]
    ([0], 'a2a39f21')
    """

    X: Floats
    queries: Floats
    scores: Floats
    description: str = "sequences of the caller's own"

    def __post_init__(self) -> None:
        X = _finite("X", self.X, 3, TOKENS)
        if X.shape[1] < 2:
            raise ValueError(
                f"`X` must have shape (n, T, d) with T >= 2, got {X.shape}: attention to one token "
                "selects nothing"
            )
        require_scale("X", X)
        queries = _finite("queries", self.queries, 2, "(n, q): one query a sequence", len(X))
        require_scale("queries", queries)
        scores = _scores(self.scores, X)
        n, T, d = X.shape
        require_sizes("rows of margins", {"X": X.size}, (n * T, d, queries.shape[1]))
        for name, array in (("X", X), ("queries", queries), ("scores", scores)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def best(self) -> NDArray[np.int64]:
        """(n,) tokens of the largest score, the first of several."""
        return np.asarray(self.scores.argmax(axis=1))

    def digest(self) -> str:
        """Return the SHA-256 of the arrays, equal on every machine."""
        return digest(self.X, self.queries, self.scores)


def token_data(X: Any, queries: Any, scores: Any, about: str = TokenData.description) -> TokenData:
    """Return data of arrays of any kind; queries None are the last tokens.

    Raises
    ------
    TypeError, ValueError
        As `TokenData`.
    """
    if queries is None:
        queries = _finite("X", X, 3, TOKENS)[:, -1]
    return TokenData(X, queries, scores, about)


def _finite(name: str, value: Any, n_axes: int, wanted: str, n: int | None = None) -> Floats:
    require_real(name, value)
    array = np.array(to_numpy(value), dtype=np.float64)
    if array.ndim != n_axes or 0 in array.shape or len(array) != (n or len(array)):
        own = "" if n is None else f", n = {n}"
        raise ValueError(f"`{name}` must have shape {wanted}{own}, got {array.shape}")
    require_finite(name, array)
    return array


def _scores(value: Any, X: Floats) -> Floats:
    """Return the scores (n, T) of all tokens, where labels (n,) are given those of their head."""
    require_real("scores", value)
    given = np.array(to_numpy(value), dtype=np.float64)
    require_finite("scores", given)
    if given.shape == X.shape[:1] and (np.abs(given) == 1).all():
        head = np.einsum("n,ntd->d", given, X)
        given = given[:, None] * (X @ (head / (np.linalg.norm(head) or 1.0)))
    require_shape("scores", given, X.shape[:2], "a score a token, or labels (n,) of -1 and +1")
    same = np.flatnonzero(np.ptp(given, axis=1) == 0)
    if len(same):
        raise ValueError(
            f"`scores` must differ within a sequence, and all {given.shape[1]} tokens of sequence "
            f"{same[0]} have the score {given[same[0], 0]:g}: leave such sequences out"
        )
    return given


@door(n_samples=count(), n_tokens=count(2), n_inputs=count(), rank=count())
def make_tokens(
    n_samples: int,
    n_tokens: int,
    n_inputs: int,
    *,
    rank: int = 3,
    equal: bool = False,
    random_state: int = 0,
) -> TokenData:
    """Draw normal tokens and queries; best is the token that a planted matrix of low rank asks for.

    The best token of each sequence has the score 1, all others are uniform in [-1, 1/2], or 0.

    Parameters
    ----------
    n_samples, n_tokens, n_inputs : int
        n, T, d; queries have d inputs too.
    rank : int
        Of the planted matrix.
    equal : bool
        True for scores of 0 but the best.
    random_state : int

    Raises
    ------
    TypeError, ValueError
        If a size is no whole number from 1 on, or there are fewer than two tokens.

    Examples
    --------
    >>> data = ib.datasets.make_tokens(5, 3, 2)
    >>> data.X.shape, data.queries.shape, data.scores.max(axis=1).tolist()
    ((5, 3, 2), (5, 2), [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    rng = np.random.default_rng(random_state)
    X, z = rng.normal(size=(n_samples, n_tokens, n_inputs)), rng.normal(size=(n_samples, n_inputs))
    scores = rng.uniform(-1, 0.5, (n_samples, n_tokens))
    planted = rng.normal(size=(n_inputs, rank)) @ rng.normal(size=(rank, n_inputs))
    best = np.einsum("ntd,de,ne->nt", X, planted, z).argmax(axis=1)
    scores *= not equal
    scores[np.arange(n_samples), best] = 1.0
    about = f"drawn, {n_tokens} tokens of {n_inputs} inputs, asked by a matrix of rank {rank}"
    return TokenData(X, z, scores, about)


def read_tokens(path: Path) -> TokenData:
    """Read an .npz file with X (n, T, d), queries (n, q) if there are any, and scores or y.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError
        If there is no such file, it lacks an array, or an array is malformed.
    """
    found = read_arrays(path, ("X",), ("queries", "scores", "y"))
    if ("scores" in found) == ("y" in found):
        raise ValueError(
            f"{str(path)!r} must hold scores (n, T) or y, labels (n,) of -1 and +1: one of the two"
        )
    worth = found.get("scores", found.get("y"))
    return token_data(found["X"], found.get("queries"), worth, path.name)
