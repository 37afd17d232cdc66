"""Trained attention beside the programs of the tokens that it selects, and of the best ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from ...data.arrays import Floats
from ...data.tokens import TokenData
from ...limits.exact.tokens import TokenLimit, logits
from ...quantities.measured import Measured, quantity


class AttentionComparison(Measured):
    """Trained attention, compared with the max-margin matrices of selected and of best tokens."""

    TITLE = "attention beside its limit"
    SCREEN = ("margin_ratio", "zeta_cosine", "best_margin_ratio", "best_share")

    margin_ratio: float = quantity()
    zeta_cosine: float | None = quantity()
    best_margin_ratio: float = quantity()
    best_share: float = quantity()
    own_better_margin: float = quantity(
        "  of a better token, of the network",
        doc="Least margin of the network over tokens of higher scores, at smallest margin 1: "
        "attention turns away from the selected tokens where it comes to 1.",
    )
    attended: float = quantity("least attention to a selected token", ".6g", recorded=True)


def compare_attention(
    data: TokenData, W: Floats, best: TokenLimit, solve: Callable[[Any], TokenLimit]
) -> tuple[AttentionComparison, TokenLimit]:
    """Compare a matrix with the program of the tokens that it selects, which is returned too.

    Parameters
    ----------
    data : TokenData
    W : (d, q) array
    best : TokenLimit
        Of the best tokens.
    solve : callable
        `solve(tokens)` returns the limit of these tokens.
    """
    found = logits(data, W)
    tokens = found.argmax(axis=1)
    limit = best if np.array_equal(tokens, best.tokens) else solve(tokens)
    proved = limit.certify(data.X, data.queries, data.scores, W)
    compared = AttentionComparison(
        margin_ratio=limit.dual_objective / proved.objective,
        own_better_margin=proved.better_margin,
        zeta_cosine=cosine(limit.zeta, W) if limit.is_unique else None,
        best_margin_ratio=ratio(best, data, W),
        best_share=float((tokens == best.tokens).mean()),
        attended=float(softmax(found, axis=1).max(axis=1).min()),
    )
    return compared, limit


def ratio(limit: TokenLimit, data: TokenData, W: Floats) -> float:
    """Return the certified lower bound over the norm of a matrix at margin 1; 0 without one."""
    proved = limit.certify(data.X, data.queries, data.scores, W)
    return limit.dual_objective / proved.objective


def cosine(zeta: Floats, W: Floats) -> float:
    """Return the cosine of two matrices; NaN if one is 0."""
    size = float(np.linalg.norm(zeta) * np.linalg.norm(W))
    return float((zeta * W).sum()) / size if size > 0 else float("nan")
