"""Findings about heads before they are trained: limits, certificates, assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

from ...quantities.assumptions import Assumption
from ...quantities.formatting import share
from ...quantities.said import Side, Table
from ...reports.finding import Finding
from .exits import anytime_average
from .exits_run import Exits
from .limit import HeadLimit
from .model import HARD_SEPARABLE, INSIDE, UNIQUE

__all__ = ["assumptions", "limits_finding", "teacher_finding"]

# Spread of tempered logits from which a soft label is 0 or 1 to rounding.
_SATURATED = {"float32": 16, "float64": 36}


def limits_finding(
    limits: Sequence[HeadLimit], exits: Exits, assumed: tuple[Assumption, ...], seconds: float
) -> Finding:
    """Return the finding of the limits solved so far, with the certificate of each."""
    named = {f"exit {layer}": one for layer, one in zip(exits.layers, limits, strict=False)}
    records = {name: one.to_dict() for name, one in named.items()}
    averages = anytime_average(limits, exits.features_val[: len(limits)])
    rows = []
    for (name, one), phi, average in zip(
        named.items(), exits.features_val[: len(limits)], averages, strict=True
    ):
        right = one.predictor(phi).argmax(axis=1) == exits.labels.val
        together = average.argmax(axis=1) == exits.labels.val
        records[name] |= {"accuracy": float(right.mean()), "anytime": float(together.mean())}
        rows.append((name, *_cells(one), share(right.mean()), share(together.mean())))
    errors = [1 - record["anytime"] for record in records.values()]
    columns = ("", "limit", "status", "error, at most", "gap", "rank", "norm", "excess", "held out",
               "averaged")  # fmt: skip
    return Finding.said(
        "limit",
        record={"limit": records},
        tables=(Table("prediction", columns, tuple(rows)),),
        files={
            f"limit-exit{layer}.safetensors": one.save
            for layer, one in zip(exits.layers, limits, strict=False)
        },
        assumptions=assumed,
        statuses={f"head of {name}": one.status for name, one in named.items()},
        certificates={f"head of {name}": record for name, record in records.items()},
        objects={"limit": dict(zip(exits.layers, limits, strict=False)), "exits": exits},
        sides=tuple(
            Side(name, {"limit": one.kind, "gap": one.certificate.gap})
            for name, one in named.items()
        ),
        row={
            "limit": "exit heads",
            "gap": max(one.certificate.gap for one in limits),
            "limit_seconds": seconds,
            "error_limit": errors[-1],
        },
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
