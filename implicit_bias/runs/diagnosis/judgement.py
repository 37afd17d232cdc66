"""The verdict on a network of the user's own, and what is proved of all networks of its form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..._support.solve import Status
from ...limits.exact.path_limit import PathLimit
from ...networks.recognition.structure import Structure
from ...quantities.formatting import number
from ..reports.bounds import bound_evidence
from ..reports.finding import Finding
from ..reports.verdict import Evidence
from .optimum import Optimum
from .state import MeasuredNetwork, held_back_by, unseparated
from .theory import THEORIES, form_in_words


def verdict_finding(
    structure: Structure,
    optimum: Optimum,
    found: MeasuredNetwork,
    local: Sequence[Evidence],
    twins: tuple[int, int] | None,
    predicted: str = "",
) -> Finding:
    """Decide on the verdict, and on what is proved of all networks of the form.

    Parameters
    ----------
    structure : Structure
    optimum : Optimum
    found : MeasuredNetwork
    local : sequence of Evidence
        What is known of the local limit; empty where none was found.
    twins : (int, int) or None
        Equal samples with different labels.
    predicted : str
        Where its trajectory is heading.
    """
    return Finding(
        "verdict", evidence=tuple(_evidence(structure, optimum, found, local, twins, predicted))
    )


def _evidence(
    structure: Structure,
    optimum: Optimum,
    found: MeasuredNetwork,
    local: Sequence[Evidence],
    twins: tuple[int, int] | None,
    predicted: str,
) -> Iterator[Evidence]:
    state, limit = found.state, optimum.limit
    if twins is not None:
        reason = (
            f"proved: no network whatever separates samples {twins[0]} and {twins[1]}, which are "
            "equal and have different labels"
        )
        yield Evidence(status=Status.NOT_SEPARABLE, reason=reason)
    elif optimum.bound == math.inf:
        reason = f"proved: no network of this form separates these {len(found.margins)} samples"
        yield Evidence(status=Status.NOT_SEPARABLE, reason=reason)
    elif not state.smallest_margin > 0:
        yield Evidence(
            theory="none",
            reason=unseparated(found),
            remark=form_in_words(structure),
            smallest_margin=state.smallest_margin,
        )
    elif THEORIES[structure.form].says == "limit":
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
        yield from local or _alone(structure, optimum, state.kkt_residual)


def _alone(structure: Structure, optimum: Optimum, kkt_residual: float) -> Iterator[Evidence]:
    """Yield the evidence on a network without a limit, local or not."""
    residual = "" if math.isnan(kkt_residual) else f"; KKT residual {number(kkt_residual, '.2g')}"
    yield Evidence(theory="none", reason=form_in_words(structure) + residual)
    if not math.isfinite(optimum.bound):
        return
    if optimum.present_gates:
        # Networks with these gates that attain it need not be ones whose weights set them so.
        least = optimum.bound
        said = f"no network that keeps its gates on these samples is below {least:.5g} (proved)"
        yield Evidence(theory="bound", beside={"lower_bound": least}, numbers=said)
    elif isinstance(optimum.limit, PathLimit):
        yield bound_evidence(optimum.limit)
