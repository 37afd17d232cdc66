"""Certificates of a saved run, proved again on its data, which are made or loaded anew."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from ..data.labelled import ClassDataset
from ..data.sample import Sample
from ..limits.limit import Limit
from ..runs.setup import SampleSetup, data_record, prepare
from ..runs.user_data import USERS_OWN
from . import MODELS
from .run_model import resolve

if TYPE_CHECKING:
    from ..runs.reports.report import Report

SLACK = 1e-3  # of the tolerance: by how much rounding elsewhere may make a gap larger
MOST = 1_000_000  # held-out samples that are drawn because a file says so


class NotProvable(Exception):
    """Certificates of a run cannot be proved here: its data are gone, or gates were learned."""


def proved_again(report: Report) -> dict[str, Limit]:
    """Prove the limits of a loaded run again, on data and gates that its options name.

    Data are those of a name, drawn by the seed, or of a file that is still what it was by its
    digest; gates are drawn by the seed.

    Parameters
    ----------
    report : Report
        Of a model whose data and gates follow from its options.

    Returns
    -------
    dict
        The limits with what the data prove of them: "limit", or the names of classes.

    Raises
    ------
    NotProvable
        If data or gates are not there; the message says why.
    ValueError
        If the report claims what its data do not prove.
    """
    claimed = _claimed(report)
    samples = _samples(report, claimed)
    proved = {}
    for name, limit in claimed.items():
        if name not in samples:
            raise ValueError(f"the report has a limit of {name}, which its data have not")
        proved[name] = limit.certify(*samples[name])
        _check(name, limit, proved[name])
    return proved


def _claimed(report: Report) -> dict[str, Limit]:
    """Return the limits of a report by their names."""
    model = report.heading.model
    if model not in MODELS or not MODELS[model].provable:
        raise NotProvable(f"what the model {model} predicts does not follow from its options alone")
    held = report.objects.get("limit")
    if held is None:
        raise NotProvable("it has no limit")
    limits = (
        {f"class {one}": limit for one, limit in held.items()}
        if isinstance(held, Mapping)
        else {"limit": held}
    )
    if not all(isinstance(limit, Limit) for limit in limits.values()):
        raise ValueError("the report has something else in the place of its limit")
    return limits


def _samples(report: Report, claimed: Mapping[str, Limit]) -> dict[str, Sample]:
    """Return the training data of every limit, from the options of the run."""
    record = report.heading.record
    options, data = record.get("options"), record.get("data")
    if not isinstance(options, Mapping) or not isinstance(data, Mapping):
        raise ValueError("the report does not say which data it is of")
    if options.get("data") == USERS_OWN or "gating" in record:
        what = "data" if options.get("data") == USERS_OWN else "gating"
        raise NotProvable(f"its {what} came from Python, and `limit.certify` takes them")
    _check_sizes(options, claimed)
    try:
        found = _prepared(report.heading.model, options)
    except (OSError, TypeError, ValueError) as error:
        raise NotProvable(f"its data cannot be had again ({error})") from error
    if data_record(found.dataset)["sha256"] != data.get("sha256"):
        raise NotProvable(f"its data are not those that {options.get('data')!r} names now")
    if not isinstance(found.dataset, ClassDataset):
        return dict.fromkeys(claimed, found.train)
    from ..runs.classes.one_vs_rest import against_rest

    return {f"class {one}": against_rest(found, one)[0] for one in found.dataset.classes}


def _check_sizes(options: Mapping[str, Any], claimed: Mapping[str, Limit]) -> None:
    """Refuse options that ask for much larger arrays than those of the file."""
    most = max(max(len(limit.dual), math.prod(limit.zeta.shape)) for limit in claimed.values())
    for name, bound in {
        "n_train": most, "hidden_units": most, "contexts": most, "n_val": max(most, MOST)
    }.items():  # fmt: skip
        size = options.get(name)
        if size is not None and not (isinstance(size, int) and size <= bound):
            raise NotProvable(f"{name} {size} is more than its arrays have numbers")


def _prepared(model: str, options: Mapping[str, Any]) -> SampleSetup:
    """Load the data of a run and draw its gates; nothing is trained."""
    setup = resolve(model, {**options, "steps": (0,), "learning_rate": None})
    parts = setup.model.parts
    return prepare(setup, gating=resolve_name(parts)(setup.options).gating if parts else None)


def _check(name: str, claimed: Limit, proved: Limit) -> None:
    """Refuse a limit whose status or gap is better than what the data prove."""
    smaller = proved.gap - claimed.gap > SLACK * claimed.tol
    if proved.status is not claimed.status or smaller:
        raise ValueError(
            f"the report claims that its {name} is {_words(claimed)}, and its data prove "
            f"{_words(proved)}: the file was changed, or its data and gates are drawn otherwise now"
        )


def _words(limit: Limit) -> str:
    return f"{limit.status.name} with the gap {limit.gap:.2e}"
