"""Trained decoders beside the limit of next tokens, at the end and along the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._support.doors import door
from ..._support.kinds import floats
from ..._support.solve import require_shape
from ...data.arrays import Floats
from ...measures.splits import SplitComparison, split_parts
from ...quantities.measured import part, quantity
from .limit import NextTokenLimit
from .tokens import TokenCounts, TokenMargins


class DecoderComparison(SplitComparison):
    """A trained decoder, compared with its limit: the part out of F, and that in F."""

    TITLE = "decoder beside its limit"

    excess: float = quantity(
        "loss in support above the entropy", ".2e", doc="Of its part in F, in nats."
    )
    word_cosines: Floats = part("(V, V) cosines of the tokens' weights out of F.", recorded=False)


class Beside:
    """Measures decoders beside a limit: an observer for `train`.

    Parameters
    ----------
    limit : NextTokenLimit
    counts : TokenCounts
        The contexts that it is of.
    """

    def __init__(self, limit: NextTokenLimit, counts: TokenCounts) -> None:
        self._limit, self._data = limit, TokenMargins(counts)
        require_shape("limit.separable", limit.separable, self._data.in_support.shape)
        require_shape("limit.zeta", limit.zeta, self._data.image.shape)
        self._apart = limit.separable[self._data.image.wrong]
        self._basis = self._data.loss(~self._apart).basis

    def __call__(self, network: Any) -> Mapping[str, float]:
        """Measure "margin_ratio" and "limit_error" of a `TokenDecoder`."""
        found = self.compare(network)
        return {"margin_ratio": found.margin_ratio, "limit_error": found.limit_error}

    def compare(self, network: Any) -> DecoderComparison:
        """Compare a decoder with the limit."""
        return self.of(network.weight.detach().double().cpu().numpy())

    def of(self, W: Floats) -> DecoderComparison:
        """Compare weights (V, D) with the limit."""
        values, inside, V = split_parts(
            self._limit, W, self._basis, lambda V: self._data.image.scores(V)[self._apart]
        )
        return DecoderComparison(
            **values,
            excess=self._data.excess(inside, ~self._apart),
            word_cosines=cosines(V),
        )


@door(weight=floats("V D"))
def compare_decoder(
    limit: NextTokenLimit, weight: Floats, counts: TokenCounts
) -> DecoderComparison:
    """Compare a linear decoder, trained anywhere, with the limit of its contexts.

    Parameters
    ----------
    limit : NextTokenLimit
        In the l2 norm.
    weight : (V, D) array
        Its weights.
    counts : TokenCounts
        The contexts that the limit is of.

    Raises
    ------
    ValueError
        If sizes disagree, or the limit is of another norm.

    Examples
    --------
    >>> counts = ib.datasets.TokenCounts(np.eye(2), [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    >>> limit = ib.limits.solve_next_token(counts.contexts, counts.probabilities)
    >>> found = ib.measures.compare_decoder(limit, limit.finite + 9 * limit.zeta, counts)
    >>> round(found.margin_ratio, 6), round(found.limit_error, 6)
    (1.0, 0.0)
    """
    if limit.norm != "l2":
        raise ValueError(f"`limit` must be of the l2 norm, got {limit.norm!r}: solve it so")
    require_shape("weight", weight, limit.zeta.shape, "that of the limit's")
    return Beside(limit, counts).of(weight)


def cosines(rows: Floats) -> Floats:
    """Return cosines (V, V) of rows (V, D); 0 of a row that is 0."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(norms > 0, norms, 1.0)
    return np.asarray(unit @ unit.T)
