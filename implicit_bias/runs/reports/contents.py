"""The contents of a report: findings, and all that follows from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ..._support.shown import Valued
from ..._support.solve import Status, worst_status
from ...quantities.assumptions import Assumption
from ...quantities.said import Table, Writer
from ..drawing.figures import Panel, Row, compose, each_panel, panel_rows
from .finding import DIVERGED, Finding
from .heading import Heading
from .verdict import Evidence, Verdict, decide, nearest_first
from .views import Views, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What is said of a prediction alone.
PROVED = ("objective", "gap", "optimal_loss", "stationarity")


@contextmanager
def as_it_was_made() -> Iterator[None]:
    """Say in one message that a report cannot be shown which was edited after it was saved."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"the report does not hold what its pictures and pages show ({type(error).__name__}: "
            f"{error}): it was edited after it was saved; run it again"
        ) from error


@dataclass(frozen=True, eq=False, repr=False)
class Contents(Valued):
    """The findings of one run, gathered.

    Attributes
    ----------
    heading : Heading
        The model, its theorem, data and choices.
    findings : tuple of Finding
        In the order of a reader, at least one.
    interrupted : bool
        True if a part of the run was not begun any more.
    failure : str, optional
        The reason why there is a prediction but no comparison, for instance that training diverged.
    call : str
        The call of `run` that made it.
    """

    heading: Heading
    findings: tuple[Finding, ...]
    interrupted: bool = False
    failure: str | None = None
    call: str = ""

    @cached_property
    def views(self) -> tuple[Views, ...]:
        """All that is said of each finding."""
        return tuple(one.views for one in self.findings)

    @cached_property
    def whole(self) -> Views:
        """All that is said of all findings; of entries of one name the last stands."""
        return sum(self.views, start=Views())

    @property
    def finished(self) -> bool:
        """False if training was interrupted; everything else is of what was finished."""
        return not self.interrupted and self.whole.finished

    @property
    def status(self) -> Status | None:
        """The worst status of the limits; None if an interrupt came before the first of them."""
        statuses = self.whole.statuses
        return worst_status(statuses.values()) if statuses else None

    @property
    def advice(self) -> str:
        """The meaning of the status, in the words of a limit that has it; empty without one."""
        if self.status is None:
            return ""
        said = (
            str(proof["advice"])
            for proof in self.certificates.values()
            if proof.get("status") == self.status.name and "advice" in proof
        )
        return next(said, self.status.advice)

    @property
    def concerns(self) -> str:
        """The limits that the status is of, where it is no good news and there are several."""
        statuses, worst = self.whole.statuses, self.status
        if worst is None or worst.name == "SOLVED" or len(statuses) == 1:
            return ""
        return ", ".join(name for name, status in statuses.items() if status is worst)

    @property
    def shortfall(self) -> str:
        """A sentence on what training did not reach; empty where there is nothing to say."""
        return next((one.shortfall for one in self.views if one.shortfall), "")

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts on all networks, the nearest to their limits first, and of a bound.

        One on the prediction where no network was compared with it.
        """
        return nearest_first(self.whole.verdicts) or (decide(self._alone()),)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the run: that on the network nearest to its limit."""
        return self.verdicts[0]

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of the theorem, each with True, False or None for unknown.

        What findings say of one, by its name, stands in place of what the heading says.
        """
        found = self.whole.assumptions
        declared = {one.name for one in self.heading.assumptions}
        told = [
            [one for one in found if one.name == known.name] or [known]
            for known in self.heading.assumptions
        ]
        others = (one for one in found if not one.name or one.name not in declared)
        return (*(one for ones in told for one in ones), *others)

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of all findings; columns of trainers are in the order of the verdicts."""
        trainers = [one.trainer for one in self.verdicts if one.trainer]
        return tuple(_in_order(table, trainers) for table in self.whole.tables)

    @property
    def files(self) -> dict[str, Writer]:
        """Writers of the saved files, `results.json` aside, by name."""
        return dict(self.whole.files)

    @property
    def certificates(self) -> dict[str, Mapping[str, Any]]:
        """The proved numbers of each limit, by its name."""
        return dict(self.whole.certificates)

    @property
    def objects(self) -> dict[str, Any]:
        """Limits, networks, trajectories, comparisons: the things themselves, by name."""
        return dict(self.whole.objects)

    @property
    def by_trainer(self) -> dict[str, Self]:
        """The report of each of several trainers, as of a run that had named it alone.

        With one trainer this report; empty for a model that has no choice of them. A report of
        several holds the network, trajectory and comparison of the trainer named last.
        """
        names = dict.fromkeys(name for one in self.findings for name in one.parts)
        if not names:
            trainer = self.heading.record.get("options", {}).get("trainer")
            return {} if trainer is None else {trainer: self}
        return {name: self._of_trainer(name) for name in names}

    @property
    def results(self) -> dict[str, Any]:
        """The record of the run: plain Python values, floats may be infinite or NaN."""
        # Two findings may speak of one thing: their entries are joined.
        return joined(self.heading.record, self.whole.record) | {
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "assumptions": [asdict(assumption) for assumption in self.assumptions],
            "finished": self.finished,
            "failure": self.failure,
            "shortfall": self.shortfall or None,
        }

    def figure(self) -> Figure | None:
        """Draw the picture of the run; None where nothing was trained.

        Raises
        ------
        ValueError
            If the report holds what its panels do not take: it was edited after it was saved.
        """
        with as_it_was_made():
            return self._figure()

    def _figure(self) -> Figure | None:
        # Panels in a row of rows share as few of them as hold them; whole rows stay as they are.
        rows: list[Row] = []
        single: list[Panel] = []
        for panel in each_panel(self.whole.panels):
            if isinstance(panel, Row):
                rows += [*panel_rows(single), panel]
                single = []
            else:
                single.append(panel)
        rows += panel_rows(single)
        return compose(rows, title=self.heading.title) if rows else None

    def row(self) -> dict[str, Any]:
        """Return one flat record of `row.COLUMNS`, the same for every model; None is null.

        With several trainers the last one's: `rows` has all.

        `pa.Table.from_pylist([report.row()], schema=row_schema())` is the way to one data set.
        """
        from .row import heading_columns, make_row  # whose columns are the options of all models

        *_, last = self.by_trainer.values() or [self]
        return make_row(
            heading_columns(self.heading.record)
            | dict(self.whole.row)
            | {
                "status": None if self.status is None else self.status.name,
                "verdict": last.verdict.word,
                "verdict_sentence": last.verdict.alone,
                "finished": self.finished,
                "failure": self.failure,
                "shortfall": self.shortfall or None,
            }
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return `row` for every trainer, distinguished by its column `trainer`."""
        return [report.row() for report in self.by_trainer.values()] or [self.row()]

    def to_json(self) -> str:
        """Return `results` as one JSON object; infinities and NaN become null."""
        return json.dumps(_finite(self.results), allow_nan=False)

    def _alone(self) -> Evidence:
        """Return the evidence on a prediction that no network was compared with."""
        row = self.whole.row
        known = {name: row[name] for name in PROVED if row.get(name) is not None}
        if self.status is None:
            return Evidence(status=Status.FAILED, proof="there is no prediction yet")
        if self.status is Status.NOT_SEPARABLE:
            sizes = {proof["n_samples"] for proof in self.certificates.values()
                     if "n_samples" in proof}  # fmt: skip
            these = f"these {sizes.pop()} samples" if len(sizes) == 1 else "these samples"
            of = f" ({self.concerns})" if self.concerns else ""
            reason = f"proved: no such network separates {these}{of}"
            return Evidence(status=self.status, trained=False, reason=reason)
        if self.status.severity > 0:
            return Evidence(status=self.status, trained=False, proof=self.advice)
        trained = "network" in self.objects
        reason = "the network was not compared with it" if trained else "nothing was trained"
        return Evidence(status=self.status, trained=False, beside=known, reason=reason)

    def _of_trainer(self, name: str) -> Self:
        parted = [one for one in self.findings if one.parts]
        own = tuple(one.parts[name] if one.parts else one
                    for one in self.findings if not one.parts or name in one.parts)  # fmt: skip
        if all(name in one.parts for one in parted):
            # What ended the run came after it.
            own = tuple(one for one in own if one.key != DIVERGED)
            return replace(self, findings=own, interrupted=False, failure=None)
        return replace(self, findings=own)


def _in_order(table: Table, trainers: Sequence[str]) -> Table:
    """Return a table with its columns of trainers last, in this order."""
    of_trainers = [table.columns.index(one) for one in trainers if one in table.columns]
    if not table.of_network or not of_trainers:
        return table
    order = [k for k in range(len(table.columns)) if k not in of_trainers] + of_trainers
    columns, *rows = (tuple(line[k] for k in order) for line in (table.columns, *table.rows))
    return replace(table, columns=columns, rows=tuple(rows))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
