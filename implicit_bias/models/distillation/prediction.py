"""What is known before a student is trained: its limit, assumptions, bounds of its risk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...quantities.assumptions import Assumption
from ...quantities.formatting import number, share
from ...quantities.said import Table
from ...quantities.table import lines
from ...runs.reports.finding import Finding
from ...runs.reports.views import Views
from ...runs.stages import Found
from .figure import plot_bound, plot_learning, plot_tail
from .limit import DistillationLimit
from .losses import mean_loss
from .model import BELOW_ZERO, RESOLVED
from .risk import (
    AngleTail,
    angle_tail,
    error_angle,
    learning_curve,
    polynomial_tail,
    risk_bound,
    transfer_risk,
)
from .start import DistillationSetup

NAME = "distillation limit"
# |score| from which a soft label is 0 or 1 to rounding: 1 - sigmoid(s) is half a unit of 1. Of K
# classes each has a label of its own: the least is 0 where exp(-s) is no normal number.
_SATURATED = {"float32": 16, "float64": 36}
_VANISHED = {"float32": 87, "float64": 708}


def predict(setup: DistillationSetup, found: Found) -> Iterator[Finding]:
    """Find the closed form and its certificate."""
    limit, task = setup.limit, setup.task
    certificate = limit.certificate
    risk = transfer_risk(limit.zeta, task.teacher, task.X_val)
    between = None if task.of_classes else limit.angle
    shown = {"null_norm": limit.null_norm, "angle": between, "risk": risk}
    rows = (
        ("status", limit.status.name),
        ("  teacher's scores missed, relative", f"{certificate.interpolation:.2e}"),
        ("  share outside samples and start", f"{certificate.span_share:.2e}"),
        ("  equation of the part unseen", f"{certificate.root_residual:.2e}"),
        ("rank of the samples", f"{limit.rank}: {len(task.X)} of {task.X.shape[1]} inputs"),
        ("length of the start", number(limit.start_norm, ".4g")),
        ("length of the projection", number(float(np.linalg.norm(limit.projection)), ".6g")),
        *lines(shown, "null_norm"),
        ("  published bound (D.40)", number(limit.null_bound, ".6g")),
        *lines(shown, "angle", "risk"),
    )
    record = limit.to_dict() | {"angle": between, "transfer_risk": risk}
    cells = {
        "n_classes": len(task.teacher) if task.of_classes else None,
        "angle_limit": between,
        "risk_limit": risk,
    }
    yield Finding(
        "limit",
        {"limit": limit, "task": task},
        NAME,
        assumptions=_assumptions(setup),
        further=Views(
            record={"limit": record},
            tables=(Table("prediction", ("", NAME), rows),),
            certificates={NAME: record},
            row=cells,
        ),
    )


def _assumptions(setup: DistillationSetup) -> tuple[Assumption, ...]:
    """Check the assumptions of the theorem, in the form in which a run can measure them."""
    task, start, options = setup.task, setup.start, setup.options
    scores = task.logits
    if task.of_classes:
        largest, cut = float(np.ptp(scores, axis=1).max()), _VANISHED[options.dtype]
        what, ends = "scores differ by", "the least rounds to 0"
    else:
        largest, cut = float(np.abs(scores).max()), _SATURATED[options.dtype]
        what, ends = "|score| is", "they round to 0 and 1"
    resolved = RESOLVED.found(what=what, largest=largest, ends=ends, cut=cut)
    if options.depth == 1:
        return (resolved,)
    begins, at_zero = (
        mean_loss(task.X, w, task.teacher, "cross-entropy") for w in (start, np.zeros_like(start))
    )
    way = ", the direction drawn being turned around" if setup.turned else ""
    return resolved, BELOW_ZERO.found(begins=begins, at_zero=at_zero, way=way)


def bound_risk(setup: DistillationSetup, found: Found) -> Iterator[Finding]:
    """Bound the risk by the angles of the inputs, and measure its decay sample by sample."""
    limit, task, kappa = setup.limit, setup.task, setup.options.kappa
    n, tail = len(task.X), angle_tail(task.X_val, task.teacher)
    bound = risk_bound(tail, n)
    curve = learning_curve(task.X, task.teacher, task.X_val)
    (angles, risks), deep = curve.rises, _bound_off_projection(limit, n, tail)
    known = None
    if task.name == "angles":
        theta = np.linspace(0, np.pi / 2, 200)
        known = np.stack([theta, polynomial_tail(1.0 if kappa is None else kappa)(theta)])
    rows = (
        *bound.lines("value", "sharper"),
        ("  of students as far off the projection as this one", share(deep)),
        *bound.lines("beta"),
        ("further samples by which the angle rose (ideal 0)", f"{angles} of {n - 1}"),
        ("further samples by which the risk rose", f"{risks} of {n - 1}"),
    )
    title = "expected risk of students on so many samples, by the held-out angles (theorem 5.3)"
    own = {"off_projection": deep, "angle_rises": angles, "risk_rises": risks}
    yield Finding.said(
        "risk",
        record={"risk": bound.to_dict() | own},
        tables=(Table(title, ("", "value"), rows),),
        panels=(
            partial(plot_tail, tail=tail, known=known),
            partial(plot_bound, tail=tail, n=n, bound=bound, risk=float(curve.risks[-1])),
            partial(plot_learning, curve=curve),
        ),
        objects={"risk_bound": bound, "learning_curve": curve},
        row=bound.cells(),
    )


def _bound_off_projection(limit: DistillationLimit, n: int, tail: AngleTail) -> float:
    """Return the bound of theorem D.4, corrected, at the relative error of this limit."""
    size = float(np.linalg.norm(limit.projection))
    if not limit.null_norm < size:
        return float("nan")
    return risk_bound(tail, n, delta=error_angle(limit.null_norm / size)).sharper
