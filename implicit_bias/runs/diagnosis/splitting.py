"""Linear scores on data that nothing separates: the limit that descent has all the same."""

from __future__ import annotations

import torch

from ..._support.solve import Norm, NormProgram, Rows, Status
from ...limits.exact.split import SpanLoss, SplitLimit, solve_split
from ...measures.splits import SplitComparison, split_parts
from ...networks.recognition.structure import Form
from ...quantities.atlas import ENTRIES
from ...quantities.formatting import number
from ...quantities.said import Table
from ...quantities.table import TABLE
from ..reports.finding import Finding
from .optimum import score_gradients
from .state import MeasuredNetwork

# Numbers of the rows of all margins, up to which the split is looked for.
MOST = 5_000_000
TITLE = "the network beside a limit in two parts (certified), a direction and a finite one"


def split_finding(found: MeasuredNetwork) -> Finding | None:
    """Find the limit in two parts of scores that are linear in the weights, and measure beside it.

    Parameters
    ----------
    found : MeasuredNetwork
        Trained by gradient descent on the logistic loss, or cross-entropy.

    Returns
    -------
    Finding or None
        None for scores of other forms, for data that they separate, and for more margins than that.
    """
    subject, limit = found.structure.subject, found.optimum.limit
    if found.structure.form is not Form.FEATURES or limit is None:
        return None
    samples = subject.rows[:, 0].numpy()
    if limit.status is not Status.NOT_SEPARABLE or len(samples) * subject.n_weights > MOST:
        return None
    rows = subject.margins_of(score_gradients(subject)).numpy()
    split = solve_split(
        NormProgram(Rows(rows), Norm.of("l2")), samples, rows.shape[1:], placed=lambda every: every
    )
    weights = torch.cat([p.flatten() for p in subject.weights.values()]).detach().numpy()
    apart = split.separable
    basis = SpanLoss(rows[~apart], samples[~apart]).basis
    values, _, _ = split_parts(split, weights, basis, lambda w: rows[apart] @ w)
    state = SplitComparison(**values)
    return Finding.said(
        "split",
        record={"split": split.to_dict(), "split_comparison": state.to_dict()},
        tables=(Table(TITLE, ("", "network"), tuple(state.rows())),),
        objects={"split": split, "split_comparison": state},
    )


def split_in_words(finding: Finding) -> str:
    """Say what a split is and how near the network is, as the end of a sentence."""
    split: SplitLimit = finding.views.objects["split"]
    state: SplitComparison = finding.views.objects["split_comparison"]
    if split.status is not Status.SOLVED:
        return ""
    source = ENTRIES["linear-split"].source
    off = f"finite part off by {number(state.limit_error, '.2g')}"
    if split.n_separable == 0:
        return f"weights go to the least of the loss: {off} ({source})"
    grow = f"{split.n_separable} of {len(split.separable)} margins grow all the same"
    ratio = TABLE["margin_ratio"].said(state.margin_ratio)
    return f"{grow}, in a direction that is known ({source}): {ratio}, {off}"
