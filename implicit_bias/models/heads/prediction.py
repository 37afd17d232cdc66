"""Findings about heads before they are trained: limits, certificates, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from ...quantities.assumptions import Assumption
from ...quantities.formatting import share
from ...quantities.said import Side, Table
from ...runs.reports.finding import Finding
from ...runs.reports.telling import Several
from ...runs.reports.views import Views
from .exits import anytime_average
from .exits_run import Exits
from .limit import HeadLimit
from .model import HARD_SEPARABLE, INSIDE, UNIQUE

EXIT = "exit {}"
# Spread of tempered logits from which a soft label is 0 or 1 to rounding.
_SATURATED = {"float32": 16, "float64": 36}


def limits_finding(
    limits: Sequence[HeadLimit], exits: Exits, assumed: tuple[Assumption, ...], seconds: float
) -> Finding:
    """Return the finding of the limits solved so far, with the certificate of each."""
    solved = dict(zip(exits.layers, limits, strict=False))
    averages = anytime_average(limits, exits.features_val[: len(limits)])
    record, rows = {}, []
    for (layer, one), phi, average in zip(
        solved.items(), exits.features_val[: len(limits)], averages, strict=True
    ):
        right = float(np.mean(one.predictor(phi).argmax(axis=1) == exits.labels.val))
        together = float(np.mean(average.argmax(axis=1) == exits.labels.val))
        name = EXIT.format(layer)
        record[name] = {"accuracy": right, "anytime": together}
        rows.append((name, *_cells(one), share(right), share(together)))
    columns = ("", "limit", "status", "error, at most", "gap", "rank", "norm", "excess", "held out",
               "averaged")  # fmt: skip
    return Finding(
        "limit",
        {"limit": Several(solved, EXIT), "exits": exits},
        "head of {}",
        assumptions=assumed,
        further=Views(
            record={"limit": record},
            tables=(Table("prediction", columns, tuple(rows)),),
            sides=tuple(
                Side(EXIT.format(layer), {"limit": one.kind, "gap": one.certificate.gap})
                for layer, one in solved.items()
            ),
            row={
                "limit": "exit heads",
                "gap": max(one.certificate.gap for one in limits),
                "limit_seconds": seconds,
                "error_limit": 1 - together,
            },
        ),
    )


def teacher_finding(exits: Exits) -> Finding:
    """Return the finding of the teacher, the head that the trunk was trained with."""
    labels, teacher = exits.labels, exits.teacher
    known = labels.train >= 0
    right = float(np.mean(teacher[known].argmax(axis=1) == labels.train[known]))
    sure = [_confidence(teacher / tau) for tau in (1.0, exits.temperature)]
    rows = [
        ("labelled samples", f"{labels.n_labelled} of {len(known)}"),
        ("teacher's accuracy on them", share(right)),
        ("teacher's confidence, at temperature 1", f"{sure[0]:.4f}"),
    ]
    record = {"accuracy": right, "confidence": sure[0], "n_labelled": labels.n_labelled}
    if not exits.is_hard:
        rows.append((f"  at temperature {exits.temperature:g}", f"{sure[1]:.4f}"))
        record |= {"temperature": exits.temperature, "tempered_confidence": sure[1]}
    table = Table("teacher", ("", "value"), tuple(rows))
    return Finding.said("teacher", record={"teacher": record}, tables=(table,))


def assumptions(exits: Exits, limits: Sequence[HeadLimit], options: Any) -> tuple[Assumption, ...]:
    """Check the assumptions behind the limits."""
    if exits.is_hard:
        return (HARD_SEPARABLE.found(holds=all(limit.kind == "direction" for limit in limits)),)
    spread = float(np.ptp(exits.teacher, axis=1).max()) / exits.temperature
    return (
        INSIDE.found(spread=spread, cut=_SATURATED[options.dtype]),
        UNIQUE.found(lowest=min(limit.certificate.curvature for limit in limits)),
    )


def _cells(limit: HeadLimit) -> tuple[str, ...]:
    proof = limit.certificate
    return (
        limit.kind,
        limit.status.name,
        f"{proof.error:.1e}",
        f"{proof.gap:.1e}",
        str(limit.rank),
        f"{float(np.linalg.norm(limit.zeta)):.4g}",
        f"{limit.excess:.3g}",
    )


def _confidence(logits: Any) -> float:
    return float(softmax(logits, axis=1).max(axis=1).mean())
