"""What is known before heads are trained: the teacher, limits, certificates, assumptions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy.special import softmax

from ...quantities.assumptions import Assumption
from ...quantities.formatting import share
from ...quantities.said import Side, Table
from ...runs.reports.finding import Finding
from ...runs.reports.telling import Several
from ...runs.reports.views import Views
from ...runs.stages import Found
from .exits import anytime_average, solve_exit_heads
from .frozen_trunk import HeadsSetup
from .limit import HeadLimit
from .model import HARD_SEPARABLE, INSIDE, UNIQUE

EXIT = "exit {}"
# Spread of tempered logits from which a soft label is 0 or 1 to rounding.
_SATURATED = {"float32": 16, "float64": 36}


def teach(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Find the teacher, the head that the trunk was trained with."""
    exits = setup.exits
    labels, teacher = exits.labels, exits.teacher
    known = labels.train >= 0
    right = float(np.mean(teacher[known].argmax(axis=1) == labels.train[known]))
    sure = [
        float(softmax(teacher / tau, axis=1).max(axis=1).mean()) for tau in (1.0, exits.temperature)
    ]
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
    yield Finding.said("teacher", record={"teacher": record}, tables=(table,))


def predict(setup: HeadsSetup, found: Found) -> Iterator[Finding]:
    """Solve the head of each exit."""
    exits, began = setup.exits, time.perf_counter()
    limits: dict[int, HeadLimit] = {}
    for layer, phi in zip(exits.layers, exits.features, strict=True):
        setup.progress.stage(f"solving the head of exit {layer}")
        (limits[layer],) = solve_exit_heads([phi], tol=setup.options.tol, **exits.taught)
        yield _solved(limits, setup, time.perf_counter() - began)


def _solved(limits: Mapping[int, HeadLimit], setup: HeadsSetup, seconds: float) -> Finding:
    """Return the finding of the limits solved so far, with the certificate of each."""
    exits, record, rows = setup.exits, {}, []
    inputs = exits.features_val[: len(limits)]
    averages = anytime_average([*limits.values()], inputs)
    for (layer, one), phi, average in zip(limits.items(), inputs, averages, strict=True):
        right, together = (
            float(np.mean(u.argmax(axis=1) == exits.labels.val))
            for u in (one.predictor(phi), average)
        )
        name = EXIT.format(layer)
        record[name] = {"accuracy": right, "anytime": together}
        proof, norm = one.certificate, float(np.linalg.norm(one.zeta))
        own = one.kind, one.status.name, f"{proof.error:.1e}", f"{proof.gap:.1e}", str(one.rank)
        held_out = share(right), share(together)
        rows.append((name, *own, f"{norm:.4g}", f"{one.excess:.3g}", *held_out))
    columns = ("", "limit", "status", "error, at most", "gap", "rank", "norm", "excess", "held out",
               "averaged")  # fmt: skip
    return Finding(
        "limit",
        {"limit": Several(limits, EXIT), "exits": exits},
        "head of {}",
        assumptions=_assumptions([*limits.values()], setup),
        further=Views(
            record={"limit": record},
            tables=(Table("prediction", columns, tuple(rows)),),
            sides=tuple(
                Side(EXIT.format(layer), {"limit": one.kind, "gap": one.certificate.gap})
                for layer, one in limits.items()
            ),
            row={
                "limit": "exit heads",
                "gap": max(one.certificate.gap for one in limits.values()),
                "limit_seconds": seconds,
                "error_limit": 1 - together,
            },
        ),
    )


def _assumptions(limits: Sequence[HeadLimit], setup: HeadsSetup) -> tuple[Assumption, ...]:
    """Check the assumptions behind the limits."""
    exits = setup.exits
    if exits.is_hard:
        return (HARD_SEPARABLE.found(holds=all(limit.kind == "direction" for limit in limits)),)
    spread = float(np.ptp(exits.teacher, axis=1).max()) / exits.temperature
    return (
        INSIDE.found(spread=spread, cut=_SATURATED[setup.options.dtype]),
        UNIQUE.found(lowest=min(limit.certificate.curvature for limit in limits)),
    )
