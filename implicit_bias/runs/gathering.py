"""The report of a run from its findings, as they come."""

from __future__ import annotations

from collections.abc import Iterator

from .folder import RunFolder
from .reports.finding import DIVERGED, Finding
from .reports.heading import Heading
from .reports.report import Report
from .reports.verdict import Evidence

NOWHERE = RunFolder()


def gather(heading: Heading, findings: Iterator[Finding], folder: RunFolder = NOWHERE) -> Report:
    """Return the report of a run's findings, in the order in which they first came.

    Here the run begins, all that could refuse it being done: `folder`, if it has a path, is the
    run's from now on. All that was found before an interrupt, a divergence or a full disk stays in
    the report.

    Raises
    ------
    KeyboardInterrupt, FloatingPointError, OSError
        If one of them came before the first finding.
    """
    found: dict[str, Finding] = {}
    interrupted, failure = False, None
    folder.begin(heading.model)
    try:
        for finding in findings:
            found[finding.key] = finding
    except KeyboardInterrupt:
        interrupted = True
        if not found:
            raise
    except (FloatingPointError, OSError) as error:
        failure = str(error)
        if not found:
            raise
        if isinstance(error, FloatingPointError):
            found[DIVERGED] = Finding(DIVERGED, evidence=(Evidence(diverged=failure),))
    return Report(heading, tuple(found.values()), interrupted, failure)
