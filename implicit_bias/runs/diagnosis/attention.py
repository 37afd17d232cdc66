"""Attention of the user's own: the tokens that it selects, their program, and how near it is."""

from __future__ import annotations

import math

import numpy as np

from ..._support.solve import Norm, NormName
from ...data.tokens import TokenData
from ...limits.exact.tokens import TokenLimit, TokenMargin, logits, lower, solve_token_svm
from ...networks.recognition.attention import RecognisedAttention
from ...networks.recognition.subject import Subject
from ...quantities.atlas import ENTRIES
from ...quantities.premises import ATTENTION_START, FALLING, FEASIBLE, HEAD, LOCAL, PATH
from ..reports.finding import Finding
from ..reports.verdict import Evidence
from .method import Method
from .state import OwnNetwork
from .theory import Theory

PROGRAM = "min N(W)  s.t.  <x[n, a[n]] - x[n, t], W z[n]> >= 1  for tokens of lower scores"


def select_tokens(
    subject: Subject, found: RecognisedAttention, method: Method
) -> tuple[Theory, tuple[Finding, ...]] | None:
    """Return what theory says of recognised attention, and the limit of the tokens it selects.

    Parameters
    ----------
    subject : Subject
    found : RecognisedAttention
    method : Method

    Returns
    -------
    (Theory, findings) or None
        None where weights decay, no norm of W follows from the optimiser, or no selected token is
        above another one.
    """
    norm = _norm(subject, found, method)
    scores = subject.data.y.numpy()[:, None] * found.values.numpy()
    told = np.ptp(scores, axis=1) > 0  # sequences of one score have no slope
    if norm is None or not told.any():
        return None
    data = TokenData(subject.data.X.numpy()[told], found.queries.numpy()[told], scores[told])
    W = found.W.numpy()
    tokens = logits(data, W).argmax(axis=1)
    if not lower(data, tokens).any():
        return None
    limit = solve_token_svm(data.X, data.queries, data.scores, tokens, norm=norm, tol=1e-6)
    proved = limit.certify(data.X, data.queries, data.scores, W)
    margin = float(np.linalg.norm(W) and Norm.of(norm).value(W) / proved.objective)
    state = OwnNetwork(
        smallest_margin=margin,
        weight_norm=math.sqrt(sum(float(p.square().sum()) for p in subject.weights.values())),
        margin_ratio=limit.dual_objective / proved.objective,
    )
    what = "the nuclear norm of K Q'" if found.pair else f"the {norm} norm of W"
    theory = Theory(
        "limit" if limit.is_local else "none",
        "attention that selects locally optimal tokens grows in the direction of their attention "
        f"SVM, in {what}",
        PROGRAM,
        ENTRIES["attention"].source,
        (),
    )
    known = (
        HEAD.found(said=f"{found.in_words}: measured to {found.error:.0e}", how="measured",
                   holds=True),
        FALLING.found(holds=True, how="as was said"),
        FEASIBLE.found(holds=limit.margins.min() > 0),
        LOCAL.found(margin=limit.better_margin),
        ATTENTION_START.found(),
        *((PATH.found(),) if found.pair else ()),
        method.of_batches,
    )  # fmt: skip
    findings = (
        Finding("verdict", evidence=(_evidence(limit, state),)),
        Finding("limit", {"limit": limit}, TokenMargin.name, assumptions=known),
        Finding("comparison", {"comparison": state}),
    )
    return theory, findings


def _norm(subject: Subject, found: RecognisedAttention, method: Method) -> NormName | None:
    """Return the norm of W that is least, by the parameters and the optimiser."""
    if found.pair:
        return "nuclear" if method.is_descent else None
    (name,) = subject.weights
    if method.norms is None or method.decay or name not in method.norms:
        return None
    return Norm.of(method.norms[name]).name  # type: ignore[arg-type]


def _evidence(limit: TokenLimit, state: OwnNetwork) -> Evidence:
    if limit.is_local:
        return Evidence(
            status=limit.status,
            near={"margin_ratio": state.margin_ratio},
            reason="it comes nearer as its margins grow, by steps along the logarithm of its loss",
        )
    return Evidence(
        theory="none",
        reason=f"the selected tokens are not self-consistent: a better token has a margin of "
        f"{limit.better_margin:.3g} there, not above 1",
    )
