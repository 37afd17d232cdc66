"""The verdict on a network of the user's own, and what is proved of all networks of its form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..._support.solve import Status
from ...limits.exact.path_limit import PathLimit
from ...quantities.formatting import number
from ..reports.bounds import bound_evidence
from ..reports.finding import Finding
from ..reports.verdict import Evidence
from .local import gates_evidence
from .problem import Problem, problem_evidence
from .state import MeasuredNetwork, held_back_by
from .theory import form_in_words


def verdict_finding(
    found: MeasuredNetwork,
    twins: tuple[int, int] | None,
    problem: Problem | None = None,
    predicted: str = "",
    split: str = "",
) -> Finding:
    """Decide on the verdict, and on what is proved of all networks of the form.

    Parameters
    ----------
    found : MeasuredNetwork
        One without a local limit.
    twins : (int, int) or None
        Equal samples with different labels.
    problem : Problem or None
        The margin problem that was looked for, where the form alone names none.
    predicted : str
        Where its trajectory is heading.
    split : str
        Where training goes on data that are not separable.
    """
    every = _evidence(found, twins, problem, predicted)
    if split:
        every = (replace(one, remark=split) for one in every)
    return Finding("verdict", evidence=tuple(every))


def _evidence(
    found: MeasuredNetwork,
    twins: tuple[int, int] | None,
    problem: Problem | None,
    predicted: str,
) -> Iterator[Evidence]:
    state, limit = found.state, found.optimum.limit
    if twins is not None:
        reason = (
            f"proved: no network whatever separates samples {twins[0]} and {twins[1]}, which are "
            "equal and have different labels"
        )
        yield Evidence(status=Status.NOT_SEPARABLE, reason=reason)
    elif found.optimum.bound == math.inf:
        reason = f"proved: no network of this form separates these {len(found.margins)} samples"
        yield Evidence(status=Status.NOT_SEPARABLE, reason=reason)
    elif not found.separates:
        yield Evidence(
            theory="none",
            reason=found.lacking,
            remark=form_in_words(found.structure),
            smallest_margin=state.smallest_margin,
        )
    elif problem is not None:
        yield from problem_evidence(found, problem)
    elif found.named:
        assert limit is not None
        yield Evidence(
            status=limit.status,
            near={"margin_ratio": state.margin_ratio},
            beside={"agreement": state.agreement},
            reason=held_back_by(state),
            predicted=predicted,
            smallest_margin=state.smallest_margin,
        )
    else:
        yield from _alone(found)


def _alone(found: MeasuredNetwork) -> Iterator[Evidence]:
    """Yield the evidence on a network without a limit, local or not."""
    optimum, residual = found.optimum, found.state.kkt_residual
    known = "" if math.isnan(residual) else f"; KKT residual {number(residual, '.2g')}"
    yield Evidence(theory="none", reason=form_in_words(found.structure) + known)
    if optimum.present_gates:
        yield from gates_evidence(optimum)
    elif isinstance(optimum.limit, PathLimit) and math.isfinite(optimum.bound):
        yield bound_evidence(optimum.limit)
